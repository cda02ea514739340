"""The replicas of one broker: it opens their logs, gives them their roles and runs their followers.

The metadata image says which replicas a broker has, and which of them lead. Kafka's counterpart is
ReplicaManager.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from itertools import islice
from typing import Final
from uuid import UUID

from fencepost.broker.configs.effective_configs import TopicSettings
from fencepost.broker.core.turns import TurnQueue
from fencepost.broker.metadata.image import (
    INTERNAL_TOPICS,
    ClusterImage,
    PartitionImage,
    TopicImage,
)
from fencepost.broker.replication.follower.follower import Follower
from fencepost.broker.replication.follower.steps import Hold
from fencepost.broker.replication.node import ReplicaNode
from fencepost.broker.replication.offline_replicas import OfflineOnFailure, OfflineReplicas
from fencepost.broker.replication.replica import MaybeExpandIsr, NotifyFollower, Replica
from fencepost.broker.replication.replica_alter_log_dirs import ReplicaAlterLogDirsManager
from fencepost.broker.replication.replica_storage import ReplicaStorage, drop_in_steps
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.log.config import LogConfig

OPENED_IN_A_TURN: Final = 150
"""Replicas that a broker opens in one turn, when it starts or of new partitions."""
CLOSED_IN_A_TURN: Final = 1000
"""Replicas that are closed in one turn when a broker stops."""
LEADERS_IN_A_TURN: Final = 150
"""Leaders that look at their followers in one turn when brokers have registered."""
NEW_AT_ONCE: Final = 50
"""New partitions whose replicas are opened in the turn in which their image comes: in service it
comes to all brokers in the same one."""
RESIGNED_IN_A_TURN: Final = 500
"""Replicas whose waits are answered in one turn when all topics are gone."""
LeadershipListener = Callable[[Replica], None]


class ReplicaManager:
    """The replicas of one broker, their followers, and the holds of these.

    :param on_elected: Called with each replica that becomes leader, or leads in another epoch.
    :param on_resigned: Called with each replica that leads no longer; after a reset with those of
        internal topics alone.
    """

    def __init__(
        self,
        node: ReplicaNode,
        storage: ReplicaStorage,
        *,
        maybe_expand_isr: MaybeExpandIsr,
        on_elected: LeadershipListener,
        on_resigned: LeadershipListener,
    ) -> None:
        self.replicas: dict[tuple[str, int], Replica] = {}
        """By topic and index."""
        self.failures = OfflineReplicas(node, storage, self._apply_partition)
        self.offline = self.failures.topic_ids
        """The topic ids of the replicas whose log has failed, by topic and index."""
        self.holds: dict[tuple[str, int], Hold] = {}
        """The partitions whose follower a test holds. A hold outlives the replica."""
        self._node = node
        self._storage = storage
        self._followers: dict[tuple[str, int], Follower] = {}
        self._settings: dict[str, TopicSettings] = {}
        """By topic the settings that all its replicas have."""
        self._on_elected = on_elected
        self._on_resigned = on_resigned
        self._registered: tuple[int, ...] = ()
        """The brokers that have registered last."""
        self._watching: TurnQueue[Replica] = TurnQueue(
            node.scheduler.in_later_turn, LEADERS_IN_A_TURN, self._watch
        )
        """The leaders that have not looked at them yet."""
        self._opening: TurnQueue[tuple[str, UUID, int]] = TurnQueue(
            node.scheduler.in_later_turn, OPENED_IN_A_TURN, self._open_new
        )
        """New partitions whose replicas are not opened yet, by topic, its id, and index."""
        self._unwoken: list[Follower] = []
        """The followers of those that have been opened."""
        self._resigning: TurnQueue[Replica] = TurnQueue(
            node.scheduler.in_later_turn, RESIGNED_IN_A_TURN, self._resign
        )
        """Replicas of topics that are gone, at which something may wait."""
        self.log_dir_moves = ReplicaAlterLogDirsManager(node, storage, self.replicas)
        # The same objects for all replicas, because there are many.
        self._notify_follower: NotifyFollower = partial(
            node.network.notify_follower, node.broker_id
        )
        self._maybe_expand_isr = maybe_expand_isr

    def stop_acting(self) -> None:
        """The broker stops: nothing of what is here acts by itself any more."""
        for follower in self._followers.values():
            follower.stop()
        self._followers.clear()
        self._watching.clear()
        self._opening.clear()
        self._unwoken.clear()
        self._node.remote_log_manager.stop()
        self.log_dir_moves.stop()
        for replica in self.replicas.values():
            if replica.is_leader:
                self._on_resigned(replica)

    def closing(self, *, crash: bool) -> Iterator[None]:
        """The broker has stopped to act: close the logs, some before each step.

        :param crash: Whether high watermarks are lost since the last checkpoint.
        """
        while self.replicas:
            keys = list(islice(self.replicas, CLOSED_IN_A_TURN))
            for key in keys:
                replica = self.replicas.pop(key)
                self._storage.close_log(key, replica, crash=crash)
                replica.resign()
            if len(keys) == CLOSED_IN_A_TURN:
                yield
        self._storage.on_broker_stop(crash=crash)
        self.failures.clear()
        self._settings.clear()

    def starting(self, image: ClusterImage) -> Iterator[None]:
        """The broker starts with this image: open the logs, some before each step.

        Its followers fetch when it has registered: what they fetch before does not count for an
        ISR (KIP-903).
        """
        self._storage.on_broker_start()
        self._storage.delete_logs_not_in(image)
        self._node.remote_log_manager.start(image)
        opened = 0
        for name in image.topics:
            for index in range(len(image.topics[name].partitions)):
                topic = self._node.view.topics.get(name)  # it may have changed since the last step
                if topic is not None and index < len(topic.partitions):
                    self._apply_partition(topic, index, wakes=False)
                opened += 1
                if opened % OPENED_IN_A_TURN == 0:
                    yield

    def apply(self, before: ClusterImage, image: ClusterImage, changed: frozenset[str]) -> None:
        """Apply a new image.

        As in Kafka, a new topic is in this broker's view before all its replicas are opened: where
        they are very many, some are in later turns.

        :param before: The image that was applied last.
        :param changed: The names of the topics that are new, deleted or different.
        """
        if not image.topics:
            self._delete_all_topics(before)
        most = NEW_AT_ONCE
        # Sorted: the order of a set differs between processes, and a seed must repeat its run.
        for name in sorted(changed) if image.topics else ():
            old, new = before.topics.get(name), image.topics.get(name)
            if old is not None and (new is None or new.topic_id != old.topic_id):
                self._delete_topic(old)
            if new is not None:
                most -= self._apply_topic(new, old, most)
        if before.brokers is not image.brokers:
            self._on_registrations(before)

    def wipe(self, topic: str, index: int) -> None:
        """Delete a replica's log; the replica starts again as a follower with an empty one."""
        replica = self.replicas.get((topic, index))
        if replica is None:
            self.offline.pop((topic, index), None)
            self._storage.delete_unused_log(topic, index)
            return
        partition = self._node.view.partition(topic, index)
        self._remove_replica(topic, index)
        self._settings.pop(topic, None)  # the next image gives the new one its role
        if partition is not None:
            self._new_replica(self._node.view.topics[topic], index, replica.log.config)

    def mark_offline(self, replica: Replica, failure: StorageFailure) -> None:
        """Take a replica offline whose log has failed, until the broker starts again.

        One that failed for lack of descriptors comes back when files can be opened again.

        The other replicas are not affected. The controller is informed at the end of this turn.
        """
        key = (replica.topic, replica.index)
        if self.replicas.get(key) is not replica:
            return
        del self.replicas[key]
        self.log_dir_moves.cancel(key)
        follower = self._followers.pop(key, None)
        if follower is not None:
            follower.stop()
        if replica.is_leader:
            self._on_resigned(replica)
        self._node.remote_log_manager.stop_partition(replica)
        self._storage.abandon_log(replica)
        self.failures.add(key, replica.topic_id, failure)
        replica.failed = True
        replica.resign()

    def offline_on_failure(self, replica: Replica) -> AbstractContextManager[None]:
        """Take a replica offline if its log fails within the context."""
        return OfflineOnFailure(partial(self.mark_offline, replica))

    def _mark_log_offline(self, failure: StorageFailure) -> None:
        for replica in list(self.replicas.values()):
            if replica.log.name == failure.log:
                self.mark_offline(replica, failure)

    def hold(self, topic: str, index: int, at: int | None) -> None:
        """Hold a follower: at log end ``at`` (exclusive), or where it is (None)."""
        hold = self.holds[topic, index] = Hold(at)
        follower = self._followers.get((topic, index))
        if follower is not None:
            follower.hold = hold
            follower.wake()

    def release(self, topic: str, index: int) -> bool:
        """Release a follower; False where it was not held."""
        held = self.holds.pop((topic, index), None) is not None
        follower = self._followers.get((topic, index))
        if follower is not None:
            follower.hold = None
            follower.wake()
        return held

    def follower(self, topic: str, index: int) -> Follower | None:
        """The follower of a partition; None where this broker leads it or has no replica."""
        return self._followers.get((topic, index))

    @property
    def followers(self) -> Collection[Follower]:
        """All followers of this broker."""
        return self._followers.values()

    def wake_followers_of(self, leader: int) -> None:
        """Wake the followers of a leader that can be reached again."""
        for follower in self._followers.values():
            if follower.replica.leader == leader:
                follower.wake()

    def wake_follower(self, topic: str, index: int) -> None:
        """Wake the follower of a partition: its leader has records for it."""
        follower = self._followers.get((topic, index))
        if follower is not None:
            follower.wake()

    @property
    def is_opening(self) -> bool:
        """Whether replicas of new partitions are left for later turns."""
        return not self._opening.is_empty or bool(self._unwoken)

    def finish_opening(self) -> None:
        """Open at once the replicas that are left for later turns."""
        self._opening.finish()
        self._wake_opened()

    def _open_new(self, partitions: Iterable[tuple[str, UUID, int]]) -> None:
        """Open the replicas of new partitions, and wake their followers when all are open.

        Every broker is at about the same partition, and a leader rings for the followers that there
        are. The others would be refused before.
        """
        for name, topic_id, index in partitions:
            topic = self._node.view.topics.get(name)
            if topic is None or topic.topic_id != topic_id or index >= len(topic.partitions):
                continue  # deleted since
            if (name, index) not in self.replicas:
                self._open_unwoken(topic, index)
        if self._opening.is_empty:  # and the other brokers come to their last ones in this round
            self._node.scheduler.in_later_turn(self._wake_opened)

    def _wake_opened(self) -> None:
        unwoken, self._unwoken = self._unwoken, []
        for follower in unwoken:
            follower.on_metadata_change()

    def _open_unwoken(self, topic: TopicImage, index: int) -> None:
        self._apply_partition(topic, index, wakes=False)
        follower = self._followers.get((topic.name, index))
        if follower is not None:
            self._unwoken.append(follower)

    def _apply_topic(self, topic: TopicImage, before: TopicImage | None, most: int) -> int:
        """Apply a topic's image to the partitions that changed in it.

        :param most: How many new partitions are applied now; the others are in later turns.
        :returns: How many were.
        """
        settings = self._node.configs.topic(topic.name)
        applied: tuple[PartitionImage, ...] = ()
        if before is not None and before.topic_id == topic.topic_id:
            applied = before.partitions
        same = [was is now for was, now in zip(applied, topic.partitions, strict=False)]
        if self._settings.get(topic.name) is not settings:
            for index, is_same in enumerate(same):
                replica = self.replicas.get((topic.name, index))
                same[index] = is_same and _is_up_to_date(replica, settings)
            self._settings[topic.name] = settings
        changed = [index for index, is_same in enumerate(same) if not is_same]
        for index in changed:
            self._apply_partition(topic, index)
        new = range(len(same), len(topic.partitions))
        is_open_at_once = len(new) <= most
        for index in new[:most]:
            if is_open_at_once:
                self._apply_partition(topic, index)
            else:
                self._open_unwoken(topic, index)
        self._opening.add((topic.name, topic.topic_id, index) for index in new[most:])
        return len(new[:most])

    def _apply_partition(self, topic: TopicImage, index: int, *, wakes: bool = True) -> None:
        """Give the broker's replica of a partition, if there is one, its role and configs.

        :param wakes: Whether its follower may fetch now.
        """
        partition = topic.partitions[index]
        if self._node.broker_id not in partition.replicas:
            self._remove_replica(topic.name, index)
            return
        settings = self._node.configs.topic(topic.name)
        replica = self.replicas.get((topic.name, index))
        if replica is None and (topic.name, index) not in self.offline:
            replica = self._new_replica(topic, index, settings.log)
        if replica is None:
            return
        replica.log.config = settings.log
        replica.min_insync_replicas = settings.min_insync_replicas
        try:
            self._set_role(replica, partition, wakes=wakes)
            self._node.remote_log_manager.on_leadership_change(replica)
        except StorageFailure as failure:  # thousands of context managers would take long
            self.mark_offline(replica, failure)

    def _new_replica(self, topic: TopicImage, index: int, config: LogConfig) -> Replica | None:
        """A replica with its log; None where the log can't be opened: then it is offline."""
        cordoned = self._node.configs.cordoned_log_dirs
        try:
            log, high_watermark = self._storage.open_log(topic, index, config, cordoned)
        except StorageFailure as failure:
            self.failures.add((topic.name, index), topic.topic_id, failure)
            return None
        replica = Replica(
            topic=topic.name,
            topic_id=topic.topic_id,
            index=index,
            broker_id=self._node.broker_id,
            log=log,
            notify_follower=self._notify_follower,
            maybe_expand_isr=self._maybe_expand_isr,
            mark_offline=self.mark_offline,
            high_watermark=high_watermark,
        )
        self.replicas[topic.name, index] = replica
        self.log_dir_moves.on_replica_opened(replica)
        return replica

    def _set_role(self, replica: Replica, partition: PartitionImage, *, wakes: bool) -> None:
        key = (replica.topic, replica.index)
        was_leader, epoch = replica.is_leader, replica.leader_epoch
        if partition.leader == self._node.broker_id:
            follower = self._followers.pop(key, None)
            if follower is not None:
                follower.stop()
            replica.make_leader(partition, now_ms=self._node.scheduler.now_ms())
            if not was_leader or replica.leader_epoch != epoch:
                self._on_elected(replica)
        else:
            replica.make_follower(partition)
            if was_leader:
                self._on_resigned(replica)
            follower = self._followers.get(key)
            if follower is None:
                follower = self._followers[key] = Follower(self._node, replica)
                follower.hold = self.holds.get(key)
            if wakes:
                follower.on_metadata_change()

    def _on_registrations(self, before: ClusterImage) -> None:
        """Brokers have registered again: what they fetched before no longer counts for an ISR."""
        brokers = self._node.view.brokers
        registered = tuple(b for b, each in brokers.items() if before.brokers.get(b) != each)
        if self._node.broker_id in registered:
            for follower in self._followers.values():
                follower.wake()
        self._registered = registered
        leaders = [replica for replica in self.replicas.values() if replica.is_leader]
        self._watch(leaders[:LEADERS_IN_A_TURN])
        self._watching.add(leaders[LEADERS_IN_A_TURN:])

    def finish_registrations(self) -> None:
        """Have every leader look at once at the brokers that have registered."""
        self._watching.finish()

    def _watch(self, leaders: Iterable[Replica]) -> None:
        for replica in leaders:
            if replica.is_leader:
                replica.reevaluate_followers(self._registered)

    def _delete_topic(self, topic: TopicImage) -> None:
        """Delete a topic's logs, and its segments in the tier."""
        self._node.remote_log_manager.delete_topic(topic)
        self._settings.pop(topic.name, None)
        for index in range(len(topic.partitions)):
            self._remove_replica(topic.name, index)

    def _remove_replica(self, topic: str, index: int) -> None:
        self.offline.pop((topic, index), None)
        self.log_dir_moves.cancel((topic, index))
        self._storage.delete_unused_log(topic, index)
        follower = self._followers.pop((topic, index), None)
        if follower is not None:
            follower.stop()
        replica = self.replicas.pop((topic, index), None)
        if replica is not None:
            if replica.is_leader:
                self._on_resigned(replica)
            replica.resign()
            self._node.remote_log_manager.stop_partition(replica)
            self._storage.delete_logs([replica])

    def _delete_all_topics(self, before: ClusterImage) -> None:
        """No topic is left, as after a reset: delete all logs in one step, which is faster.

        Nothing acts or serves any more. The waits at very many replicas are answered in later
        turns.
        """
        for topic in before.topics.values():
            self._node.remote_log_manager.delete_topic(topic)
        for key in list(self.log_dir_moves.futures):
            self.log_dir_moves.cancel(key)
        # Copies, so that their keys live until they are freed in steps.
        replicas, followers = self.replicas.copy(), self._followers
        deleted = list(replicas.values())
        self.replicas.clear()
        self._followers = {}
        self._settings.clear()
        self._opening.clear()
        self._unwoken.clear()
        self.offline.clear()
        for follower in followers.values():
            if not follower.is_at_rest:
                follower.stop()
        for replica in deleted:
            if replica.is_leader and replica.topic in INTERNAL_TOPICS:
                self._on_resigned(replica)
        self._node.remote_log_manager.stop_partitions()
        self._storage.delete_all_logs(deleted)
        self._storage.free_logs(drop_in_steps(replicas))
        self._storage.free_logs(drop_in_steps(followers))
        self._resign(deleted[:RESIGNED_IN_A_TURN])
        self._resigning.add(deleted[RESIGNED_IN_A_TURN:])

    def _resign(self, replicas: Iterable[Replica]) -> None:
        for replica in replicas:
            replica.resign()


def _is_up_to_date(replica: Replica | None, settings: TopicSettings) -> bool:
    """Whether a replica, if there is one, has a role and these settings."""
    return replica is None or (
        replica.leader_epoch >= 0
        and replica.log.config is settings.log
        and replica.min_insync_replicas == settings.min_insync_replicas
    )
