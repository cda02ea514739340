"""All transactional producers and read_committed consumers of a cluster, and their checks."""

from collections import Counter
from typing import TYPE_CHECKING, Final

from fencepost.broker.metadata.image import TRANSACTION_TOPIC
from fencepost.broker.node import operator_actions
from fencepost.broker.node.cluster import Cluster
from fencepost.simulation.checker import ClusterChecker
from fencepost.simulation.client_requests import ClientRequests
from fencepost.simulation.environment import RequestSender
from fencepost.simulation.invariants import require
from fencepost.simulation.schedule import TOPIC
from fencepost.simulation.setup import MIXED_FLOWS, NEW_FLOW, Setup
from fencepost.simulation.transactions import invariants as must
from fencepost.simulation.transactions.coordinator_checker import CoordinatorChecker
from fencepost.simulation.transactions.ledger import Ledger, SentBatch
from fencepost.simulation.transactions.marker_checker import MarkerChecker
from fencepost.simulation.transactions.messages import TransactionalRequests
from fencepost.simulation.transactions.producer import TransactionalProducer
from fencepost.simulation.transactions.readers import CommittedReader

if TYPE_CHECKING:
    from fencepost.broker.node.broker import Broker

PRODUCERS: Final = {1: "alpha", 2: "alpha", 3: "beta", 4: "gamma"}
"""The transactional id of each producer; two compete for one."""
_OLD_OF_MIXED: Final = "beta"
READERS: Final = (1, 2)
STATE_PARTITIONS: Final = 2
"""Of ``__transaction_state``."""
TRANSACTION_CONFIGS: Final = {"transaction.state.log.num.partitions": str(STATE_PARTITIONS)}


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
        self._readers: dict[tuple[int, int], CommittedReader] = {}
        self.producers: dict[int, TransactionalProducer] = {}
        """By number; none where the setup has no transactions."""
        for number, transactional_id in PRODUCERS.items() if setup.has_transactions else ():
            is_new_flow = _is_new_flow(setup.transactions, transactional_id)
            name = f"x{number}"
            requests = TransactionalRequests(ask, name, is_new_flow=is_new_flow)
            self.producers[number] = TransactionalProducer(
                name, transactional_id, requests, self._ledger, is_new_flow=is_new_flow
            )

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
        batch = producer.send(index, self._coordinator_of(producer, broker_id))
        if batch is not None and is_late:
            producer.late.append((broker_id, batch))
        elif batch is not None:
            producer.deliver(broker, batch)

    def arrive(self, number: int) -> None:
        """The oldest late batch of a producer arrives, or is lost where no broker is."""
        producer = self.producers.get(number)
        if producer is not None and producer.late:
            broker_id, batch = producer.late.pop(0)
            broker = self._running(broker_id)
            if broker is not None:
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
        found = reader.read(broker)
        self._watch.add_to_digest(number, index, reader.position, len(found))

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

    def elect_coordinator(self, index: int, broker_id: int) -> None:
        """A replica that is in sync leads a partition of ``__transaction_state``."""
        if self.producers and index < STATE_PARTITIONS:
            operator_actions.elect(self._cluster, TRANSACTION_TOPIC, index, broker_id)

    def wipe_coordinator(self, index: int, broker_id: int) -> None:
        """A replica loses its disk, unless it is the only one that has what is committed."""
        if not self.producers or index >= STATE_PARTITIONS:
            return
        partition = self._cluster.controller.partition(TRANSACTION_TOPIC, index)
        broker = self._running(broker_id)
        is_informed = broker is not None and self._watch.is_fully_informed(broker_id)
        if is_informed and broker_id in partition.replicas and set(partition.isr) - {broker_id}:
            operator_actions.wipe(self._cluster, TRANSACTION_TOPIC, index, broker_id)

    # -- checks ----------------------------------------------------------------------------------

    def check(self) -> None:
        """Something has happened, wherever."""
        if self.producers:
            self._coordinators.check()
            self._markers.check()
            self._ledger.settle()

    def check_healed(self) -> None:
        """All is well again, and all transactions have had the time to end."""
        if not self.producers:
            return
        visible = self._visible_in_the_end()
        for transaction in self._ledger.transactions:
            seen = {b: visible[b] for b in transaction.batches if self._may_be_seen(b)}
            require(must.transactions_are_atomic, transaction, seen)
        for history in self._watch.partitions:
            replica = self._leader(history.index).replicas[TOPIC, history.index]
            stable = replica.log.last_stable_offset(replica.high_watermark)
            end = replica.high_watermark
            require(must.transactions_come_to_an_end, history.index, end, stable)

    def _visible_in_the_end(self) -> Counter[SentBatch]:
        """How often read_committed consumers see each batch from the beginning on."""
        visible: Counter[SentBatch] = Counter()
        for history in self._watch.partitions:
            if history.tainted:
                continue
            leader = self._leader(history.index)
            name = f"a last reader of p{history.index}"
            reader = self._new_reader(name, history.index)
            before = -1
            while reader.position != before:
                before = reader.position
                visible.update(reader.read(leader))
        return visible

    def _may_be_seen(self, batch: SentBatch) -> bool:
        """Whether the log still has to hold a batch, if it was acknowledged."""
        history = self._watch.partitions[batch.index]
        if history.tainted:
            return False
        return not any(
            each.crc == batch.crc and each.base_offset < history.deleted
            for each in history.batches.values()
        )

    def _leader(self, index: int) -> "Broker":
        return self._cluster.brokers[
            self._cluster.controller.image.topics[TOPIC].partitions[index].leader
        ]


def _is_new_flow(flows: str, transactional_id: str) -> bool:
    """Whether the producers of an id follow the flow of version 2.

    Those of one id follow the same one. Of two flows the coordinator takes the EndTxn of a zombie
    with the epoch before for a repetition of its successor's, and gives it the successor's epoch;
    whether Kafka does so was not compared.
    """
    return flows == NEW_FLOW or (flows == MIXED_FLOWS and transactional_id != _OLD_OF_MIXED)
