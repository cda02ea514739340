"""The history of one partition, seen from outside the cluster, and its replicas as last seen.

Every batch that a leader appended is one object, linked to the batch before it. Two logs with the
same last batch are the same log, so that comparing last batches compares whole logs.
"""

from bisect import bisect_left, bisect_right

from msgspec import Struct

from fencepost.broker.replication.replica import Replica
from fencepost.simulation.schedule import TOPIC
from fencepost.storage.log.interface import Log


class Batch(Struct, eq=False):
    """One batch that a leader appended. It is known by its epoch and base offset."""

    epoch: int
    base_offset: int
    next_offset: int
    """Exclusive end."""
    crc: int
    before: "Batch | None"
    """What its leader's log ended with; None where it was empty."""
    producer: tuple[int, int] | None = None
    """Id and epoch of its producer; None without one. Each batch has another epoch."""
    size_bytes: int = 0
    max_timestamp: int = -1
    """In ms; -1 where its records have none."""
    is_transactional: bool = False
    commits: bool | None = None
    """Whether it is a marker that commits, or one that aborts; None for records."""

    def __str__(self) -> str:
        return f"{self.base_offset}-{self.next_offset - 1} of epoch {self.epoch}"

    def may_follow(self, tip: "Batch | None") -> bool:
        """Whether a log that ends with ``tip`` is the log that this one was appended to.

        A log that begins with the records that its leader had not deleted yet has no tip.
        """
        return tip is None or self.before is tip or (self.before is None and self.base_offset > 0)


class BatchLog:
    """A log: batches in order of their offsets."""

    __slots__ = ("_ends", "_forgotten", "all", "start")

    def __init__(self, start: int = 0) -> None:
        self.all: list[Batch] = []
        self.start = start
        """Where its first batch begins, or would."""
        self._ends: list[int] = []
        self._forgotten: Batch | None = None

    @property
    def end(self) -> int:
        """Exclusive end of the last batch."""
        return self._ends[-1] if self._ends else self.start

    @property
    def tip(self) -> Batch | None:
        """The last batch, also where it was forgotten."""
        return self.all[-1] if self.all else self._forgotten

    def append(self, batch: Batch) -> None:
        """Add a batch behind the last one."""
        self.all.append(batch)
        self._ends.append(batch.next_offset)

    def truncate(self, offset: int) -> None:
        """Drop the batches that do not end at or before ``offset``."""
        keep = bisect_right(self._ends, offset)
        del self.all[keep:], self._ends[keep:]
        if not keep and offset < self.start:
            self.start = offset
            self._forgotten = None

    def delete_before(self, offset: int) -> None:
        """Drop the batches that end at or before ``offset``: they were deleted."""
        gone = bisect_right(self._ends, offset)
        if gone:
            self._forgotten = self.all[gone - 1]
            self.start = self._ends[gone - 1]
            del self.all[:gone], self._ends[:gone]

    def reset_to(self, offset: int) -> None:
        """Drop everything; the next batch begins at ``offset``."""
        self._forgotten = None
        self.all.clear()
        self._ends.clear()
        self.start = offset

    def holds(self, batch: Batch) -> bool:
        """Whether the batch is here, or lies before the first one."""
        at = bisect_left(self._ends, batch.next_offset)
        if at < len(self.all) and self.all[at] is batch:
            return True
        return batch.next_offset <= self.start

    def until(self, offset: int) -> Batch | None:
        """The last batch that ends at or before ``offset``."""
        at = bisect_right(self._ends, offset)
        return self.all[at - 1] if at else None

    def at(self, offset: int) -> Batch | None:
        """The batch that ``offset`` lies in."""
        at = bisect_right(self._ends, offset)
        return self.all[at] if at < len(self.all) and self.all[at].base_offset <= offset else None

    def between(self, start: int, end: int) -> list[Batch]:
        """The batches from ``start`` (inclusive) to ``end`` (exclusive), which are boundaries."""
        return self.all[bisect_right(self._ends, start) : bisect_right(self._ends, end)]


class PartitionHistory:
    """All that happened to one partition."""

    __slots__ = (
        "_acknowledged",
        "_commits",
        "appended",
        "batches",
        "committed",
        "deleted",
        "expected",
        "index",
        "leaders",
        "lost_a_replica",
        "lost_until",
        "refused",
        "tainted",
    )

    def __init__(self, index: int) -> None:
        self.index = index
        self.batches: dict[tuple[int, int], Batch] = {}
        """By epoch and base offset."""
        self.appended: set[int] = set()
        """Their checksums."""
        self.leaders: dict[int, int] = {}
        """Who led, by epoch."""
        self.committed = BatchLog()
        """The longest log that any leader's high watermark has covered."""
        self._commits: list[tuple[int, Batch]] = []
        """In which leader epoch what was committed, in order of offsets."""
        self._acknowledged: list[tuple[int, Batch]] = []
        self.deleted = 0
        """The highest log start that a leader has had: what lies before is of no interest."""
        self.tainted = ""
        """Why records that were committed may be lost; empty while they may not."""
        self.lost_a_replica = False
        """Whether a replica has lost its disk, or has gone in a reassignment."""
        self.lost_until = 0
        """Exclusive end of what the tier has lost; before it any record may be missing."""

        self.expected: dict[int, int] = {}
        """The base offset that a producer states for a batch, by the batch's checksum."""
        self.refused: set[int] = set()
        """Checksums of the batches that no log may have: their producer was told so."""

    def taint(self, reason: str) -> None:
        """From now on records may be lost."""
        if not self.tainted:
            self.tainted = reason

    def record(
        self,
        epoch: int,
        base_offset: int,
        next_offset: int,
        crc: int,
        log: BatchLog,
        producer: tuple[int, int] | None = None,
    ) -> Batch:
        """A leader has appended a batch to its log."""
        before = log.tip
        if before is None and not self.tainted:  # lost records may have been committed there
            before = self.committed.until(base_offset)
        batch = Batch(epoch, base_offset, next_offset, crc, before, producer)
        self.batches[epoch, base_offset] = batch
        self.appended.add(crc)
        return batch

    def commit(self, epoch: int, log: BatchLog, high_watermark: int) -> bool:
        """The high watermark of an epoch's leader has covered its log so far; is that news?"""
        news = log.between(self.committed.end, high_watermark)
        for batch in news:
            self.committed.append(batch)
        if news:
            self._commits.append((epoch, news[-1]))
        return bool(news)

    def acknowledge(self, epoch: int, batch: Batch) -> None:
        """The leader of an epoch has told acks=all that a batch is safe."""
        known = self._acknowledged
        if not known or batch.next_offset > known[-1][1].next_offset:
            known.append((epoch, batch))

    def committed_before(self, epoch: int) -> Batch | None:
        """The last batch that a leader of an earlier epoch had committed."""
        return _last_before(epoch, self._commits)

    def acknowledged_before(self, epoch: int) -> Batch | None:
        """The last batch that a leader of an earlier epoch had acknowledged to acks=all."""
        return _last_before(epoch, self._acknowledged)


def _last_before(epoch: int, entries: list[tuple[int, Batch]]) -> Batch | None:
    return next((batch for known, batch in reversed(entries) if known < epoch), None)


class ReplicaSnapshot:
    """One broker's replica of one partition, as it was after the last step."""

    __slots__ = (
        "end",
        "epoch",
        "high_watermark",
        "key",
        "location",
        "log",
        "model",
        "replica",
        "start",
    )

    def __init__(self, broker_id: int, index: int) -> None:
        self.key = (TOPIC, index)
        self.location = f"p{index} on broker {broker_id}"
        self.replica: Replica | None = None
        self.log: Log | None = None
        self.model = BatchLog()
        """What its log holds; it is known while its broker is down as well."""
        self.epoch = -1
        self.end = 0
        self.high_watermark = 0
        self.start = 0
        """Its log start."""

    def clear(self) -> None:
        """The broker has the replica no more."""
        self.replica = self.log = None
        self.model.reset_to(0)
        self.end = self.high_watermark = self.start = 0

    def has_restarted(self, log: Log) -> bool:
        """Whether the log has dropped all that was seen, and begins further on."""
        start = log.local_log_start_offset
        return start >= log.log_end_offset > self.end and log.segments()[0].base_offset > self.end
