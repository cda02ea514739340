"""Checks the remote tier and the replicas of a tiered topic; part of the `ClusterChecker`.

The contents of the tier are read from its objects alone, not from the state of brokers: each
segment whose metadata say that it is complete, batch by batch.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from fencepost.broker.core.events import Kind
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.records import iter_headers
from fencepost.simulation import tier_invariants as must
from fencepost.simulation.environment import SimulatedObjectStore
from fencepost.simulation.history import Batch, PartitionHistory
from fencepost.simulation.invariants import require
from fencepost.simulation.schedule import TOPIC
from fencepost.storage.log.producer_state import ProducerStateEntry
from fencepost.storage.tier.object_store import ObjectKind
from fencepost.storage.tier.segment_metadata import RemoteLogSegmentState, RemoteSegment

_NEVER_MS: Final = 24 * 60 * 60_000
"""No run takes a day."""


class _TieredReplicaSnapshot:
    """What a replica was like when it was looked at last."""

    __slots__ = (
        "end",
        "generation",
        "high_watermark",
        "highest_tiered",
        "local_start",
        "log",
        "start",
    )

    def __init__(self, replica: Replica, highest_tiered: int | None, generation: int) -> None:
        log = replica.log
        self.log = log
        self.start = log.log_start_offset
        self.local_start = log.local_log_start_offset
        self.end = log.log_end_offset
        self.high_watermark = replica.high_watermark
        self.highest_tiered = highest_tiered
        self.generation = generation

    def has_same_ends(self, replica: Replica) -> bool:
        """Whether a replica's log, its ends and its high watermark are still these."""
        log = replica.log
        return (
            log is self.log
            and replica.high_watermark == self.high_watermark
            and log.log_end_offset == self.end
            and log.log_start_offset == self.start
        )

    def has_same_start(self, other: "_TieredReplicaSnapshot | None") -> bool:
        """Whether it holds what it held, and the tier too, as far as it may be gone."""
        return (
            other is not None
            and other.log is self.log
            and other.start == self.start
            and other.local_start == self.local_start
            and other.generation == self.generation
        )


class TierChecker:
    """What has been seen of the tier.

    :param partitions: What really happened to each, by index.
    """

    def __init__(
        self,
        cluster: Cluster,
        objects: SimulatedObjectStore,
        partitions: Sequence[PartitionHistory],
    ) -> None:
        self._cluster = cluster
        self._objects = objects
        self._partitions = partitions
        self._forgets_producers = any(
            broker.configs.producer_id_expiration_ms < _NEVER_MS
            for broker in cluster.brokers.values()
        )
        self._whole: dict[str, tuple[int, tuple[Batch, ...]]] = {}
        """Segments that may be read, by key without suffix: partition and batches."""
        self._begun: dict[str, int] = {}
        """How often their partition was lost when copies began."""
        self._losses: Counter[int] = Counter()
        self._copies: tuple[Counter[Batch], ...] = tuple(Counter() for _ in partitions)
        """In how many segments each batch is, by partition."""
        self._generations = [0] * len(partitions)
        """Rise when what the tier holds of a partition changes."""
        self._last: dict[int, list[_TieredReplicaSnapshot | None]] = {
            broker_id: [None] * len(partitions) for broker_id in cluster.brokers
        }
        """By broker and partition."""
        objects.on_change = self._on_object_changed

    # -- the tier -------------------------------------------------------------------------------

    def lose(self, index: int) -> None:
        """The tier loses what it has of a partition, and what is on its way may be half of it."""
        history = self._partitions[index]
        self._losses[index] += 1
        keys = [key for key in self._objects.objects if key.split("/")[1] == str(index)]
        for key in keys:
            if key.endswith(ObjectKind.METADATA):
                segment = RemoteSegment.from_json(self._objects.objects[key])
                history.lost_until = max(history.lost_until, segment.end_offset + 1)
        self._objects.lose(sorted(keys))
        self._cluster.events.emit(Kind.TIER_LOST, topic=TOPIC, partition=index, objects=len(keys))

    def _on_object_changed(self, key: str) -> None:
        stem, _, suffix = key.rpartition(".")
        if f".{suffix}" != ObjectKind.METADATA:
            return
        data = self._objects.objects.get(key)
        segment = None if data is None else RemoteSegment.from_json(data)
        self._forget(stem)
        if segment is None:
            self._begun.pop(stem, None)
        elif segment.state is RemoteLogSegmentState.COPY_SEGMENT_STARTED:
            self._begun[stem] = self._losses[segment.partition.index]
        elif segment.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED:
            self._record_copy(stem, segment)

    def _forget(self, stem: str) -> None:
        index, batches = self._whole.pop(stem, (0, ()))
        if batches:
            self._copies[index].subtract(batches)
            self._generations[index] += 1

    def _record_copy(self, stem: str, segment: RemoteSegment) -> None:
        index = segment.partition.index
        history = self._partitions[index]
        if self._begun.get(stem) != self._losses[index]:
            history.lost_until = max(history.lost_until, segment.end_offset + 1)
            return
        data = self._objects.objects.get(f"{stem}{ObjectKind.LOG}", b"")
        batches = []
        for _, header in iter_headers(data):
            batch = history.batches.get((header.partition_leader_epoch, header.base_offset))
            require(must.the_tier_holds_what_leaders_wrote, history, segment, header, batch)

            assert batch is not None
            batches.append(batch)
        if not history.tainted:
            require(must.only_what_is_committed_is_tiered, history, batches)
        self._whole[stem] = (index, tuple(batches))
        self._copies[index].update(batches)
        self._generations[index] += 1

    # -- replicas -------------------------------------------------------------------------------

    def check_replica(self, broker: Broker, replica: Replica, *, is_unchanged: bool) -> None:
        """Something may have happened to a replica, or to what the tier has of its partition.

        :param is_unchanged: Whether it is known to have the log, with the ends, and the high
            watermark that it had when it was looked at last.
        """
        index = replica.index
        highest = broker.remote_log_manager.highest_tiered(replica) if replica.is_leader else None
        generation = self._generations[index]
        last = self._last[broker.broker_id]
        before = last[index]
        is_as_before = (
            before is not None
            and (is_unchanged or before.has_same_ends(replica))
            and generation == before.generation
            and highest == before.highest_tiered
            and replica.log.local_log_start_offset == before.local_start
        )
        if not is_as_before:
            now = last[index] = _TieredReplicaSnapshot(replica, highest, generation)
            self._check_changed_replica(broker, replica, before, now)

    def _check_changed_replica(
        self,
        broker: Broker,
        replica: Replica,
        before: _TieredReplicaSnapshot | None,
        now: _TieredReplicaSnapshot,
    ) -> None:
        history = self._partitions[replica.index]
        where = f"p{replica.index} on broker {broker.broker_id}"
        if history.tainted:
            return
        # One that leads no more may learn what its successor has committed and tiered.
        if replica.is_leader and replica.gate_is_open and self._leads_now(replica):
            last_stable = _last_stable_offset(replica)
            require(must.offsets_are_in_order, where, now.end, last_stable, now.local_start)

            highest = now.highest_tiered
            if highest is not None and highest >= 0:
                self._check_view(broker, replica, where, now, highest)
        if not now.has_same_start(before):
            self._demand_readable(history, where, now)
            if not replica.is_leader and now.start < now.local_start == now.end:
                self._demand_auxiliary(history, where, now)

    def _leads_now(self, replica: Replica) -> bool:
        partition = self._cluster.controller.image.topics[TOPIC].partitions[replica.index]
        return partition.leader_epoch == replica.leader_epoch

    def _check_view(
        self,
        broker: Broker,
        replica: Replica,
        where: str,
        now: _TieredReplicaSnapshot,
        highest: int,
    ) -> None:
        history = self._partitions[replica.index]
        view = broker.remote_log_manager.state(replica)
        first = -1 if view is None else view.start_offset
        last_stable = _last_stable_offset(replica)
        require(must.tiered_offsets_are_in_order, where, last_stable, highest, first)

        if highest >= history.lost_until:
            require(must.no_gap_behind_the_tier, where, highest, now.local_start, now.start)

    def _demand_readable(
        self, history: PartitionHistory, where: str, now: _TieredReplicaSnapshot
    ) -> None:
        first = max(now.start, history.deleted, history.lost_until)
        held = self._copies[history.index]
        lacking = [b for b in history.committed.between(first, now.local_start) if not held[b]]
        require(must.what_is_committed_can_be_read, where, now.start, now.local_start, lacking)

    def _demand_auxiliary(
        self, history: PartitionHistory, where: str, now: _TieredReplicaSnapshot
    ) -> None:
        """A follower begins behind the tier: it knows what it would if it had copied it all."""
        log, first = now.log, max(now.start, history.deleted)
        for batch in history.committed.between(first, now.end):
            cached = log.epoch_for_offset(batch.base_offset)
            require(must.followers_know_the_epochs_of_the_tier, where, batch, cached)
        if self._forgets_producers:
            return
        expected = {}
        for batch in history.committed.between(0, now.end):
            if batch.producer is not None:
                expected[batch.producer[0]] = batch
        known = {
            each.producer_id: (each.producer_epoch, _last_offset(each, expected))
            for each in log.producers()
        }
        require(must.followers_know_the_producers_of_the_tier, where, known, expected, first)


def _last_stable_offset(replica: Replica) -> int:
    """What is tiered lies below it, and with it what a leader has let go of.

    Where the first records of an open transaction are deleted it is the high watermark: a replica
    that began at the log start knows nothing of the transaction, and may have led and tiered what
    follows.
    """
    last_stable = replica.last_stable_offset
    if last_stable == replica.log.log_start_offset > 0:
        return replica.high_watermark
    return last_stable


def _last_offset(known: ProducerStateEntry, expected: Mapping[int, Batch]) -> int:
    """A log knows no offset of a marker, and none of the epochs before the last."""
    batch = expected.get(known.producer_id)
    if batch is not None and batch.is_transactional:
        return batch.next_offset - 1
    return known.batches[-1].last_offset if known.batches else -1
