"""One replica of a tiered topic: the metadata of its remote segments, and the steps of its task.

It stands for one role in one leader epoch; the next election makes a new one.
"""

import random
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol
from uuid import UUID

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.core.async_tasks import AsyncSteps, AsyncTask, OnDone, delete
from fencepost.broker.core.events import Events, Kind
from fencepost.broker.core.scheduler import Scheduler, Timer
from fencepost.broker.metadata.image import ClusterImage
from fencepost.broker.network.links import BrokerId
from fencepost.broker.replication.replica import Replica
from fencepost.broker.tiering import remote_retention
from fencepost.broker.tiering.remote_segments import (
    copy_segment,
    epochs_within,
    list_metadata,
    start_copy,
)
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.log.interface import SegmentCopy
from fencepost.storage.tier.lineage import NOTHING_TIERED, RemoteSegments
from fencepost.storage.tier.object_store import ObjectStore, TierError
from fencepost.storage.tier.segment_metadata import (
    CorruptMetadata,
    RemoteSegment,
    TopicIdPartition,
    segment_to_event,
)


class TierNode(Protocol):
    """What the remote tier needs of the broker that uses it."""

    broker_id: BrokerId
    view: ClusterImage
    configs: BrokerConfigs
    scheduler: Scheduler
    events: Events
    rng: random.Random


class TieredReplica:
    """A replica and its partition in the tier.

    :param segments: What its broker knew before of the partition in the tier.
    """

    def __init__(
        self, broker: TierNode, replica: Replica, store: ObjectStore, segments: RemoteSegments
    ) -> None:
        self.replica = replica
        self.leader_epoch = replica.leader_epoch
        self.is_leader = replica.is_leader
        self.partition = TopicIdPartition(
            topic=replica.topic, topic_id=replica.topic_id, index=replica.index
        )
        self.segments = segments
        self.is_loaded = False
        """Whether `segments` is what the tier had at some time."""
        self.highest_tiered_offset: int | None = None
        """The last offset (inclusive) of the log that the tier has, -1 where it has none; None
        until the task has run."""
        self._broker = broker
        self._store = store
        self._failed: set[UUID] = set()
        """Copies that are known to have come to nothing."""
        self._strays: frozenset[str] = frozenset()
        """Objects that had no metadata beside them when the tier was looked at last."""
        self._task: AsyncTask[None] | None = None
        self._waiting: deque[tuple[Callable[[], AsyncSteps[None]], OnDone]] = deque()
        self._on_done: OnDone | None = None
        """Of the job."""
        self.timer: Timer | None = None
        """When the task runs next; the manager's."""

    @property
    def is_current(self) -> bool:
        """Whether the replica is still what it was when this was made."""
        replica = self.replica
        return replica.leader_epoch == self.leader_epoch and replica.is_leader is self.is_leader

    @property
    def is_busy(self) -> bool:
        """Whether something is being done."""
        return self._task is not None

    # -- one task at a time ---------------------------------------------------------------------

    def enqueue(self, work: Callable[[], AsyncSteps[None]], then: OnDone) -> None:
        """Do something now, or when all is done that was asked for before."""
        self._waiting.append((work, then))
        self._run_next()

    def stop(self) -> None:
        """Do nothing any more; who waits is told, at the end of this turn."""
        gone = TierError(
            str(self.partition), "the replica is not what it was, or not here any more"
        )
        if self.timer is not None:
            self.timer.end()
        job, self._task = self._task, None
        if job is not None:
            job.stop()
        waiting = [then for _, then in self._waiting]
        self._waiting.clear()
        if self._on_done is not None:
            waiting.insert(0, self._on_done)
            self._on_done = None
        for then in waiting:
            self._broker.scheduler.soon(partial(then, gone))

    def _run_next(self) -> None:
        while self._task is None and self._waiting:
            work, self._on_done = self._waiting.popleft()
            self._task = AsyncTask(self._guarded(work()), self._end)
            self._task.start()

    def _end(self, result: TierError | None) -> None:
        self._task = None
        then, self._on_done = self._on_done, None
        if result is not None:
            self._emit_failure(str(result))
        if then is not None:
            then(result)
        self._run_next()

    def _guarded(self, steps: AsyncSteps[None]) -> AsyncSteps[None]:
        """A log that fails takes its replica offline."""
        try:
            yield from steps
        except StorageFailure as failure:
            self.replica.mark_offline(self.replica, failure)
            raise TierError(str(self.partition), failure.why) from failure

    # -- the task -------------------------------------------------------------------------------

    def task(self) -> AsyncSteps[None]:
        """The task, once. What fails does not keep the rest from being done.

        :raises TierError: The first of what failed.
        """
        yield from self.load()
        if not self.is_leader:
            self.highest_tiered_offset = self._find_highest()
            self.delete_local(self._broker.scheduler.wall_ms())
            return
        self.highest_tiered_offset = max(self._tiered, self._find_highest())
        self._move_start_to_tier()
        failure = yield from self._try(self._clean())
        if not self.replica.log.config.remote_log_copy_disable:
            failure = (yield from self._try(self._copy())) or failure
        self.delete_local(self._broker.scheduler.wall_ms())
        failure = (yield from self._try(self._expire())) or failure
        if failure is not None:
            raise failure

    def expiration(self) -> AsyncSteps[None]:
        """What the task does about retention in the tier.

        :raises TierError: When the tier does not do it all.
        """
        yield from self.load()
        yield from self._clean()
        yield from self._expire()

    def load(self) -> AsyncSteps[None]:
        """Learn what the tier has.

        :raises TierError: When it does not tell.
        """
        before = {each.id for each in self.segments if each.is_served}
        strays = yield from list_metadata(
            self._store,
            self.partition,
            self.segments,
            reread=not self.is_loaded,
            corrupt=self._emit_corrupt,
        )
        self.is_loaded = True
        if not self.is_leader:
            return
        if self.highest_tiered_offset is not None:
            found = self._find_highest()
            if before.issubset(each.id for each in self.segments):
                # Who was deposed while it uploaded may have gone on.
                self.highest_tiered_offset = max(self.highest_tiered_offset, found)
            else:
                # The tier has lost what it had. What is here of it is to be copied once more.
                self.highest_tiered_offset = found
        known, self._strays = self._strays & strays, strays
        if known:
            yield from delete(self._store, sorted(known))

    def delete_local(self, now_ms: int | None) -> int:
        """Delete here what the tier has.

        :param now_ms: What local.retention.* lets go now; None: all of it.
        :returns: How many segments.
        """
        log = self.replica.log
        # Not beyond the high watermark, as in Kafka: one that leads no more may not know all that
        # its successor has committed and tiered.
        until = min(self._tiered + 1, self.replica.high_watermark)
        count = log.delete_local(until, now_ms=now_ms)
        if count:
            self._broker.events.emit(
                Kind.LOCAL_SEGMENTS_DELETED,
                topic=self.partition.topic,
                partition=self.partition.index,
                broker=self._broker.broker_id,
                segments=count,
                local_log_start_offset=log.local_log_start_offset,
            )
        return count

    @property
    def _tiered(self) -> int:
        return NOTHING_TIERED if self.highest_tiered_offset is None else self.highest_tiered_offset

    @staticmethod
    def _try(steps: AsyncSteps[None]) -> AsyncSteps[TierError | None]:
        try:
            yield from steps
        except TierError as error:
            return error
        return None

    def _find_highest(self) -> int:
        log = self.replica.log
        return self.segments.highest_tiered(log.epoch_entries(), log.log_end_offset)

    def _move_start_to_tier(self) -> None:
        """Begin the log where the tier does, as in Kafka; where it has nothing, with what is here.

        Another leader may have expired segments and not have told; or the tier has lost some. A
        new leader's high watermark may lie before that for a while: the next run does the rest.
        """
        log = self.replica.log
        first = self.segments.first_offset(log.epoch_entries(), log.log_start_offset)
        start = log.local_log_start_offset if first is None else first
        self.replica.delete_records(min(start, self.replica.high_watermark))

    def _copy(self) -> AsyncSteps[None]:
        """Copy what may be copied, in order."""
        log = self.replica.log
        done = self._tiered
        while True:
            following = max(done + 1, log.local_log_start_offset)
            copy = log.segment_to_upload(following, self.replica.last_stable_offset)
            if copy is None or not epochs_within(copy):
                return
            if copy.size_bytes:
                yield from self._upload(copy)
                self.highest_tiered_offset = max(self._tiered, copy.end_offset)
            done = copy.end_offset

    def _upload(self, copy: SegmentCopy) -> AsyncSteps[None]:
        broker = self._broker
        started = start_copy(
            copy,
            self.partition,
            segment_id=UUID(int=broker.rng.getrandbits(128)),
            broker_id=broker.broker_id,
            leader_epoch=self.leader_epoch,
            now_ms=broker.scheduler.wall_ms(),
        )
        try:
            finished = yield from copy_segment(
                self._store,
                self.segments,
                started,
                copy,
                index_interval_bytes=self.replica.log.config.index_interval_bytes,
                now_ms=broker.scheduler.wall_ms,
            )
        except TierError:
            self._failed.add(started.id)
            raise
        self._emit_segment(Kind.SEGMENT_UPLOADED, finished)

    @property
    def _is_deposed(self) -> bool:
        """Whether a later leader has copied segments, which this one must not judge by its log."""
        return any(segment.leader_epoch > self.leader_epoch for segment in self.segments)

    def _clean(self) -> AsyncSteps[None]:
        """Delete what is left of copies and deletions that were not finished."""
        if self._is_deposed:
            return
        now_ms = self._broker.scheduler.wall_ms()
        for segment in remote_retention.unfinished_segments(self.segments, self._failed, now_ms):
            yield from self._remove(segment)
            self._failed.discard(segment.id)

    def _expire(self) -> AsyncSteps[None]:
        """Delete by retention, then delete the segments that are no longer referenced."""
        if self._is_deposed:
            return
        log = self.replica.log
        # As the tier says, also where the task has not run: what it has must not count twice.
        tiered = max(self._tiered, self._find_highest())
        ranges = self.segments.ranges(log.epoch_entries())
        kept = [each for each in ranges if each.end_offset >= log.log_start_offset]
        oldest = remote_retention.expired_segments(
            kept if log.config.is_deleted else (),
            log.config,
            only_local_bytes=sum(s.size_bytes for s in log.segments() if s.base_offset > tiered),
            high_watermark=self.replica.high_watermark,
            now_ms=self._broker.scheduler.wall_ms(),
        )
        if oldest.log_start_offset is not None:
            # First, as in Kafka: the next leader must know that these segments are deleted.
            self.replica.delete_records(oldest.log_start_offset)
        unreferenced = remote_retention.unreferenced_segments(
            self.segments, log.epoch_entries(), log.log_start_offset
        )
        doomed = dict.fromkeys([*oldest.segments, *unreferenced])
        # Of those that overlap the shorter ones first: a leader that is elected meanwhile, and does
        # not know yet where its log begins now, finds no gap before its local log.
        for segment in sorted(doomed, key=lambda each: each.end_offset):
            yield from self._remove(segment)
            self._emit_segment(Kind.SEGMENT_EXPIRED, segment)

    def _remove(self, segment: RemoteSegment) -> AsyncSteps[None]:
        yield from remote_retention.delete_segment(
            self._store,
            self.segments,
            segment,
            broker_id=self._broker.broker_id,
            now_ms=self._broker.scheduler.wall_ms(),
        )

    # -- events ---------------------------------------------------------------------------------

    def _emit_segment(self, kind: Kind, segment: RemoteSegment) -> None:
        self._broker.events.emit(
            kind,
            topic=self.partition.topic,
            partition=self.partition.index,
            broker=self._broker.broker_id,
            **segment_to_event(segment),
        )

    def _emit_corrupt(self, key: str, error: CorruptMetadata) -> None:
        self._emit_failure(f"{key}: {error}")

    def _emit_failure(self, why: str) -> None:
        self._broker.events.emit(
            Kind.TIER_FAILED,
            topic=self.partition.topic,
            partition=self.partition.index,
            broker=self._broker.broker_id,
            error=why,
        )
