"""Checks the invariants on a cluster after every step.

A step changes only the replicas of the brokers that it reached. The checker compares each of them
with its snapshot of the step before, and checks only the changes: most steps change one offset of
one replica.
"""

from typing import Any, Final

from fencepost.broker.controller.requests import AlterPartitions
from fencepost.broker.core.context import Context
from fencepost.broker.metadata.image import NO_LEADER, ClusterImage, PartitionImage
from fencepost.broker.network.links import (
    ControllerNode,
    ControllerRequest,
    Link,
    ObserveRequest,
    OnResponse,
)
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.replication.replica import Replica
from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.records import BatchHeader, iter_headers
from fencepost.protocol.transaction_markers import EndTransactionMarker, decode_marker
from fencepost.simulation import client_invariants as clients
from fencepost.simulation import invariants as must
from fencepost.simulation.environment import SimulatedObjectStore
from fencepost.simulation.history import Batch, BatchLog, PartitionHistory, ReplicaSnapshot
from fencepost.simulation.invariants import require
from fencepost.simulation.isr_checker import IsrChecker
from fencepost.simulation.log_start_checker import LogStartChecker
from fencepost.simulation.schedule import TOPIC
from fencepost.simulation.tier_checker import TierChecker
from fencepost.storage.log.interface import Log

UNKNOWN_EPOCH: Final = -1
"""Of a replica that is new, until an image says what it is."""
_FETCH: Final = BY_NAME["fetch"]
_ALL_AT_ONCE: Final = 1 << 30
_DIGEST_BITS: Final = (1 << 61) - 1


class ClusterChecker:
    """What has been seen of one cluster."""

    def __init__(
        self, cluster: Cluster, *, enough_replicas: int, objects: SimulatedObjectStore | None = None
    ) -> None:
        self._cluster = cluster
        self._controller = cluster.controller
        self._image: ClusterImage = cluster.controller.image
        self._enough = enough_replicas
        self.current_link: Link | None = None
        """Where the message came from, and went to, that arrives now; None where none does."""
        self.current_api: Api | None = None
        """Of the request that the message is; None where it is something else."""
        self.current_request: ControllerRequest[Any] | None = None
        """What the controller answers now; None where it answers no broker."""
        topic = self._image.topics[TOPIC]
        self.partitions = [PartitionHistory(index) for index in range(len(topic.partitions))]
        self._replicas = {
            broker_id: {
                index: ReplicaSnapshot(broker_id, index) for index in range(len(topic.partitions))
            }
            for broker_id in cluster.brokers
        }
        self._tier = None if objects is None else TierChecker(cluster, objects, self.partitions)
        self._log_starts = LogStartChecker(cluster, self.partitions, is_tiered=objects is not None)
        self._isr = IsrChecker(cluster, len(self.partitions))
        self.check_time = self._isr.check_time
        self.before_deletion = self._log_starts.before_deletion
        self.allows_unclean = False
        """Whether elections may lose records now."""
        self.changes = 0
        """How often a replica was seen to have changed."""
        self.digest = 0
        """Of all changes that were seen, in order: the same for the same run."""

    def watching(self, observe: ObserveRequest) -> ObserveRequest:
        """An observer of requests between brokers, by which the checker knows what arrives."""

        def observe_and_note(api: Api, ctx: Context[Any], message: object) -> OnResponse:
            self.current_api = api
            return observe(api, ctx, message)

        return observe_and_note

    # -- looking --------------------------------------------------------------------------------

    def check_link(self, link: Link, *, has_arrived: bool) -> None:
        """A message has arrived, or was lost on its way: then its sender may know, too."""
        source, target = link
        if not has_arrived and not isinstance(source, ControllerNode):
            self.check_broker(source)
        if not isinstance(target, ControllerNode):
            self.check_broker(target)
            if not isinstance(source, ControllerNode):
                self._isr.see_fetch(target, source)
        self.check_controller()

    def check_all(self) -> None:
        """Something has happened, wherever."""
        self.check_controller()
        for broker_id in self._replicas:
            self.check_broker(broker_id)

    def log_of(self, broker_id: int, index: int) -> BatchLog:
        """What a broker holds of a partition."""
        return self._replicas[broker_id][index].model

    def is_fully_informed(self, broker_id: int) -> bool:
        """Whether the newest image has reached a broker."""
        return self._cluster.brokers[broker_id].view is self._controller.image

    def add_to_digest(self, *numbers: int) -> None:
        """Put something into the digest."""
        self.digest = hash((self.digest, *numbers)) & _DIGEST_BITS

    def check_broker(self, broker_id: int) -> None:
        """Something has happened at one broker, if there is such."""
        broker = self._cluster.brokers.get(broker_id)
        if broker is None or not broker.running:
            return
        replicas, tier = broker.replicas, self._tier
        for index, seen in self._replicas[broker_id].items():
            replica = replicas.get(seen.key)
            if replica is None:
                if seen.replica is not None:
                    seen.clear()
                continue
            log = replica.log
            has_same_start = log.log_start_offset == seen.start
            if not has_same_start:
                self._log_starts.check(seen, replica)
            # Here and not in a function of its own: nothing is asked as often.
            is_unchanged = (
                replica is seen.replica
                and replica.high_watermark == seen.high_watermark
                and log.log_end_offset == seen.end
                and replica.leader_epoch in (seen.epoch, UNKNOWN_EPOCH)
                and log is seen.log
            )
            if not is_unchanged:
                self.changes += 1
                self._check_changed_replica(broker, self.partitions[index], seen, replica)
            if tier is not None:
                tier.check_replica(broker, replica, is_unchanged=is_unchanged and has_same_start)

    def _check_changed_replica(
        self, broker: Broker, history: PartitionHistory, seen: ReplicaSnapshot, replica: Replica
    ) -> None:
        if replica.log is not seen.log:
            seen.log = replica.log
            # In files a crash may forget where the log starts: what was deleted may be there again.
            known = min(seen.model.start, replica.log.log_end_offset)
            seen.model.reset_to(max(replica.log.local_log_start_offset, known))
            seen.end = seen.model.end
        seen.model.delete_before(replica.log.local_log_start_offset)
        led_before = seen.replica is replica and seen.epoch == replica.leader_epoch
        if seen.replica is not replica:  # a new life: it knows the last checkpoint at best
            seen.replica = replica
            seen.high_watermark = replica.high_watermark
        if replica.leader_epoch not in (seen.epoch, UNKNOWN_EPOCH):
            self._check_epoch(broker.broker_id, history, seen, replica)
        if replica.log.log_end_offset != seen.end:
            self._check_log_end(broker.broker_id, history, seen, replica, led=led_before)
        if replica.is_leader:
            self._isr.see_leader(replica)
        self._check_high_watermark(broker, history, seen, replica)
        self.add_to_digest(
            broker.broker_id, history.index, seen.epoch, seen.end, seen.high_watermark
        )

    # -- roles ----------------------------------------------------------------------------------

    def _check_epoch(
        self, broker_id: int, history: PartitionHistory, seen: ReplicaSnapshot, replica: Replica
    ) -> None:
        epoch = replica.leader_epoch
        require(must.epochs_only_rise, seen.location, seen.epoch, epoch)
        seen.epoch = epoch
        if not replica.is_leader:
            return
        require(must.one_leader_per_epoch, history, epoch, broker_id)

        if not history.tainted:
            require(must.acknowledged_records_are_not_lost, history, epoch, broker_id, seen.model)

            require(must.leaders_hold_what_is_committed, history, epoch, broker_id, seen.model)

    # -- logs -----------------------------------------------------------------------------------

    def _check_log_end(
        self,
        broker_id: int,
        history: PartitionHistory,
        seen: ReplicaSnapshot,
        replica: Replica,
        *,
        led: bool,
    ) -> None:
        end, model = replica.log.log_end_offset, seen.model
        if seen.has_restarted(replica.log):
            model.reset_to(end)
        elif end < seen.end:
            if led and replica.is_leader:
                require(must.leaders_never_truncate, seen.location, seen.end, end)

            model.truncate(end)
        else:
            self._check_batches(history, seen, replica)
        seen.end = end
        partition = self._image.topics[TOPIC].partitions[history.index]
        if not history.tainted and broker_id in (*partition.isr, *partition.elr):
            self._require_in_sync(history, [broker_id])

    def _check_batches(
        self, history: PartitionHistory, seen: ReplicaSnapshot, replica: Replica
    ) -> None:
        log, end = replica.log, replica.log.log_end_offset
        while seen.end < end:
            found = log.read(seen.end, max_bytes=_ALL_AT_ONCE, upper_bound=end, min_one_batch=True)
            for buffer in found.buffers:
                for at, header in iter_headers(buffer):
                    marker = decode_marker(buffer, at) if header.is_control else None
                    self._check_batch(history, seen, replica, header, marker)
                    seen.end = header.next_offset

    def _check_batch(
        self,
        history: PartitionHistory,
        seen: ReplicaSnapshot,
        replica: Replica,
        header: BatchHeader,
        marker: EndTransactionMarker | None,
    ) -> None:
        epoch, base_offset, crc = header.partition_leader_epoch, header.base_offset, header.crc
        where, model = seen.location, seen.model
        copied = not replica.is_leader
        if model.all or not copied:  # an empty log begins where its leader's batch does
            require(must.offsets_are_contiguous, where, seen.end, base_offset, copied)

        require(must.epochs_in_a_log_only_rise, where, model, epoch)

        batch = history.batches.get((epoch, base_offset))
        if batch is None and replica.is_leader and epoch == replica.leader_epoch:
            require(must.refused_publishes_leave_nothing, history, base_offset, crc)
            require(must.records_lie_where_they_are_expected, history, base_offset, crc)
            producer = (header.producer_id, header.producer_epoch)
            batch = history.record(epoch, base_offset, header.next_offset, crc, model, producer)
            batch.size_bytes, batch.max_timestamp = header.size, header.max_timestamp
            batch.is_transactional = header.is_transactional
            batch.commits = None if marker is None else marker.committed
        require(must.followers_copy_what_leaders_wrote, where, batch, epoch, base_offset, crc)

        assert batch is not None
        if replica.log.local_log_start_offset < base_offset:  # what was before is not deleted
            require(must.truncated_logs_are_prefixes, where, model, batch)

        require(
            must.epoch_caches_match_records, where, epoch, replica.log.epoch_for_offset(base_offset)
        )

        if not model.all:
            model.start = base_offset
        model.append(batch)

    # -- high watermarks ------------------------------------------------------------------------

    def _check_high_watermark(
        self, broker: Broker, history: PartitionHistory, seen: ReplicaSnapshot, replica: Replica
    ) -> None:
        before, after = seen.high_watermark, replica.high_watermark
        seen.high_watermark = after
        where, model = seen.location, seen.model
        require(must.high_watermarks_lie_in_the_log, where, after, seen.end)

        if after > before and replica.is_leader:
            self._check_advance(broker, seen, before, after)
            lacks = self.lacks_replicas(replica)
            require(must.too_small_an_isr_moves_no_high_watermark, where, lacks, before, after)
        if history.tainted:
            return
        require(must.high_watermarks_never_fall, where, before, after)

        if replica.is_leader and history.commit(seen.epoch, model, after):
            partition = self._image.topics[TOPIC].partitions[history.index]
            self._require_in_sync(history, (*partition.isr, *partition.elr))
        require(must.logs_agree_below_the_high_watermark, where, history, model, after)

    def lacks_replicas(self, replica: Replica) -> bool:
        """Whether a leader has fewer in sync than acks=all needs."""
        return len(replica.isr) < min(self._enough, len(replica.assigned))

    def _check_advance(
        self, broker: Broker, seen: ReplicaSnapshot, before: int, after: int
    ) -> None:
        """A leader's high watermark rises, perhaps because of another broker's fetch."""
        via = self.current_link
        if via is None or via.target != broker.broker_id or self.current_api is not _FETCH:
            return
        source, replica = via.source, seen.replica
        if isinstance(source, ControllerNode):
            return
        if replica is not None and broker.view.brokers[source].fenced:
            counted = (*replica.isr, *(replica.pending_isr or ()))
            require(
                must.fenced_replicas_move_no_high_watermark,
                seen.location,
                source,
                counted,
                before,
                after,
            )

    def _require_in_sync(
        self, history: PartitionHistory, members: tuple[int, ...] | list[int]
    ) -> None:
        logs = {broker_id: self.log_of(broker_id, history.index) for broker_id in members}
        require(must.in_sync_replicas_hold_what_is_committed, history, members, logs)

    # -- the controller -------------------------------------------------------------------------

    def check_controller(self) -> None:
        """The controller may have made a new image."""
        if self._controller.image is self._image:
            return
        before, self._image = self._image, self._controller.image
        after = self._image
        if before.brokers is not after.brokers:
            for broker_id, broker in after.brokers.items():
                where = f"broker {broker_id} at the controller"
                was = before.brokers[broker_id].epoch
                require(must.epochs_only_rise, where, was, broker.epoch)

        if before.topics is not after.topics:
            old, new = before.topics[TOPIC], after.topics[TOPIC]
            for index, partition in enumerate(new.partitions):
                if old.partitions[index] is not partition:
                    self._check_partition(index, old.partitions[index], partition)
        self._check_registrations()

    def _check_registrations(self) -> None:
        brokers = self._image.brokers
        for index, partition in enumerate(self._image.topics[TOPIC].partitions):
            if partition.leader != NO_LEADER or not self.allows_unclean:
                require(must.fenced_replicas_are_not_in_sync, index, partition, brokers)

            require(must.leaders_are_in_sync, index, partition, brokers)

    def _check_partition(self, index: int, was: PartitionImage, now: PartitionImage) -> None:
        history = self.partitions[index]
        where = f"p{index} at the controller"
        require(must.epochs_only_rise, where, was.leader_epoch, now.leader_epoch)

        require(must.changes_have_epochs, index, was, now)
        history.lost_a_replica |= not set(was.replicas) <= set(now.replicas)
        self.add_to_digest(index, now.leader, now.leader_epoch, now.partition_epoch, *now.isr)
        joined = [b for b in (*now.isr, *now.elr) if b not in (*was.isr, *was.elr)]
        # Leaders propose who joins. What the controller makes of it by itself loses records.
        if joined and not isinstance(self.current_request, AlterPartitions):
            require(must.elections_are_clean, index, was, now, self.allows_unclean)
            history.taint(f"brokers {joined} were made the ISR, uncleanly")
        if not history.tainted:
            self._require_in_sync(history, joined)

    # -- what only a test does, and clients see ---------------------------------------------------

    def before_wipe(self, broker_id: int, index: int, *, knows_registrations: bool) -> None:
        """A replica is about to lose its disk.

        :param knows_registrations: Whether fetches say in which registration they are sent
            (KIP-903); without that, one from before the loss may still count.
        """
        history = self.partitions[index]
        history.lost_a_replica = True
        partition = self._image.topics[TOPIC].partitions[index]
        holders = {*partition.isr, *partition.elr}
        if holders == {broker_id}:
            history.taint(f"broker {broker_id} lost its disk, and no other was in sync")
        elif not knows_registrations:
            history.taint(f"broker {broker_id} lost its disk, and its fetches do not tell")

    def lose_tier(self, index: int) -> None:
        """The tier loses what it has of a partition, where there is one."""
        if self._tier is not None:
            self._tier.lose(index)

    def record_acknowledged(self, broker_id: int, index: int, base_offset: int, crc: int) -> None:
        """A broker has answered acks=all that a batch is safe."""
        history = self.partitions[index]
        if history.tainted:
            return
        # A request that waited for another partition: what was committed of this one may be gone
        # from this broker by now, deleted or with its disk.
        batch = self.log_of(broker_id, index).at(base_offset) or history.committed.at(base_offset)
        require(clients.acknowledged_records_are_committed, history, batch, base_offset, crc)

        assert batch is not None
        history.acknowledge(self._replicas[broker_id][index].epoch, batch)
        if not history.lost_a_replica:
            self._require_enough(history, batch)

    def _require_enough(self, history: PartitionHistory, batch: Batch) -> None:
        replicas = self._image.topics[TOPIC].partitions[history.index].replicas
        logs = [self.log_of(b, history.index) for b in replicas]
        require(
            clients.enough_replicas_hold_what_is_acknowledged, history, batch, logs, self._enough
        )

    # -- in the end -------------------------------------------------------------------------------

    def check_healed(self) -> None:
        """All is well again and nothing is on its way."""
        for index, partition in enumerate(self._controller.image.topics[TOPIC].partitions):
            found = {b: self._cluster.brokers[b].replicas[TOPIC, index] for b in partition.replicas}
            ends = {}
            for broker_id, replica in found.items():
                log = self.log_of(broker_id, index)
                log.delete_before(replica.log.local_log_start_offset)
                ends[broker_id] = (log, replica.log.log_end_offset, replica.high_watermark)
            tiered = self._tier is not None
            require(must.healed_partitions_converge, index, partition, ends, is_tiered=tiered)
            for broker_id, replica in found.items():
                self._check_log(self._replicas[broker_id][index], replica.log)

    def _check_log(self, seen: ReplicaSnapshot, log: Log) -> None:
        end, held = log.log_end_offset, []
        start = max(log.local_log_start_offset, seen.model.start)
        at = start
        while at < end:
            found = log.read(at, max_bytes=_ALL_AT_ONCE, upper_bound=end, min_one_batch=True)
            headers = [header for buffer in found.buffers for _, header in iter_headers(buffer)]
            held += [header.crc for header in headers]
            at = headers[-1].next_offset
        watched = [b.crc for b in seen.model.all if b.next_offset > start]
        require(must.logs_are_as_they_were_watched, seen.location, held, watched)
