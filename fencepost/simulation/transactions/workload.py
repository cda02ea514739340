"""All transactional producers and read_committed consumers of a cluster, and their checks."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from fencepost.broker.node import operator_actions
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.transactions.transaction_config import TransactionConfig
from fencepost.broker.transactions.transaction_state import TransactionState
from fencepost.simulation.checker import ClusterChecker
from fencepost.simulation.client_requests import ClientRequests
from fencepost.simulation.environment import RequestSender
from fencepost.simulation.invariants import require
from fencepost.simulation.schedule import TOPIC
from fencepost.simulation.setup import MIXED_FLOWS, NEW_FLOW, Setup
from fencepost.simulation.transactions import invariants as must
from fencepost.simulation.transactions.coordinator_checker import CoordinatorChecker
from fencepost.simulation.transactions.group_offsets import GroupOffsets
from fencepost.simulation.transactions.ledger import (
    DELETED_MARKER,
    GroupPartition,
    Ledger,
    SentBatch,
)
from fencepost.simulation.transactions.marker_checker import MarkerChecker
from fencepost.simulation.transactions.messages import TransactionalRequests
from fencepost.simulation.transactions.offset_messages import OffsetRequests
from fencepost.simulation.transactions.producer import TransactionalProducer
from fencepost.simulation.transactions.readers import CommittedReader

if TYPE_CHECKING:
    from fencepost.broker.node.broker import Broker

PRODUCERS: Final = {1: "alpha", 2: "alpha", 3: "beta", 4: "gamma"}
"""The transactional id of each producer; two compete for one."""
_OLD_OF_MIXED: Final = frozenset({2, 3})
"""Of seeds with both flows: one of the two that compete, and all of another id."""
READERS: Final = (1, 2)
STATE_PARTITIONS: Final = 2
"""Of ``__transaction_state``, and of ``__consumer_offsets``."""
_EXPIRATION_MS: Final = 31_000
"""Longer than the timeout of a transaction."""
TRANSACTION_CONFIGS: Final = {
    "transaction.state.log.num.partitions": str(STATE_PARTITIONS),
    "offsets.topic.num.partitions": str(STATE_PARTITIONS),
}
EXPIRATION_CONFIGS: Final = {
    "transactional.id.expiration.ms": str(_EXPIRATION_MS),
    "transaction.remove.expired.transaction.cleanup.interval.ms": "10000",
    "producer.id.expiration.ms": str(_EXPIRATION_MS),
    "producer.id.expiration.check.interval.ms": "10000",
}


class Transactions:
    """What a cluster has of transactions; nothing where its setup has none."""

    def __init__(
        self, cluster: Cluster, watch: ClusterChecker, setup: Setup, ask: RequestSender
    ) -> None:
        self._cluster = cluster
        self._watch = watch
        self._setup = setup
        self._ledger = Ledger()
        self._coordinators = CoordinatorChecker(cluster)
        self._markers = MarkerChecker(cluster, watch, self._coordinators, self._ledger)
        self._reads = TransactionalRequests(ask, "reader", is_new_flow=True)
        self._offsets = ClientRequests(ask, "reader")
        self._groups = GroupOffsets(cluster, self._ledger, ask, STATE_PARTITIONS)
        self._readers: dict[tuple[int, int], CommittedReader] = {}
        self._last_readers: dict[int, CommittedReader] = {}
        """Those that read all in the end, by partition."""
        self._read_to: dict[int, int] | None = None
        """Where they were before the last fetch."""
        self.producers: dict[int, TransactionalProducer] = {}
        """By number; none where the setup has no transactions."""
        for number, transactional_id in PRODUCERS.items() if setup.has_transactions else ():
            is_new_flow = _is_new_flow(setup.transactions, number)
            name = f"x{number}"
            self.producers[number] = TransactionalProducer(
                name,
                transactional_id,
                TransactionalRequests(ask, name, is_new_flow=is_new_flow),
                OffsetRequests(ask, name, is_new_flow=is_new_flow),
                self._ledger,
                is_new_flow=is_new_flow,
            )
        self.admitted = self._ledger.admitted
        """How often exceptions were met, by name."""

    # -- what producers and consumers do ---------------------------------------------------------

    def init(self, number: int, broker_id: int) -> None:
        """A producer gets its next epoch, of the coordinator that a broker names."""
        producer = self.producers.get(number)
        coordinator = None if producer is None else self._coordinator_of(producer, broker_id)
        if producer is not None and coordinator is not None:
            producer.init(coordinator)

    def send(self, number: int, index: int, broker_id: int, *, is_late: bool) -> None:
        """A producer sends a batch to a broker, where it arrives at once or late."""
        producer, broker = self.producers.get(number), self._running(broker_id)
        if producer is None or broker is None or index >= self._setup.partitions:
            return
        wall_ms = self._cluster.scheduler.wall_ms()
        batch = producer.send(index, self._coordinator_of(producer, broker_id), wall_ms)
        if batch is not None and is_late:
            producer.late.append((broker_id, batch))
        elif batch is not None:
            producer.deliver(broker, batch)

    def arrive(self, number: int) -> None:
        """The oldest late batch of a producer arrives, or is lost.

        No network keeps a batch for longer than leaders remember its producer.
        """
        producer = self.producers.get(number)
        if producer is not None and producer.late:
            broker_id, batch = producer.late.pop(0)
            broker = self._running(broker_id)
            age_ms = self._cluster.scheduler.wall_ms() - batch.timestamp_ms
            is_lost = self._setup.expires and age_ms >= _EXPIRATION_MS
            if broker is not None and not is_lost:
                producer.deliver(broker, batch)

    def end(self, number: int, broker_id: int, *, commits: bool) -> None:
        """A producer ends its transaction."""
        producer = self.producers.get(number)
        coordinator = None if producer is None else self._coordinator_of(producer, broker_id)
        if producer is not None and coordinator is not None:
            producer.end(coordinator, commits=commits)

    def read(self, number: int, index: int, broker_id: int) -> None:
        """A read_committed consumer fetches from a broker."""
        broker = self._running(broker_id)
        if broker is None or index >= self._setup.partitions:
            return
        if self._watch.partitions[index].tainted:
            return
        reader = self._readers.get((number, index))
        if reader is None:
            name = f"r{number} of p{index}"
            reader = self._readers[number, index] = self._new_reader(name, index)
        reader.read(broker)
        self._watch.add_to_digest(number, index, reader.position, reader.seen.total())

    def commit_offset(self, number: int, index: int, broker_id: int) -> None:
        """A producer commits an offset of its group; a broker names both coordinators."""
        producer = self.producers.get(number)
        if producer is not None and index < self._setup.partitions:
            coordinator = self._coordinator_of(producer, broker_id)
            producer.commit_offset(index, coordinator, self._group_coordinator(producer, broker_id))

    def fetch_offset(self, number: int, index: int, broker_id: int, *, is_stable: bool) -> None:
        """A consumer of a producer's group asks what is committed for a partition."""
        producer = self.producers.get(number)
        if producer is None or index >= self._setup.partitions:
            return
        coordinator = self._group_coordinator(producer, broker_id)
        if coordinator is not None:
            key = GroupPartition(producer.transactional_id, index)
            self._groups.fetch(coordinator, key, is_stable=is_stable)
            self._watch.add_to_digest(number, index, self._groups.found)

    def _group_coordinator(
        self, producer: TransactionalProducer, broker_id: int
    ) -> "Broker | None":
        """The coordinator of a producer's group that a broker names, if both run."""
        broker = self._running(broker_id)
        if broker is None:
            return None
        return self._running(self._groups.coordinator(broker, producer.transactional_id))

    def _new_reader(self, name: str, index: int) -> CommittedReader:
        return CommittedReader(name, self._reads, self._offsets, self._ledger, index)

    def _coordinator_of(self, producer: TransactionalProducer, broker_id: int) -> "Broker | None":
        """The coordinator that a broker names, if both run."""
        broker = self._running(broker_id)
        if broker is None:
            return None
        return self._running(self._reads.find_coordinator(broker, producer.transactional_id))

    def _running(self, broker_id: int) -> "Broker | None":
        broker = self._cluster.brokers.get(broker_id)
        return broker if broker is not None and broker.running else None

    # -- what happens to coordinators ------------------------------------------------------------

    def elect_coordinator(self, topic: str, index: int, broker_id: int) -> None:
        """A replica that is in sync leads a partition of a coordinator's topic."""
        if self.producers and index < STATE_PARTITIONS:
            operator_actions.elect(self._cluster, topic, index, broker_id)

    def wipe_coordinator(self, topic: str, index: int, broker_id: int) -> None:
        """A replica loses its disk, unless it is the only one that has what is committed."""
        if not self.producers or index >= STATE_PARTITIONS:
            return
        partition = self._cluster.controller.partition(topic, index)
        broker = self._running(broker_id)
        is_informed = broker is not None and self._watch.is_fully_informed(broker_id)
        if is_informed and broker_id in partition.replicas and set(partition.isr) - {broker_id}:
            operator_actions.wipe(self._cluster, topic, index, broker_id)

    # -- checks ----------------------------------------------------------------------------------

    def check(self, broker_ids: Iterable[int] | None = None) -> None:
        """Something has happened.

        :param broker_ids: Where, in order; None: wherever.
        """
        if self.producers:
            brokers = self._cluster.brokers
            reached = brokers if broker_ids is None else broker_ids
            running = [brokers[each] for each in reached if brokers[each].running]
            self._coordinators.check(running)
            self._markers.check(running)
            self._ledger.settle()

    def read_on(self) -> bool:
        """All is well again: consumers read all from the beginning, one fetch each.

        :returns: Whether they have fetched: not where none came further with the fetch before.
        """
        if not self.producers:
            return False
        positions = {index: reader.position for index, reader in self._last_readers.items()}
        if positions == self._read_to:
            return False
        self._read_to = positions
        for history in self._watch.partitions:
            index = history.index
            if not history.tainted:
                reader = self._last_readers.get(index)
                if reader is None:
                    reader = self._new_reader(f"a last reader of p{index}", index)
                    self._last_readers[index] = reader
                reader.read(self._leader(index))
        return True

    def may_be_open(self) -> bool:
        """Whether a transaction began so late that its coordinator need not have aborted it yet."""
        oldest_ms = self._cluster.scheduler.wall_ms() - TransactionConfig().abort_interval_ms
        return any(
            metadata.state is TransactionState.ONGOING
            and metadata.start_ms + metadata.timeout_ms > oldest_ms
            for state in self._coordinators.state().values()
            for metadata in state.transactions.values()
        )

    def check_healed(self) -> None:
        """All has been read, and all transactions have had the time to end."""
        if not self.producers:
            return
        stuck = self._admit_deleted_markers()
        visible = Counter[SentBatch]()
        for reader in self._last_readers.values():
            visible.update(reader.seen)
        for transaction in self._ledger.transactions:
            seen = {b: visible[b] for b in transaction.batches if self._may_be_seen(b)}
            require(must.transactions_are_atomic, transaction, seen)
        for history in self._watch.partitions:
            replica = self._leader(history.index).replicas[TOPIC, history.index]
            stable = replica.log.last_stable_offset(replica.high_watermark)
            end = replica.high_watermark
            if history.index not in stuck:
                require(must.transactions_come_to_an_end, history.index, end, stable)
        gone = [b for b in self._ledger.batches.values() if not self._may_be_seen(b)]
        groups = [
            GroupPartition(transactional_id, index)
            for transactional_id in dict.fromkeys(PRODUCERS.values())
            for index in range(self._setup.partitions)
        ]
        self._groups.check_healed(groups, visible, {*visible, *gone})

    def _admit_deleted_markers(self) -> set[int]:
        """The partitions whose leader never got the marker of what was deleted."""
        stuck = set[int]()
        for history in self._watch.partitions:
            log = self._leader(history.index).replicas[TOPIC, history.index].log
            firsts = [each.txn_first_offset for each in log.producers()]
            if any(first is not None and first < log.log_start_offset for first in firsts):
                history.taint("a marker was deleted that its leader never got")
                self._ledger.admitted[DELETED_MARKER] += 1
                stuck.add(history.index)
        return stuck

    def _may_be_seen(self, batch: SentBatch) -> bool:
        """Whether the log still has to hold a batch, if it was acknowledged."""
        history = self._watch.partitions[batch.index]
        if history.tainted:
            return False
        return not any(
            each.crc == batch.crc and each.base_offset < max(history.deleted, history.lost_until)
            for each in history.batches.values()
        )

    def _leader(self, index: int) -> "Broker":
        partition = self._cluster.controller.image.topics[TOPIC].partitions[index]
        return self._cluster.brokers[partition.leader]


def _is_new_flow(flows: str, number: int) -> bool:
    """Whether a producer follows the flow of version 2."""
    return flows == NEW_FLOW or (flows == MIXED_FLOWS and number not in _OLD_OF_MIXED)
