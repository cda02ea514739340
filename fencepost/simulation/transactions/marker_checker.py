"""Follows transactions through the logs of the partitions, as leaders have written them."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from msgspec import Struct, field

from fencepost.broker.metadata.image import PartitionImage
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.replication.replica import Replica
from fencepost.simulation.checker import ClusterChecker
from fencepost.simulation.history import Batch, PartitionHistory
from fencepost.simulation.invariants import require
from fencepost.simulation.schedule import TOPIC
from fencepost.simulation.transactions import invariants as must
from fencepost.simulation.transactions.coordinator_checker import CoordinatorChecker
from fencepost.simulation.transactions.ledger import Ledger, ProducerEpoch

_NEVER: Final = -1


class _LogState(Struct, frozen=True):
    """What a log that ends with a batch knows of transactions."""

    opened: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The base offsets of the batches of those that are open, by producer id."""
    ended: dict[int, int] = field(default_factory=dict)
    """The number of the decision that was carried out last, by producer id."""


_EMPTY: Final = _LogState()


class MarkerChecker:
    """The transactions in the logs of one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        watch: ClusterChecker,
        coordinators: CoordinatorChecker,
        ledger: Ledger,
    ) -> None:
        self._cluster = cluster
        self._watch = watch
        self._coordinators = coordinators
        self._ledger = ledger
        self._states: dict[Batch, _LogState] = {}
        self._histories = [((TOPIC, history.index), history) for history in watch.partitions]
        """By partition, as brokers name it."""
        self._changes = -1
        """How many changes of replicas have been looked at."""
        self._seen = [0] * len(watch.partitions)
        """How many batches of each partition have been looked at."""
        self._stable: dict[tuple[int, int], tuple[int, int]] = {}
        """Log end and high watermark of each replica when its last stable offset was checked."""
        self.marker_count = 0

    def check(self, brokers: Iterable[Broker]) -> None:
        """Something has happened at brokers, which run; the decisions are known."""
        if self._watch.changes == self._changes:
            return
        self._changes = self._watch.changes
        for history in self._watch.partitions:
            if len(history.batches) != self._seen[history.index]:
                self._check_new_batches(history)
        for broker in brokers:
            for key, history in self._histories:
                replica = broker.replicas.get(key)
                if replica is not None and replica.is_leader:
                    self._check_last_stable_offset(broker.broker_id, history, replica)

    # -- batches ---------------------------------------------------------------------------------

    def _check_new_batches(self, history: PartitionHistory) -> None:
        index, seen = history.index, self._seen[history.index]
        partition = self._cluster.controller.image.topics[TOPIC].partitions[index]
        self._seen[index] = len(history.batches)
        for batch in islice(history.batches.values(), seen, None):
            before = _EMPTY if batch.before is None else self._states.get(batch.before, _EMPTY)
            self._states[batch] = self._after(history, partition, before, batch)

    def _after(
        self, history: PartitionHistory, partition: PartitionImage, before: _LogState, batch: Batch
    ) -> _LogState:
        """The state of a log after a batch, which is checked."""
        if batch.producer is None or not batch.is_transactional:
            return before
        producer = ProducerEpoch(*batch.producer)
        if batch.commits is None:
            if batch.epoch == partition.leader_epoch and not history.tainted:
                awaits = self._awaits_marker(history, before, producer)
                is_alive = awaits or self._ledger.is_alive(producer)
                require(must.one_epoch_of_an_id_is_alive, f"p{history.index}", batch, is_alive)
            offsets = (*before.opened.get(producer.producer_id, ()), batch.base_offset)
            return _LogState({**before.opened, producer.producer_id: offsets}, before.ended)
        return self._after_marker(history, before, batch, producer, commits=batch.commits)

    def _awaits_marker(
        self, history: PartitionHistory, before: _LogState, producer: ProducerEpoch
    ) -> bool:
        """Whether a decision bumped the epoch, and its marker is on its way to this partition.

        What was verified before the decision may still be appended: the marker ends it.
        """
        bumped = ProducerEpoch(producer.producer_id, producer.epoch + 1)
        first = before.ended.get(producer.producer_id, _NEVER) + 1
        return any(
            self._coordinators.decision(bumped, history.index, commits=commits, first=first)
            for commits in (True, False)
        )

    def _after_marker(
        self,
        history: PartitionHistory,
        before: _LogState,
        marker: Batch,
        producer: ProducerEpoch,
        *,
        commits: bool,
    ) -> _LogState:
        self.marker_count += 1
        opened = dict(before.opened)
        ends_one = opened.pop(producer.producer_id, None) is not None
        last = before.ended.get(producer.producer_id, _NEVER)
        decision = self._coordinators.decision(
            producer, history.index, commits=commits, first=last + ends_one
        )
        if not history.tainted:
            where = f"p{history.index}"
            require(must.markers_follow_decisions, where, marker, decision is not None)
        number = last if decision is None else decision.number
        return _LogState(opened, {**before.ended, producer.producer_id: number})

    # -- last stable offsets ---------------------------------------------------------------------

    def _check_last_stable_offset(
        self, broker_id: int, history: PartitionHistory, replica: Replica
    ) -> None:
        log, high_watermark = replica.log, replica.high_watermark
        now = (log.log_end_offset, high_watermark)
        if self._stable.get((broker_id, history.index)) == now:
            return
        self._stable[broker_id, history.index] = now
        # After a crash a high watermark may lie below a marker that was committed before.
        last = history.committed.tip
        if last is None or history.tainted:
            return
        # A replica that has begun behind deleted records knows the rest of a transaction alone.
        start = log.log_start_offset
        opened = self._states.get(last, _EMPTY).opened.values()
        held = [at for offsets in opened for at in offsets if at >= start]
        first_open = min(held, default=high_watermark)
        stable = log.last_stable_offset(high_watermark)
        where = f"p{history.index} on broker {broker_id}"
        require(must.last_stable_offsets_stop_at_open_transactions, where, stable, first_open)
        self._watch.add_to_digest(broker_id, history.index, stable)
