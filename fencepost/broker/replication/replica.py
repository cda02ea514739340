"""One replica: a log on one broker, with its role, ISR and high watermark.

A replica is a follower at first; each image may change its role:

    FOLLOWER --make_leader(e)--> LEADER --make_follower(e')--> FOLLOWER        e' > e

A leader's high watermark is the lowest log end of the in-sync replicas, which it knows from their
fetches (KIP-101); a follower's is that of its leader's last response. A new leader records its log
end as the start of the new epoch at once, not with its first batch: OffsetsForLeaderEpoch of the
epoch before must return it, and the gate of KIP-207 depends on it.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from uuid import UUID

from fencepost.broker.core.waits import WatchList
from fencepost.broker.metadata.image import NO_LEADER, PartitionImage
from fencepost.broker.replication.follower_progress import UNKNOWN_OFFSET, FollowerProgress
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.record_reader import ReadBudget
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.log.append_result import AppendOrigin, AppendRejected, AppendResult
from fencepost.storage.log.interface import Log
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.log.producer_state import ProducerStateEntry
from fencepost.storage.log.staging import StagedRecords, Staging
from fencepost.storage.log.verification import VerificationGuard

NotifyFollower = Callable[[int, str, int], None]
"""Notifies the follower of a partition on a broker: broker id, topic, index."""
MaybeExpandIsr = Callable[["Replica", int], None]
"""Proposes a follower for this leader's ISR if it may join."""
MarkOffline = Callable[["Replica", StorageFailure], None]
"""Takes a replica offline whose log can't be used any more."""


class Replica:
    """A partition's replica on one broker."""

    __slots__ = (
        "assigned",
        "broker_id",
        "checkpointed_high_watermark",
        "end_watch",
        "epoch_start_offset",
        "failed",
        "followers",
        "high_watermark",
        "index",
        "is_leader",
        "isr",
        "leader",
        "leader_epoch",
        "log",
        "mark_offline",
        "maybe_expand_isr",
        "min_insync_replicas",
        "notify_follower",
        "partition_epoch",
        "pending_isr",
        "proposal_lost",
        "topic",
        "topic_id",
        "watermark_watch",
    )

    def __init__(
        self,
        *,
        topic: str,
        topic_id: UUID,
        index: int,
        broker_id: int,
        log: Log,
        notify_follower: NotifyFollower,
        maybe_expand_isr: MaybeExpandIsr,
        mark_offline: MarkOffline | None = None,
        high_watermark: int = 0,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.broker_id = broker_id
        self.log = log
        self.notify_follower = notify_follower
        self.maybe_expand_isr = maybe_expand_isr
        self.mark_offline: MarkOffline = mark_offline or _raise_failure
        self.failed = False
        """Whether its log has failed: then it is used no longer."""
        self.is_leader = False
        """Whether it leads its partition, as far as its broker knows."""
        self.leader = NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.assigned: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        """Of the last image."""
        self.pending_isr: tuple[int, ...] | None = None
        """Leader only: the ISR that it has proposed, until it knows the outcome."""
        self.proposal_lost = False
        """Whether the proposal, or its answer, did not arrive."""
        self.min_insync_replicas = 1
        # What is not here any more is in the tier, or deleted: both happen below it alone.
        first = log.local_log_start_offset
        self.high_watermark = min(max(high_watermark, first), log.log_end_offset)
        self.checkpointed_high_watermark = self.high_watermark
        """The high watermark that a crash leaves behind."""
        self.epoch_start_offset = UNKNOWN_OFFSET
        """Leader only: its log end when it was elected (KIP-207)."""
        self.followers: dict[int, FollowerProgress] = {}
        """Leader only: the other replicas, by broker id."""
        self.end_watch = WatchList()
        """Notified when records were appended or the replica changed its role."""
        self.watermark_watch = WatchList()
        """Notified when the high or the low watermark rose or the replica changed its role."""

    @property
    def last_stable_offset(self) -> int:
        """Exclusive upper bound of what a read_committed consumer may read."""
        return self.log.last_stable_offset(self.high_watermark)

    @property
    def gate_is_open(self) -> bool:
        """Leader: whether the high watermark has reached the start of its epoch (KIP-207)."""
        return self.high_watermark >= self.epoch_start_offset

    @property
    def ends_after_gap(self) -> bool:
        """Whether it truncates in rounds: a batch that lay across an offset went whole."""
        return self.log.batches_end_offset < self.log.log_end_offset

    def make_leader(self, image: PartitionImage, *, now_ms: int) -> None:
        """Lead in the image's epoch, or take over its changed ISR within the epoch."""
        if self.is_leader and self.leader_epoch == image.leader_epoch:
            self._update_leader(image)
            return
        self._apply_image(image)
        self.is_leader = True
        self.leader_epoch = image.leader_epoch
        if self.ends_after_gap:  # no follower would ever reach such an end
            self.truncate_to(self.log.batches_end_offset)
        self.epoch_start_offset = self.log.log_end_offset
        self.log.assign_epoch_start(image.leader_epoch, self.epoch_start_offset)
        self.followers = {}
        self._update_followers()
        for broker_id in self.isr:
            if broker_id != self.broker_id:
                self.followers[broker_id].last_caught_up_ms = now_ms
        self._maybe_increment_high_watermark()
        self._notify_watchers()
        self._notify_followers()

    def _update_leader(self, image: PartitionImage) -> None:
        """Take a newer image of the epoch that it leads in; an older one says nothing new."""
        if image.partition_epoch > self.partition_epoch:
            for broker_id in set(self.isr) - set(image.isr):
                if broker_id in self.followers:
                    self.followers[broker_id] = FollowerProgress()
            self._apply_image(image)
            self._update_followers()
        self._maybe_increment_high_watermark()
        self.reevaluate_followers(tuple(self.followers))

    def reevaluate_followers(self, broker_ids: Iterable[int]) -> None:
        """Leader: these brokers, or what they are to the partition, have changed."""
        for broker_id in broker_ids:
            self.maybe_expand_isr(self, broker_id)
            if broker_id in self.followers and broker_id not in (self.pending_isr or self.isr):
                self.notify_follower(broker_id, self.topic, self.index)  # it has to fetch to join

    def make_follower(self, image: PartitionImage) -> None:
        """Follow the image's leader in its epoch."""
        changed = self.is_leader or self.leader_epoch != image.leader_epoch
        self._apply_image(image)
        self.is_leader = False
        self.leader_epoch = image.leader_epoch
        self.epoch_start_offset = UNKNOWN_OFFSET
        self.followers = {}
        if changed:
            if self.ends_after_gap:  # another leader may have the batch that went
                self.truncate_to(self.log.batches_end_offset)
            self._notify_watchers()

    def resign(self) -> None:
        """The partition is deleted or moved away: let its waits try again."""
        self.is_leader = False
        self.leader = NO_LEADER
        self.followers = {}
        self._notify_watchers()

    def append(
        self,
        records: Buffer,
        *,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        allow_zstd: bool = True,
        budget: ReadBudget | None = None,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> AppendResult | AppendRejected:
        """Append as leader: assign offsets, stamp the epoch, keep the very buffer.

        The parameters are those of `Log.append_as_leader`.
        """
        try:
            result = self.log.append_as_leader(
                records,
                leader_epoch=self.leader_epoch,
                now_ms=now_ms,
                origin=origin,
                allow_zstd=allow_zstd,
                budget=budget,
                guard=guard,
                transaction_version=transaction_version,
            )
        except StorageFailure as failure:
            return self._failed(failure)
        if isinstance(result, AppendResult) and not result.duplicate:
            self._on_append()
        return result

    def begin_staging(self, *, now_ms: int) -> Staging:
        """Begin to check what a request brings, before any of it is appended (KIP-27)."""
        return self.log.stage(now_ms=now_ms)

    def stage_records(
        self,
        staging: Staging,
        records: Buffer,
        *,
        allow_zstd: bool,
        budget: ReadBudget,
        guard: VerificationGuard | None = None,
    ) -> StagedRecords | AppendRejected:
        """Check what a request has next for this partition: see `Staging.add`."""
        try:
            return staging.add(records, allow_zstd=allow_zstd, budget=budget, guard=guard)
        except StorageFailure as failure:
            return self._failed(failure)

    def append_staged(self, staged: StagedRecords, *, now_ms: int) -> AppendResult | AppendRejected:
        """Append as leader what has been checked; nothing was appended meanwhile."""
        try:
            result = self.log.append_staged(staged, leader_epoch=self.leader_epoch, now_ms=now_ms)
        except StorageFailure as failure:
            return self._failed(failure)
        if not result.duplicate:
            self._on_append()
        return result

    def _failed(self, failure: StorageFailure) -> AppendRejected:
        self.mark_offline(self, failure)
        return AppendRejected(error=ErrorCode.KAFKA_STORAGE_ERROR)

    def _on_append(self) -> None:
        self._maybe_increment_high_watermark()
        self.end_watch.notify()
        self._notify_followers()

    def delete_records(self, offset: int) -> None:
        """Leader: move the log start forward, and let the followers know (KIP-107).

        :param offset: The new log start, at most the high watermark.
        """
        if self.log.advance_log_start(offset):
            self.watermark_watch.notify()
            self._notify_followers()

    def low_watermark(self, alive: Container[int]) -> int:
        """Leader: the least log start of the replicas on brokers that are ``alive``.

        -1 while one of them has not fetched in this leader's epoch.
        """
        starts = [p.log_start_offset for b, p in self.followers.items() if b in alive]
        return min([self.log.log_start_offset, *starts])

    def start_over_if_deleted(self, leader_start_offset: int, *, now_ms: int) -> bool:
        """Follower: begin where the leader's log does, if all that was here is deleted there.

        Where the log ends after a gap, the leader may have deleted what would fill it: a marker,
        without which a transaction stays open here. In Kafka it does.

        :returns: Whether it has nothing any more.
        """
        if not self.ends_after_gap or leader_start_offset < self.log.batches_end_offset:
            return False
        self.truncate_fully_and_start_at(leader_start_offset, now_ms=now_ms)
        return True

    def append_fetched(self, batches: Sequence[Buffer], *, now_ms: int) -> None:
        """Append as follower what the leader's fetch answered, as it is."""
        self.log.append_as_follower(batches, now_ms=now_ms, high_watermark=self.high_watermark)
        self.end_watch.notify()

    def update_high_watermark(self, leader_watermark: int) -> None:
        """Follower: the leader's high watermark, as far as the own log reaches."""
        if leader_watermark <= self.high_watermark:
            return
        watermark = min(leader_watermark, self.log.log_end_offset)
        if watermark > self.high_watermark:
            self.high_watermark = watermark
            self.watermark_watch.notify()

    def truncate_to(self, offset: int) -> bool:
        """Follower: drop everything from ``offset`` on; the high watermark is never beyond the end.

        :returns: Whether any record went.
        """
        cut = self.log.truncate_to(min(offset, self.log.log_end_offset))
        self.high_watermark = min(self.high_watermark, self.log.log_end_offset)
        return cut

    def truncate_fully_and_start_at(self, offset: int, *, now_ms: int) -> None:
        """Follower: drop everything and go on at ``offset``, which is the log start then."""
        self.log.truncate_fully_and_start_at(offset, now_ms=now_ms)
        self.high_watermark = offset

    def start_from_tier(
        self,
        offset: int,
        *,
        log_start_offset: int,
        epochs: Sequence[EpochEntry],
        producers: Sequence[ProducerStateEntry],
        now_ms: int,
    ) -> None:
        """Follower: drop everything and go on at ``offset``; the tier has what comes before.

        Nothing is tiered above the high watermark, so that it reaches at least there.

        :param epochs: Of the records from the log start on, from the tier.
        :param producers: As they were before ``offset``, from the tier.
        """
        self.log.start_from_tier(
            offset,
            log_start_offset=log_start_offset,
            epochs=epochs,
            producers=producers,
            now_ms=now_ms,
        )
        self.high_watermark = offset
        self.watermark_watch.notify()

    def record_fetch(
        self,
        broker_id: int,
        *,
        fetch_offset: int,
        log_start_offset: int,
        now_ms: int,
        broker_epoch: int = -1,
    ) -> None:
        """Leader: a follower fetched from ``fetch_offset``, which is its log end.

        :param fetch_offset: Exclusive end of the follower's log.
        :param broker_epoch: The registration that it fetches in; -1 where it does not say.
        """
        progress = self.followers.get(broker_id)
        if progress is None:
            return
        progress.broker_epoch = broker_epoch
        follower_start_moved = log_start_offset > progress.log_start_offset
        progress.update_fetch_state(
            at=fetch_offset,
            log_start_offset=log_start_offset,
            leader_end=self.log.log_end_offset,
            now_ms=now_ms,
        )
        if broker_id not in self.isr:
            self.maybe_expand_isr(self, broker_id)
        if fetch_offset > self.high_watermark:
            self._maybe_increment_high_watermark(told=broker_id)
        if follower_start_moved:
            self.watermark_watch.notify()

    def withdraw_proposal(self) -> None:
        """Leader: the controller has refused what it proposed, and the ISR is as it was."""
        self.pending_isr = None
        self._maybe_increment_high_watermark()

    def is_caught_up(self, follower: FollowerProgress) -> bool:
        """Leader: whether a follower's log reaches the high watermark and this leader's epoch.

        A follower that has not fetched since it was dropped from the ISR has an unknown log end.
        """
        return follower.log_end_offset >= max(self.high_watermark, self.epoch_start_offset)

    def out_of_sync_followers(self, oldest_ms: int) -> set[int]:
        """Leader: followers of the ISR that lack records, and last had all before ``oldest_ms``."""
        end = self.log.log_end_offset
        return {
            broker_id
            for broker_id, progress in self.followers.items()
            if broker_id in self.isr
            and progress.log_end_offset < end
            and progress.last_caught_up_ms < oldest_ms
        }

    def record_fetch_response(self, broker_id: int) -> None:
        """Leader: a fetch of this follower is answered with the present high watermark."""
        progress = self.followers.get(broker_id)
        if progress is not None:
            progress.high_watermark = self.high_watermark

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch at or below the asked one, and its exclusive end; (-1, -1) if unknown.

        The current epoch ends at the log end (KIP-279, KIP-320).
        """
        if epoch == self.leader_epoch and self.is_leader:
            return epoch, self.log.log_end_offset
        found = self.log.end_offset_for_epoch(epoch)
        return found.epoch, found.end_offset

    def has_min_isr(self) -> bool:
        """Whether acks=all may append: the ISR is as large as ``min.insync.replicas`` asks for.

        It never asks for more replicas than the partition has.
        """
        size = len(self.isr)
        return size >= self.min_insync_replicas or size >= len(self.assigned)

    def _apply_image(self, image: PartitionImage) -> None:
        self.leader = image.leader
        self.isr = image.isr
        self.pending_isr = None
        self.assigned = image.replicas
        self.partition_epoch = image.partition_epoch

    def _update_followers(self) -> None:
        self.followers = {
            broker_id: self.followers.get(broker_id) or FollowerProgress()
            for broker_id in self.assigned
            if broker_id != self.broker_id
        }

    def _maybe_increment_high_watermark(self, told: int | None = None) -> None:
        """Move to the lowest log end of the ISR, never back, and let the followers know.

        A proposed ISR counts as well: the controller may have accepted it already.

        :param told: A follower that is being answered, and so needs no ring.
        """
        watermark, pending = self.log.log_end_offset, self.pending_isr
        if not self.followers:  # the only replica
            if watermark > self.high_watermark and self.has_min_isr():
                self.high_watermark = watermark
                self.watermark_watch.notify()
            return
        for broker_id in self.isr if pending is None else (*self.isr, *pending):
            if broker_id != self.broker_id:
                watermark = min(watermark, self.followers[broker_id].log_end_offset)
        if watermark <= self.high_watermark or not self.has_min_isr():
            return
        self.high_watermark = watermark
        self.watermark_watch.notify()
        for broker_id, progress in self.followers.items():
            if broker_id != told and progress.high_watermark < watermark:
                self.notify_follower(broker_id, self.topic, self.index)

    def _notify_followers(self) -> None:
        for broker_id in self.followers:
            self.notify_follower(broker_id, self.topic, self.index)

    def _notify_watchers(self) -> None:
        self.end_watch.notify()
        self.watermark_watch.notify()


def _raise_failure(_replica: Replica, failure: StorageFailure) -> None:
    """Raise the failure: there is no manager that takes the replica offline."""
    raise failure
