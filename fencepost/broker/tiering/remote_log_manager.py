"""What one broker does with the remote tier: Kafka's RemoteLogManager (KIP-405).

For each replica of a topic with ``remote.storage.enable`` a task runs when it becomes leader or
follower, and every ``remote.log.manager.task.interval.ms`` from then on. A leader's task

1. learns what the tier has of the partition, which tells the highest tiered offset of its own
   lineage: until then that is unknown, however much the tier may have;
2. deletes what was left of copies that came to nothing;
3. copies each closed segment below the last stable offset that the tier does not have, in order;
4. deletes here what the tier has and ``local.retention.*`` lets go;
5. expires what ``retention.*`` lets go in the tier, and moves the log start forward.

A follower's learns as well, and deletes here. Of one partition one thing is done at a time. What
fails is told as an event and done again at the next run; where the leadership ends, so does the
task, and what the tier answers later changes nothing.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from fencepost.broker.core.async_tasks import AsyncTask, OnDone
from fencepost.broker.core.events import Kind
from fencepost.broker.metadata.image import ClusterImage, PartitionImage, TopicImage
from fencepost.broker.replication.replica import Replica
from fencepost.storage.tier.lineage import NOTHING_TIERED, RemoteSegments
from fencepost.storage.tier.object_store import MemoryObjectStore, ObjectStore, TierError
from fencepost.storage.tier.segment_metadata import RemoteSegment, TopicIdPartition

if TYPE_CHECKING:
    from fencepost.broker.replication.follower.start_offset import AuxiliaryState
    from fencepost.broker.tiering.remote_reader import RemoteReader
    from fencepost.broker.tiering.tiered_replica import TieredReplica, TierNode

# What does the work is imported when there is some: most clusters have no tier, and start quicker.

UNKNOWN = -1


class RemoteView(Struct, frozen=True, kw_only=True):
    """What a leader knows of its partition in the tier.

    :ivar start_offset: The first offset that the tier has and that may be read; -1 without one.
    :ivar last_tiered_offset: Inclusive; -1 while it is unknown, and where nothing was tiered.
    :ivar pending_upload_offset: The next one to be tiered; -1 in the same cases.
    :ivar segments: Those of its lineage that are served, by start offset.
    """

    start_offset: int
    last_tiered_offset: int
    pending_upload_offset: int
    segments: tuple[RemoteSegment, ...]


class RemoteLogManager:
    """The remote tier, as one broker uses it.

    :param objects: The tier, behind its faults; None where
        ``remote.log.storage.system.enable`` is false: then it does nothing.
    """

    def __init__(self, broker: "TierNode", objects: ObjectStore | None) -> None:
        self.objects = objects
        self._broker = broker
        self._tiered: dict[tuple[str, int], TieredReplica] = {}
        self._purges: dict[TopicIdPartition, AsyncTask[bool] | None] = {}
        """Partitions of which all is to go from the tier; None: it is looked at again later."""
        self._known: set[TopicIdPartition] = set()
        """Those that there may be something of in the tier, and were replicas of here."""

    # -- the broker's replicas -------------------------------------------------------------------

    def on_leadership_change(self, replica: Replica) -> None:
        """A replica leads or follows, in a new epoch or on, or its configs have changed."""
        if self.objects is None:
            return
        key = (replica.topic, replica.index)
        tiered = self._tiered.get(key)
        if not replica.log.config.remote_storage_enable:
            if tiered is not None:
                self._disable(tiered)
            return
        if tiered is not None and tiered.replica is replica and tiered.is_current:
            return
        if tiered is not None:
            tiered.stop()
        tiered = self._tiered[key] = self._new_tiered_replica(replica, tiered)
        self._known.add(tiered.partition)
        self._cancel_purge(tiered.partition)
        self._run(tiered)

    def stop_partition(self, replica: Replica) -> None:
        """A replica is not here any more: what it does ends."""
        tiered = self._tiered.get((replica.topic, replica.index))
        if tiered is not None and tiered.replica is replica:
            del self._tiered[replica.topic, replica.index]
            tiered.stop()

    def stop_partitions(self) -> None:
        """No replica is here any more: all that they do ends."""
        for tiered in self._tiered.values():
            tiered.stop()
        self._tiered.clear()

    def delete_topic(self, topic: TopicImage) -> None:
        """A topic was deleted: what this broker is responsible for goes from the tier.

        To be called while the replicas are known yet. The tier is asked again every task interval
        until it has nothing any more, as long as this broker runs.

        :param topic: As it was.
        """
        for index, partition in enumerate(topic.partitions if self._known else ()):
            whose = TopicIdPartition(topic=topic.name, topic_id=topic.topic_id, index=index)
            if whose in self._known:
                self._known.remove(whose)
                if self._is_responsible(partition):
                    self._purge(whose)

    def stop(self) -> None:
        """The broker's process ends, and with it all that it was doing."""
        self._known |= self._purges.keys()
        self.stop_partitions()
        for job in self._purges.values():
            if job is not None:
                job.stop()
        self._purges.clear()

    def start(self, image: ClusterImage) -> None:
        """The broker's process starts: topics may have been deleted while it was down."""
        gone = [each for each in self._known if each.topic_id not in image.names]
        self._known.difference_update(gone)
        for partition in sorted(gone, key=str):
            self._purge(partition)

    # -- state ----------------------------------------------------------------------------------

    @cached_property
    def reader(self) -> "RemoteReader":
        """What reads segments for consumers."""
        from fencepost.broker.tiering.remote_reader import RemoteReader

        configs = self._broker.configs
        return RemoteReader(self, lambda: configs.remote_log_index_file_cache_total_size_bytes)

    def state(self, replica: Replica) -> RemoteView | None:
        """What a leader knows of the tier; None of other replicas, and of topics without one."""
        tiered = self._find_leader(replica)
        if tiered is None:
            return None
        log, highest = replica.log, tiered.highest_tiered_offset
        if highest is None:
            return RemoteView(
                start_offset=UNKNOWN,
                last_tiered_offset=UNKNOWN,
                pending_upload_offset=UNKNOWN,
                segments=(),
            )
        lineage = log.epoch_entries()
        first = tiered.segments.first_offset(lineage, log.log_start_offset)
        return RemoteView(
            start_offset=UNKNOWN if first is None else first,
            last_tiered_offset=highest,
            pending_upload_offset=(
                UNKNOWN if highest == NOTHING_TIERED else max(highest + 1, log.log_start_offset)
            ),
            segments=tuple(
                each.segment
                for each in tiered.segments.ranges(lineage)
                if each.end_offset >= log.log_start_offset
            ),
        )

    def highest_tiered(self, replica: Replica) -> int | None:
        """The last offset (inclusive) that the tier has of a replica's log.

        A leader's does not fall while it leads, also where all is expired.

        :returns: None until its task has run, -1 where it has run and nothing was tiered.
        """
        tiered = self._find(replica)
        return None if tiered is None else tiered.highest_tiered_offset

    def loaded_segments(self, replica: Replica) -> RemoteSegments | None:
        """What the tier had of a replica's partition when it was looked at; None: it never was."""
        tiered = self._find(replica)
        return tiered.segments if tiered is not None and tiered.is_loaded else None

    def segments(
        self, replica: Replica, then: Callable[[RemoteSegments | TierError], None]
    ) -> None:
        """What the tier has of a replica's partition, also before its task has run.

        For reading; `highest_tiered` stays unknown by it. It is not a copy, and lives on.

        :param then: Called now where it is known, else later.
        """
        tiered = self._find(replica)
        if tiered is None:
            then(_no_tier(replica))
        elif tiered.is_loaded:
            then(tiered.segments)
        else:
            tiered.enqueue(
                tiered.load, lambda error: then(tiered.segments if error is None else error)
            )

    def build_auxiliary_state(
        self,
        replica: Replica,
        *,
        epoch: int,
        offset: int,
        then: Callable[["AuxiliaryState | TierError"], None],
    ) -> "AsyncTask[AuxiliaryState]":
        """What a follower needs to know of the records before `offset`, from the tier.

        The tier is read again: the leader may have just copied what the follower needs.

        :param epoch: The leader epoch of the record before `offset`.
        :param then: Called later, unless the job that this returns is stopped.
        """
        from fencepost.broker.tiering.remote_segments import build_auxiliary_state

        objects = self.objects or MemoryObjectStore(self._broker.scheduler.soon)  # which is empty
        whose = TopicIdPartition(
            topic=replica.topic, topic_id=replica.topic_id, index=replica.index
        )
        job = AsyncTask(build_auxiliary_state(objects, whose, epoch=epoch, offset=offset), then)
        job.start()
        return job

    # -- operations of the control API -----------------------------------------------------------

    def run_task(self, replica: Replica, then: OnDone) -> None:
        """Run a replica's task once, now or when what is being done is done."""
        tiered = self._find(replica)
        if tiered is None:
            then(_no_tier(replica))
        else:
            tiered.enqueue(tiered.task, then)

    def delete_local(self, replica: Replica, now_ms: int | None = None) -> int:
        """Delete here what the tier is known to have.

        :param now_ms: What local.retention.* lets go now; None: all of it.
        :returns: How many segments.
        """
        tiered = self._find(replica)
        return 0 if tiered is None else tiered.delete_local(now_ms)

    def expire(self, replica: Replica, then: OnDone) -> None:
        """Do what a leader's task does about retention in the tier, and nothing else."""
        tiered = self._find_leader(replica)
        if tiered is None:
            then(_no_tier(replica))
        else:
            tiered.enqueue(tiered.expiration, then)

    def forget(self, replica: Replica, then: OnDone) -> None:
        """Let a leader know nothing of the tier, as if it were newly elected.

        What it is doing ends. Its task runs again when it would have.
        """
        tiered = self._find_leader(replica)
        if tiered is None:
            then(_no_tier(replica))
            return
        timer = tiered.timer
        due_ms = None if timer is None else timer.deadline_ms
        tiered.stop()
        fresh = self._tiered[replica.topic, replica.index] = self._new_tiered_replica(replica, None)
        self._run_at(fresh, self._next_ms() if due_ms is None else due_ms)
        self._broker.events.emit(
            Kind.TIER_FORGOTTEN,
            topic=replica.topic,
            partition=replica.index,
            broker=self._broker.broker_id,
        )
        then(None)

    # -- the task's runs ------------------------------------------------------------------------

    def _new_tiered_replica(
        self, replica: Replica, before: "TieredReplica | None"
    ) -> "TieredReplica":
        """Metadata that are known need not be read again; what is finished in them is for good."""
        from fencepost.broker.tiering.tiered_replica import TieredReplica

        assert self.objects is not None
        known = before is not None and before.partition.topic_id == replica.topic_id
        segments = before.segments if before is not None and known else RemoteSegments()
        return TieredReplica(self._broker, replica, self.objects, segments)

    def _run(self, tiered: "TieredReplica") -> None:
        if self._tiered.get((tiered.partition.topic, tiered.partition.index)) is not tiered:
            return
        tiered.enqueue(tiered.task, lambda _error: self._run_at(tiered, self._next_ms()))

    def _run_at(self, tiered: "TieredReplica", due_ms: int) -> None:
        if self._tiered.get((tiered.partition.topic, tiered.partition.index)) is tiered:
            tiered.timer = self._broker.scheduler.at(due_ms, lambda: self._run(tiered))

    def _next_ms(self) -> int:
        interval_ms = self._broker.configs.remote_log_manager_task_interval_ms
        return self._broker.scheduler.now_ms() + interval_ms

    def _find(self, replica: Replica) -> "TieredReplica | None":
        tiered = self._tiered.get((replica.topic, replica.index))
        return tiered if tiered is not None and tiered.replica is replica else None

    def _find_leader(self, replica: Replica) -> "TieredReplica | None":
        tiered = self._find(replica)
        return tiered if tiered is not None and tiered.is_leader else None

    # -- deletion -------------------------------------------------------------------------------

    def _disable(self, tiered: "TieredReplica") -> None:
        """Tiering was switched off (KIP-950): the log begins with what is here."""
        replica = tiered.replica
        self.stop_partition(replica)
        self._known.discard(tiered.partition)
        replica.delete_records(replica.log.local_log_start_offset)
        if replica.is_leader and replica.log.config.remote_log_delete_on_disable:
            self._purge(tiered.partition)

    def _is_responsible(self, partition: PartitionImage) -> bool:
        """The leader is; where there is none, the first broker that is there."""
        brokers = self._broker.view.brokers
        online = [b for b in partition.replicas if b in brokers and not brokers[b].fenced]
        responsible = partition.leader if partition.leader in online else min(online, default=None)
        return responsible in (self._broker.broker_id, None)

    def _purge(self, partition: TopicIdPartition) -> None:
        from fencepost.broker.tiering.remote_retention import delete_partition

        assert self.objects is not None
        job = self._purges[partition] = AsyncTask(
            delete_partition(self.objects, partition),
            lambda result: self._purged(partition, result),
        )
        job.start()

    def _purged(self, partition: TopicIdPartition, had_some: bool | TierError) -> None:
        if had_some is False:
            del self._purges[partition]
            return
        self._purges[partition] = None
        self._broker.scheduler.at(self._next_ms(), lambda: self._purge_again(partition))
        if isinstance(had_some, TierError):
            self._broker.events.emit(
                Kind.TIER_FAILED,
                topic=partition.topic,
                partition=partition.index,
                broker=self._broker.broker_id,
                error=str(had_some),
            )

    def _purge_again(self, partition: TopicIdPartition) -> None:
        if self._purges.get(partition, self) is not None:
            return
        is_there = partition.topic_id in self._broker.view.names
        if is_there and self._broker.configs.log_config(partition.topic).remote_storage_enable:
            self._cancel_purge(partition)
        else:
            self._purge(partition)

    def _cancel_purge(self, partition: TopicIdPartition) -> None:
        """Tiering is switched on again: what is old goes as what lies before the log start does."""
        job = self._purges.pop(partition, None)
        if job is not None:
            job.stop()


def _no_tier(replica: Replica) -> TierError:
    return TierError(
        f"{replica.topic}-{replica.index}", "the replica has no tier, or does not lead"
    )
