"""Clients inside the core: they speak messages to brokers' handlers, and hold them to the answers.

A client minds leader epochs as KIP-320 has it: it asks under the newest epoch that any broker's
metadata told it, refuses to know an older one, and asks for metadata again when it is refused.
Consumers fetch on from the last batch that they read, and go back where the broker says that its
log parts from theirs; where Fetch can't say so (below v12) they ask OffsetForLeaderEpoch first.
"""

from dataclasses import dataclass, field
from typing import Final, cast

from fencepost.broker.broker import Broker
from fencepost.broker.cluster import Cluster
from fencepost.broker.network import CONTROLLER
from fencepost.broker.waits import Wait
from fencepost.protocol.buffers import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchResponse
from fencepost.protocol.messages.produce import ProduceResponse
from fencepost.protocol.records import Record, build_batch, iter_headers, read_header
from fencepost.simulation import asking
from fencepost.simulation import invariants as must
from fencepost.simulation.history import Batches
from fencepost.simulation.invariants import demand
from fencepost.simulation.schedule import ACKS_ALL, Setup
from fencepost.simulation.watch import Watch

FIRST_FETCH_WITH_DIVERGENCE: Final = 12
LAST_FETCH_FROM_LEADERS: Final = 10
_ASK_ANEW: Final = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
BEGINS_AGAIN: Final = 3
"""A client that reads everything again and again."""
_PRODUCERS: Final = 5
_TIMESTAMP: Final = 1_700_000_000_000


@dataclass(slots=True)
class Reader:
    """A consumer of one partition."""

    who: str
    epoch: int = -1
    """Of the leader, as far as metadata told."""
    validated: int = -1
    """The leader epoch in which its position was last found to be sound (below Fetch v12)."""
    read: Batches = field(default_factory=Batches)
    """What it has read, and not been told to forget."""
    asked: int = 0
    """How often it has fetched."""
    begins_again: bool = False
    """Whether it reads everything again once it has read everything: of a tier, too."""


@dataclass(slots=True)
class Asker:
    """A client that asks for the latest offset of one partition again and again."""

    who: str
    epoch: int = -1
    latest: int = -1


class Clients:
    """All clients of one cluster."""

    def __init__(self, cluster: Cluster, watch: Watch, setup: Setup) -> None:
        self._cluster = cluster
        self._watch = watch
        self._fetch_version = _fetch_version(setup.fetch_version)
        self._is_gated = not setup.unclean
        self._has_producers = setup.is_tiered
        self._readers: dict[tuple[int, int], Reader] = {}
        self._askers: dict[tuple[int, int], Asker] = {}
        self._acknowledged: list[tuple[int, int, int, int]] = []
        """Broker, partition, base offset and checksum of what acks=all was answered for."""
        self._produced = 0
        self.refused: ErrorCode = ErrorCode.NONE
        """Of the last answer to a producer."""

    # -- producing ------------------------------------------------------------------------------

    def produce(self, index: int, broker_id: int, acks: str, count: int) -> None:
        """Send so many batches of one to three records, one request each."""
        for _ in range(count):
            self._produced += 1
            self._produce(index, self._cluster.brokers[broker_id], acks)

    def _produce(self, index: int, broker: Broker, acks: str) -> None:
        number = self._produced
        value = b"%d" % number
        records = [Record(i, _TIMESTAMP, None, value) for i in range(number % 3 + 1)]
        batch = self._batch(records, number)
        crc = read_header(batch).crc

        def answered(answer: object) -> None:
            partition = cast(ProduceResponse, answer).responses[0].partition_responses[0]
            self.refused = ErrorCode(partition.error_code)
            if acks == ACKS_ALL and not partition.error_code:
                found = (broker.broker_id, index, partition.base_offset, crc)
                self._acknowledged.append(found)

        answer = asking.produce(broker, index, batch, acks=-1 if acks == ACKS_ALL else 1)
        if isinstance(answer, Wait):
            self.refused = ErrorCode.REQUEST_TIMED_OUT
            answer.then(answered)
        else:
            answered(answer)

    def _batch(self, records: list[Record], number: int) -> bytearray:
        """With a tier producers take turns, each time in a new epoch, where any sequence may begin.

        Without one nobody asks what is known of them.
        """
        if not self._has_producers:
            return build_batch(records)
        epoch, producer_id = divmod(number, _PRODUCERS)
        return build_batch(records, producer_id=producer_id, producer_epoch=epoch, base_sequence=0)

    def check_acknowledged(self) -> None:
        """Hold the cluster to the answers of acks=all that came since; the logs are looked at."""
        if self._acknowledged:
            for acknowledged in self._acknowledged:
                self._watch.see_acknowledged(*acknowledged)
            self._acknowledged.clear()

    # -- consuming ------------------------------------------------------------------------------

    def consume(self, client: int, index: int, broker_id: int) -> None:
        """Fetch once, from a leader or a follower."""
        broker = self._cluster.brokers[broker_id]
        reader = self._readers.get((client, index))
        if reader is None:
            reader = self._readers[client, index] = Reader(
                f"c{client} of p{index}", begins_again=client == BEGINS_AGAIN
            )
        if reader.epoch < 0:
            reader.epoch = self._epoch_at(broker, index, reader.epoch)
        if not self._is_sound(reader, broker, index):
            return
        answer = self._fetch(reader, broker, index)
        if not isinstance(answer, Wait):
            self._see_answer(reader, broker, index, answer)
            return
        asked = reader.asked  # it may have asked again until this one is answered

        def answered(found: FetchResponse | None) -> None:
            if found is not None and reader.asked == asked and broker.running:
                self._see_answer(reader, broker, index, found)

        answer.then(answered)

    def _see_answer(
        self, reader: Reader, broker: Broker, index: int, response: FetchResponse
    ) -> None:
        answer = response.responses[0].partitions[0]
        if answer.error_code in _ASK_ANEW:
            reader.epoch = self._epoch_at(broker, index, reader.epoch)
        elif answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._reset(reader, broker, index)
        elif answer.diverging_epoch.epoch >= 0:
            self._go_back(reader, answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset)
        else:
            self._take(reader, index, answer.records or ())
            if reader.begins_again and not answer.records:
                reader.read.begin_at(0)

    def _fetch(
        self, reader: Reader, broker: Broker, index: int
    ) -> FetchResponse | Wait[FetchResponse]:
        reader.asked += 1
        tip = reader.read.tip
        knows_last = self._fetch_version >= FIRST_FETCH_WITH_DIVERGENCE
        return asking.fetch(
            broker,
            index,
            self._fetch_version,
            offset=reader.read.end,
            epoch=reader.epoch,
            last_epoch=tip.epoch if knows_last and tip is not None else asking.NO_EPOCH,
        )

    def _take(self, reader: Reader, index: int, records: tuple[Buffer, ...]) -> None:
        history = self._watch.partitions[index]
        for buffer in records:
            for _, header in iter_headers(buffer):
                epoch, base = header.partition_leader_epoch, header.base_offset
                batch = history.batches.get((epoch, base))
                demand(
                    must.followers_copy_what_leaders_wrote,
                    reader.who,
                    batch,
                    epoch,
                    base,
                    header.crc,
                )
                assert batch is not None
                if batch.next_offset <= reader.read.end:
                    continue
                if not history.tainted:
                    demand(must.clients_read_what_is_committed, reader.who, history, batch)
                demand(
                    must.consumers_miss_no_truncation,
                    reader.who,
                    reader.read,
                    batch,
                    history.deleted,
                )
                reader.read.append(batch)
                self._watch.note(index, epoch, base)

    def _is_sound(self, reader: Reader, broker: Broker, index: int) -> bool:
        """Whether its position is one of the leader's log, where Fetch itself can't tell."""
        if self._fetch_version >= FIRST_FETCH_WITH_DIVERGENCE or reader.validated == reader.epoch:
            return True
        return self._validate(reader, broker, index)

    def _validate(self, reader: Reader, broker: Broker, index: int) -> bool:
        """Ask where the epoch of the last batch read ends, and whether that may be relied on."""
        tip = reader.read.tip
        if tip is not None:
            end = asking.epoch_end(broker, index, epoch=reader.epoch, asked=tip.epoch)
            if end.error_code in _ASK_ANEW:
                reader.epoch = self._epoch_at(broker, index, reader.epoch)
            if end.error_code or end.end_offset < 0:
                return False
            self._go_back(reader, end.leader_epoch, end.end_offset)
            if reader.read.tip is not tip:
                return False  # what is left is to be asked about as well (KIP-279)
        reader.validated = reader.epoch
        return True

    def _go_back(self, reader: Reader, epoch: int, end_offset: int) -> None:
        """Forget what a broker's log has not: what lies behind the end, or is of a later epoch."""
        reader.read.truncate(end_offset)
        while (tip := reader.read.tip) is not None and tip.epoch > epoch:
            reader.read.truncate(tip.base_offset)

    def _reset(self, reader: Reader, broker: Broker, index: int) -> None:
        """Begin anew at the log start, as ``auto.offset.reset=earliest`` has it."""
        found = asking.list_offset(broker, index, asking.EARLIEST, epoch=reader.epoch)
        if not found.error_code:
            reader.read.begin_at(found.offset)

    # -- offsets --------------------------------------------------------------------------------

    def list_latest(self, client: int, index: int, broker_id: int) -> None:
        """Ask for the latest offset."""
        broker = self._cluster.brokers[broker_id]
        asker = self._askers.get((client, index))
        if asker is None:
            asker = self._askers[client, index] = Asker(f"c{client} of p{index}")
        if asker.epoch < 0:
            asker.epoch = self._epoch_at(broker, index, asker.epoch)
        found = asking.list_offset(broker, index, asking.LATEST, epoch=asker.epoch)
        if found.error_code in _ASK_ANEW:
            asker.epoch = self._epoch_at(broker, index, asker.epoch)
        elif not found.error_code:
            if self._is_gated and not self._watch.partitions[index].tainted:
                demand(must.latest_offsets_never_go_back, asker.who, asker.latest, found.offset)
            asker.latest = found.offset
            self._watch.note(index, found.offset)

    def delete(self, index: int, broker_id: int) -> None:
        """Delete all records below the high watermark."""
        asking.delete_records(self._cluster.brokers[broker_id], index)

    def reassign(self, index: int, target: tuple[int, ...] | None) -> None:
        """Give a partition other replicas, or None: those that it had; by any broker that can."""
        network = self._cluster.network
        able = (
            b for b in self._cluster.brokers.values() if network.reaches(b.broker_id, CONTROLLER)
        )
        broker = next(able, None)
        if broker is not None:
            asking.reassign(broker, index, target)

    # -- metadata -------------------------------------------------------------------------------

    def _epoch_at(self, broker: Broker, index: int, known: int) -> int:
        """The leader epoch of a broker's metadata, unless an older one than is known."""
        return max(known, asking.leader_epoch(broker, index))


def _fetch_version(ceiling: int) -> int:
    """What consumers fetch with.

    Where Fetch does not say that logs part, a consumer that reads from followers (v11) may get what
    one of them is about to truncate, and never hear of it: there they read from leaders alone.
    """
    if ceiling >= FIRST_FETCH_WITH_DIVERGENCE:
        return min(ceiling, asking.NEWEST_BY_NAME)
    return min(ceiling, LAST_FETCH_FROM_LEADERS)
