"""Follows the log of each partition of ``__transaction_state``, and holds coordinators to it.

What is below the high watermark of a leader is decided for good. From that the checker knows the
decisions, and what a coordinator has to know that takes over.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct, field

from fencepost.broker.metadata.image import TRANSACTION_TOPIC
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.replication.replica import Replica
from fencepost.broker.transactions.records import (
    ReplayedTransactions,
    TransactionRecord,
    decode,
)
from fencepost.broker.transactions.transaction_coordinator import TransactionCoordinatorShard
from fencepost.broker.transactions.transaction_state import PREPARING, TransactionState
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import iter_headers
from fencepost.simulation.invariants import require
from fencepost.simulation.schedule import TOPIC
from fencepost.simulation.transactions import invariants as must
from fencepost.simulation.transactions.ledger import ProducerEpoch
from fencepost.storage.log.interface import Log

_ALL_AT_ONCE: Final = 1 << 30
_KNOWN_BATCHES: Final = 1024
"""Several replay each batch: what is committed, its coordinator, and those that take over."""


class Decision(Struct, frozen=True):
    """A decision of a coordinator that is committed."""

    number: int
    """In the order of decisions."""
    commits: bool
    indexes: frozenset[int]
    """Of the partitions."""


class _Playback(Struct):
    """A log, replayed up to an offset (exclusive)."""

    end: int = 0
    epoch: int = -1
    """The newest leader epoch in which that was committed."""
    state: ReplayedTransactions = field(default_factory=ReplayedTransactions)

    def play(self, log: Log, until: int) -> list[TransactionRecord]:
        """Replay on; the records that it replays."""
        played = [*_records(log, self.end, until)]
        for record in played:
            if record.value is None:
                self.state.transactions.pop(record.transactional_id, None)
            else:
                self.state.transactions[record.transactional_id] = record.value
        self.end = max(self.end, until)
        return played


def _records(log: Log, start: int, until: int) -> Iterator[TransactionRecord]:
    at = max(start, log.log_start_offset)
    while at < until:
        found = log.read(at, max_bytes=_ALL_AT_ONCE, upper_bound=until, min_one_batch=True)
        for buffer in found.buffers:
            for position, header in iter_headers(buffer):
                at = header.next_offset
                yield from _decoded(bytes(buffer[position : position + header.size]))


@lru_cache(_KNOWN_BATCHES)
def _decoded(batch: bytes) -> tuple[TransactionRecord, ...]:
    keyed = ((stored.key, stored.value) for stored in iter_records(batch))
    records = (decode(key, value) for key, value in keyed if key is not None)
    return tuple(record for record in records if record is not None)


class _Watched(Struct):
    """A coordinator's shard, and its log replayed beside it."""

    shard: TransactionCoordinatorShard
    log: _Playback


class CoordinatorChecker:
    """What was decided in one cluster, and what its coordinators know."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._decided: defaultdict[int, _Playback] = defaultdict(_Playback)
        """What is committed, by partition of ``__transaction_state``."""
        self._keys: list[tuple[str, int]] = []
        """Those partitions, as brokers name them."""
        self._shards: dict[tuple[int, int], _Watched] = {}
        """By broker and partition."""
        self._decisions: dict[ProducerEpoch, list[Decision]] = {}
        """By the producer id and epoch that the markers have."""
        self.decision_count = 0

    def check(self, brokers: Iterable[Broker]) -> None:
        """Something has happened at brokers, which run."""
        topic = self._cluster.controller.image.topics.get(TRANSACTION_TOPIC)
        count = 0 if topic is None else len(topic.partitions)
        if count != len(self._keys):
            self._keys = [(TRANSACTION_TOPIC, index) for index in range(count)]
        for broker in brokers:
            for index, key in enumerate(self._keys):
                replica = broker.replicas.get(key)
                if replica is not None and replica.is_leader:
                    decided = self._decided[index]
                    if replica.high_watermark > decided.end:
                        self._follow(decided, replica)
                    self._check_shard(broker, index, replica)

    def decision(
        self, producer: ProducerEpoch, index: int, *, commits: bool, first: int
    ) -> Decision | None:
        """The earliest decision that a marker in a partition may carry out.

        :param first: Its lowest number, inclusive.
        """
        for each in self._decisions.get(producer, ()):
            if each.number >= first and each.commits is commits and index in each.indexes:
                return each
        return None

    def state(self) -> Mapping[int, ReplayedTransactions]:
        """What is committed, by partition of ``__transaction_state``."""
        return {index: playback.state for index, playback in self._decided.items()}

    def _follow(self, decided: _Playback, replica: Replica) -> None:
        decided.epoch = max(decided.epoch, replica.leader_epoch)
        for record in decided.play(replica.log, replica.high_watermark):
            metadata = record.value
            if metadata is None or metadata.state not in PREPARING:
                continue
            producer = ProducerEpoch(metadata.producer_id, metadata.producer_epoch)
            decision = Decision(
                self.decision_count,
                metadata.state is TransactionState.PREPARE_COMMIT,
                frozenset(number for topic, number in metadata.partitions if topic == TOPIC),
            )
            self.decision_count += 1
            self._decisions.setdefault(producer, []).append(decision)

    def _check_shard(self, broker: Broker, index: int, replica: Replica) -> None:
        shard = broker.transactions.runtime.shards.get(index)
        if shard is None or not shard.loaded or shard.coordinator_epoch != replica.leader_epoch:
            return
        key = (broker.broker_id, index)
        watched = self._shards.get(key)
        if watched is None or watched.shard is not shard:
            watched = self._shards[key] = _Watched(shard, _Playback())
            self._check_succession(f"{_location(replica)}, which takes over", index, replica)
        if watched.log.end != replica.log.log_end_offset:
            watched.log.play(replica.log, replica.log.log_end_offset)
            self._require_same(_location(replica), shard.latest, watched.log)

    def _check_succession(self, where: str, index: int, replica: Replica) -> None:
        """A coordinator has taken over: its log has all that the ones before have decided.

        One that learns late of its election may have had a successor, which has decided more.
        """
        decided, found = self._decided[index], _Playback()
        if replica.leader_epoch < decided.epoch:
            return
        found.play(replica.log, min(decided.end, replica.log.log_end_offset))
        self._require_same(where, found.state, decided)

    def _require_same(self, where: str, lived: ReplayedTransactions, replayed: _Playback) -> None:
        known, said = lived.transactions, replayed.state.transactions
        require(must.coordinators_are_what_their_log_says, where, known, said)


def _location(replica: Replica) -> str:
    return f"coordinator of s{replica.index} on broker {replica.broker_id}"
