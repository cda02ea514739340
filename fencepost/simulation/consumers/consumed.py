"""What a consumer has of one partition, and the leader's log that an answer is about.

A log is known by its last batch: each batch is linked to the one before it
(`fencepost.simulation.history`).
"""

from collections.abc import Iterator

from msgspec import Struct, field

from fencepost.broker.node.broker import Broker
from fencepost.client.consumer.model import Truncation
from fencepost.simulation.checker import ClusterChecker
from fencepost.simulation.history import Batch
from fencepost.simulation.schedule import TOPIC


def lineage(tip: Batch | None) -> Iterator[Batch]:
    """A log from its last batch back."""
    while tip is not None:
        yield tip
        tip = tip.before


class LogView(Struct, frozen=True, kw_only=True):
    """A replica's log when its broker answered."""

    tip: Batch | None
    start: int
    """Log start offset."""
    end: int
    """Log end offset."""
    leader_epoch: int

    def holds(self, batch: Batch) -> bool:
        """Whether the log has a batch, or had it before it was deleted."""
        return any(each is batch for each in lineage(self.tip))

    def epoch_end(self, epoch: int) -> tuple[Batch | None, int]:
        """The last batch of an epoch up to this one, and where the next larger epoch begins."""
        end = self.end
        for batch in lineage(self.tip):
            if batch.epoch <= epoch:
                return batch, end
            end = batch.base_offset
        return None, end

    def before(self, offset: int) -> Batch | None:
        """The batch with the record before an offset."""
        return next((each for each in lineage(self.tip) if each.base_offset < offset), None)


def view_logs(broker: Broker, checker: ClusterChecker) -> dict[int, LogView]:
    """A broker's replicas, by partition."""
    return {
        index: LogView(
            tip=checker.log_of(broker.broker_id, index).tip,
            start=replica.log.log_start_offset,
            end=replica.log.log_end_offset,
            leader_epoch=replica.leader_epoch,
        )
        for (topic, index), replica in broker.replicas.items()
        if topic == TOPIC
    }


class Run(Struct, frozen=True, kw_only=True):
    """Records that were read in one go, all from logs with one history."""

    start: int
    tip: Batch | None
    """The batch with the last of them."""
    end: int
    """Exclusive."""

    def batches(self, above: int) -> Iterator[Batch]:
        """Those with records of the run at or above an offset, the last one first."""
        for batch in lineage(self.tip):
            if batch.next_offset <= max(self.start, above):
                return
            yield batch


class Consumed(Struct, kw_only=True):
    """One partition, as its application knows it."""

    next: int | None = None
    """The offset that comes next; None while there is no position."""
    tip: Batch | None = None
    """The batch with the record before that; None where that was not read, or is not certain."""
    start: int = 0
    """Where it began to read in one go."""
    earlier: tuple[Run, ...] = ()
    """What was read right before that, from logs with other histories."""
    memory: int = 0
    """The first offset whose epoch a consumer of the draft may remember."""
    is_bound: bool = False
    """Whether the position was committed, sought or reset since that record was read."""
    resets: set[int] | None = None
    """Offsets that lookups have found since the position was lost; None while it is not."""
    truncation: Truncation | None = None
    """Reported, and to be raised."""
    log: LogView | None = None
    """The leader's log that it is about."""
    seen_epoch: int = -1
    """The largest leader epoch of metadata."""
    saved: dict[tuple[int, int], "Saved"] = field(default_factory=dict)
    """Positions that were committed, by offset and epoch."""

    def lose_position(self) -> None:
        """From now on a lookup decides where to go on."""
        self.resets = set()
        self.truncation = self.log = None

    def begin(self, offset: int) -> None:
        """Nothing that was read comes before an offset."""
        self.earlier, self.start, self.memory = (), offset, offset

    def begin_run(self, offset: int) -> None:
        """What is read from an offset on comes from a log with another history."""
        self.earlier += (Run(start=self.start, tip=self.tip, end=offset),)
        self.start = offset

    def forget_tip(self) -> None:
        """What is read next need not continue what was read."""
        assert self.next is not None
        self.begin(self.next)
        self.tip = self.truncation = self.log = None

    def go_to(self, offset: int, log: LogView | None) -> bool:
        """Go on at an offset that a truncation was reported at.

        :returns: Whether all that is left of what was read is in the log.
        """
        while self.earlier and self.start >= offset:
            *earlier, last = self.earlier
            self.earlier, self.start, self.tip = tuple(earlier), last.start, last.tip
        left = next((each for each in lineage(self.tip) if each.base_offset < offset), None)
        self.next, self.is_bound, self.truncation, self.log = offset, True, None, None
        if self.start >= offset:
            self.start, self.tip = offset, None
            return True
        is_whole = left is not None and log is not None and log.holds(left)
        if not is_whole:
            self.earlier, self.tip = (), None
        else:
            self.tip = left
        return is_whole

    def remembers_epoch_of(self, log: LogView) -> bool:
        """Whether a log has an epoch of the records that the consumer remembers."""
        remembered = {
            batch.epoch for run in self._runs() for batch in run.batches(above=self.memory)
        }
        return any(each.epoch in remembered for each in lineage(log.tip))

    def is_in(self, log: LogView) -> bool:
        """Whether a log has all that was read."""
        return all(run.tip is None or log.holds(run.tip) for run in self._runs())

    def common_end(self, log: LogView) -> int | None:
        """Where what was read parts from a log; None where they have nothing in common."""
        held = set(map(id, lineage(log.tip)))
        common: int | None = None
        for run in self._runs():
            last = next((each for each in run.batches(above=0) if id(each) in held), None)
            if last is None:
                break
            common = min(last.next_offset, run.end)
            if common < run.end:
                break
        return common

    def _runs(self) -> tuple[Run, ...]:
        assert self.next is not None
        return (*self.earlier, Run(start=self.start, tip=self.tip, end=self.next))


class Saved(Struct, frozen=True):
    """A position that was committed."""

    tip: Batch | None
    start: int
