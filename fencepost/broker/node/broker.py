"""One broker: its view of the cluster, its replicas, and the handlers' way to both."""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from fencepost.broker.configs.effective_configs import BrokerConfigs, TopicSettings
from fencepost.broker.core.context import Context
from fencepost.broker.core.errors import ControllerUnreachable
from fencepost.broker.core.events import Events, Kind
from fencepost.broker.core.scheduler import Scheduler
from fencepost.broker.faults.registry import FaultRegistry
from fencepost.broker.fetch.fetch_sessions import FetchSessionCache
from fencepost.broker.groups.group_coordinator import GroupCoordinator
from fencepost.broker.handlers import handler_of
from fencepost.broker.handlers.client_metrics import ClientMetricsManager
from fencepost.broker.metadata.features import limit_versions
from fencepost.broker.metadata.image import ClusterImage, PartitionImage, TopicImage
from fencepost.broker.network.links import CONTROLLER
from fencepost.broker.node.coordination import GroupCoordination
from fencepost.broker.produce.producer_id_manager import ProducerIdManager
from fencepost.broker.replication.follower.follower import Follower
from fencepost.broker.replication.follower.steps import Hold
from fencepost.broker.replication.isr import IsrManager
from fencepost.broker.replication.replica import MaybeExpandIsr, NotifyFollower, Replica
from fencepost.broker.replication.replica_storage import ReplicaStorage
from fencepost.broker.tiering.remote_log_manager import RemoteLogManager
from fencepost.protocol.apis import Api
from fencepost.protocol.errors import ErrorCode
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.log.config import LogConfig
from fencepost.storage.tier.object_store import ObjectStore

if TYPE_CHECKING:
    from fencepost.broker.controller.controller import Controller
    from fencepost.broker.network.links import Network

T = TypeVar("T")


class Broker:
    """One broker of a cluster. It acts on its own view and its own replicas alone."""

    def __init__(
        self,
        broker_id: int,
        *,
        view: ClusterImage,
        configs: BrokerConfigs,
        scheduler: Scheduler,
        rng: random.Random,
        network: "Network",
        controller: "Controller",
        disk: ReplicaStorage,
        producer_ids: ProducerIdManager,
        events: Events,
        faults: FaultRegistry,
        objects: ObjectStore | None = None,
        ceilings: Mapping[str, int],
        guarded: bool,
        offset_value_version: int,
    ) -> None:
        """What it is given.

        :param objects: The remote tier; None where there is none.
        :param ceilings: The highest versions that it serves (``--api-max``, ``--like-kafka``), by
            API name, where they are not the highest that there are; below the lowest: none at all.
        :param guarded: Whether versions wait for the features that guard them (KIP-1023).
        """
        self.broker_id = broker_id
        self.running = True
        """Whether its process runs: a broker that is down has its disk, and nothing else."""
        self.crashed = False
        """Whether it is down because it was killed."""
        self.view = view
        self.configs = configs
        self.scheduler = scheduler
        self.rng = rng
        self.network = network
        self.producer_ids = producer_ids
        self.events = events
        self.faults = faults
        self._configured_version_limits = ceilings
        self._limits_by_features = guarded
        self.version_limits = self._version_limits_in(view)
        """The highest versions that it serves now, as it is given them."""
        self.isr_manager = IsrManager(self)
        self.holds: dict[tuple[str, int], Hold] = {}
        """The partitions whose replica a test keeps from fetching, whatever becomes of it."""
        self.replicas: dict[tuple[str, int], Replica] = {}
        self.fetch_sessions = FetchSessionCache(rng, configs)
        self.client_metrics = ClientMetricsManager()
        self.group_coordination = GroupCoordination(self, offset_value_version)
        self.storage = disk
        self.remote_log_manager = RemoteLogManager(self, objects)
        self.offline: dict[tuple[str, int], UUID] = {}
        """The ids of topics whose replica here can't use its log, by topic and index."""
        self._controller = controller
        self._followers: dict[tuple[str, int], Follower] = {}
        # What each replica is given; made once, because there are many.
        self._notify_follower: NotifyFollower = partial(network.notify_follower, broker_id)
        self._maybe_expand_isr: MaybeExpandIsr = self.isr_manager.maybe_expand_isr

    @property
    def coordinator(self) -> GroupCoordinator:
        """The groups that this broker coordinates."""
        return self.group_coordination.group_coordinator

    @property
    def host(self) -> str:
        """Where clients reach it, as it is registered."""
        return self.view.brokers[self.broker_id].host

    @property
    def epoch(self) -> int:
        """The epoch of its registration."""
        return self.view.brokers[self.broker_id].epoch

    @property
    def controller(self) -> "Controller":
        """The controller, to change the cluster on a client's behalf.

        :raises ControllerUnreachable: When this broker is cut off from it.
        """
        if not self.network.reaches(self.broker_id, CONTROLLER):
            raise ControllerUnreachable(self.broker_id)
        return self._controller

    def ask_controller(
        self,
        ask: Callable[["Controller"], T],
        answered: Callable[[T], None],
        lost: Callable[[], None],
    ) -> None:
        """Send the controller a question of the broker's own."""
        self.network.ask_controller(self.broker_id, lambda: ask(self._controller), answered, lost)

    def max_version(self, api: Api) -> int:
        """The highest version of an API that this broker serves (inclusive).

        Of one that clients are not served: the lowest there is, which brokers use among themselves.
        """
        return max(self.version_limits.get(api.name, api.max_version), api.min_version)

    def serves(self, api: Api) -> bool:
        """Whether clients are served any version of an API."""
        return self.version_limits.get(api.name, api.max_version) >= api.min_version

    def handle(self, api: Api, ctx: Context, request: object) -> object:
        """Answer a request of an API: a response, a ``Wait``, None for no response, or HANG_UP.

        Where a fault hits, a ``Wait`` may be a `BlockingResponse`, whose result may be a
        `Delivery` or HANG_UP as well.
        """
        if self.faults.active:
            return self.faults.intercept(api, ctx, request, self._handle)
        return self._handle(api, ctx, request)

    def _handle(self, api: Api, ctx: Context, request: object) -> object:
        """Answer a request without faults.

        What takes the controller is REQUEST_TIMED_OUT where this broker does not reach it.
        """
        handler = handler_of(api)
        try:
            return handler.handle(ctx, request)
        except ControllerUnreachable:
            return handler.refuse(request, ErrorCode.REQUEST_TIMED_OUT)
        except StorageFailure as failure:
            self._mark_log_offline(failure)
            return handler.refuse(request, ErrorCode.KAFKA_STORAGE_ERROR)

    def apply(self, image: ClusterImage, changed: frozenset[str]) -> None:
        """Take a new view, and become what it says in the topics that changed.

        :param changed: Names of topics that are new, gone or different in this image.
        """
        before, self.view = self.view, image
        self.configs.update(image)
        if image.features is not before.features:
            self.version_limits = self._version_limits_in(image)
        if not image.topics:
            self._delete_all_topics(before)
        # In order, or a seed would do something else wherever Python hashes otherwise.
        for name in sorted(changed) if image.topics else ():
            old, new = before.topics.get(name), image.topics.get(name)
            if old is not None and (new is None or new.topic_id != old.topic_id):
                self._delete_topic(old)
            if new is not None:
                self._apply_topic(new, old)
        if before.brokers is not image.brokers:
            self._on_registrations(before)
        self.coordinator.on_topics_deleted(
            name
            for name, topic in before.topics.items()
            if name in changed and topic.topic_id not in image.names
        )

    def stop(self, *, crash: bool) -> None:
        """End its process: it answers nobody, and keeps nothing but its disk.

        :param crash: Whether it had no time to write what it knew: then high watermarks are those
            of the last checkpoint.
        """
        self.running, self.crashed = False, crash
        self.network.on_broker_down(self.broker_id)
        self.faults.on_broker_down(self.broker_id)
        for follower in self._followers.values():
            follower.stop()
        self._followers.clear()
        self.remote_log_manager.stop()
        for key, replica in self.replicas.items():
            if replica.is_leader:
                self.group_coordination.on_resigned(replica)
            self.storage.close_log(key, replica, crash=crash)
            replica.resign()
        self.storage.on_broker_stop(crash=crash)
        self.replicas.clear()
        self.offline.clear()
        self.isr_manager.clear()
        self.fetch_sessions.clear()
        self.client_metrics.clear()

    def start(self, image: ClusterImage) -> None:
        """Start anew, with what the disk holds and this view."""
        self.running, self.crashed = True, False
        self.network.on_broker_up(self.broker_id)
        self.view = image
        self.configs.update(image)
        self.version_limits = self._version_limits_in(image)
        self.storage.on_broker_start()
        self.storage.delete_logs_not_in(image)
        self.remote_log_manager.start(image)
        for topic in image.topics.values():
            self._apply_topic(topic, None)

    def wipe(self, topic: str, index: int) -> None:
        """Lose a replica's records; it goes on with an empty log, as a follower at first."""
        replica = self.replicas.get((topic, index))
        if replica is None:
            self.offline.pop((topic, index), None)
            self.storage.delete_unused_log(topic, index)
            return
        partition = self.view.partition(topic, index)
        self._remove_replica(topic, index)
        if partition is not None:
            self._new_replica(self.view.topics[topic], index, replica.log.config)

    def mark_offline(self, replica: Replica, failure: StorageFailure) -> None:
        """A replica's log can't be used any more: it is offline until the broker starts anew.

        The others are served on. The controller hears of it at the end of this turn.
        """
        key = (replica.topic, replica.index)
        if self.replicas.get(key) is not replica:
            return
        del self.replicas[key]
        follower = self._followers.pop(key, None)
        if follower is not None:
            follower.stop()
        if replica.is_leader:
            self.group_coordination.on_resigned(replica)
        self.remote_log_manager.stop_partition(replica)
        self.storage.abandon_log(replica)
        self._record_offline(key, replica.topic_id, failure)
        replica.failed = True
        replica.resign()

    @contextmanager
    def offline_on_failure(self, replica: Replica) -> Iterator[None]:
        """Where a replica's log is used: if that fails, the replica is offline."""
        try:
            yield
        except StorageFailure as failure:
            self.mark_offline(replica, failure)

    def report_failures(self) -> None:
        """Tell the controller which replicas are offline here, also those that it knows of."""
        if self.offline:
            failed = [(topic, topic_id, at) for (topic, at), topic_id in self.offline.items()]
            self.ask_controller(
                lambda controller: controller.fail_replicas(self.broker_id, failed),
                _ignore_answer,
                _ignore_loss,
            )

    def _mark_log_offline(self, failure: StorageFailure) -> None:
        for replica in list(self.replicas.values()):
            if replica.log.name == failure.log:
                self.mark_offline(replica, failure)

    def _record_offline(
        self, key: tuple[str, int], topic_id: UUID, failure: StorageFailure
    ) -> None:
        self.offline[key] = topic_id
        topic, index = key
        self.events.emit(
            Kind.REPLICA_FAILED,
            topic=topic,
            partition=index,
            broker=self.broker_id,
            error=failure.why,
        )
        self.scheduler.soon(self.report_failures)

    def hold(self, topic: str, index: int, at: int | None) -> None:
        """Keep its replica from fetching, from ``at`` on (exclusive end) or from now on (None)."""
        hold = self.holds[topic, index] = Hold(at)
        follower = self._followers.get((topic, index))
        if follower is not None:
            follower.hold = hold
            follower.wake()

    def release(self, topic: str, index: int) -> bool:
        """Let its replica fetch again; False where it was not held."""
        held = self.holds.pop((topic, index), None) is not None
        follower = self._followers.get((topic, index))
        if follower is not None:
            follower.hold = None
            follower.wake()
        return held

    def follower(self, topic: str, index: int) -> Follower | None:
        """The follower of a partition, None where this broker has no replica or leads."""
        return self._followers.get((topic, index))

    def wake_followers_of(self, leader: int) -> None:
        """A broker can be reached again: go on fetching from it."""
        for follower in self._followers.values():
            if follower.replica.leader == leader:
                follower.wake()

    def wake_follower(self, topic: str, index: int) -> None:
        """A leader has something new for this broker's replica."""
        follower = self._followers.get((topic, index))
        if follower is not None:
            follower.wake()

    def _apply_topic(self, topic: TopicImage, before: TopicImage | None) -> None:
        """Become what a topic's image says, in the partitions that it says something new of."""
        settings = self.configs.topic(topic.name)
        known: tuple[PartitionImage, ...] = ()
        if before is not None and before.topic_id == topic.topic_id:
            known = before.partitions
        for index, partition in enumerate(topic.partitions):
            replica = self.replicas.get((topic.name, index))
            if (
                index < len(known)
                and known[index] is partition
                and _is_up_to_date(replica, settings)
            ):
                continue
            if self.broker_id not in partition.replicas:
                self._remove_replica(topic.name, index)
                continue
            if replica is None and (topic.name, index) not in self.offline:
                replica = self._new_replica(topic, index, settings.log)
            if replica is None:
                continue
            replica.log.config = settings.log
            replica.min_insync_replicas = settings.min_insync_replicas
            with self.offline_on_failure(replica):
                self._set_role(replica, partition)
                self.remote_log_manager.on_leadership_change(replica)

    def _new_replica(self, topic: TopicImage, index: int, config: LogConfig) -> Replica | None:
        """A replica with what the disk has of it; None where that fails, and it is offline."""
        try:
            log, high_watermark = self.storage.open_log(topic, index, config)
        except StorageFailure as failure:
            self._record_offline((topic.name, index), topic.topic_id, failure)
            return None
        replica = Replica(
            topic=topic.name,
            topic_id=topic.topic_id,
            index=index,
            broker_id=self.broker_id,
            log=log,
            ring=self._notify_follower,
            consider=self._maybe_expand_isr,
            fail=self.mark_offline,
            high_watermark=high_watermark,
        )
        self.replicas[topic.name, index] = replica
        return replica

    def _set_role(self, replica: Replica, partition: PartitionImage) -> None:
        key = (replica.topic, replica.index)
        was_leader, epoch = replica.is_leader, replica.leader_epoch
        if partition.leader == self.broker_id:
            follower = self._followers.pop(key, None)
            if follower is not None:
                follower.stop()
            replica.make_leader(partition, now_ms=self.scheduler.now_ms())
            if not was_leader or replica.leader_epoch != epoch:
                self.group_coordination.on_elected(replica)
        else:
            replica.make_follower(partition)
            if was_leader:
                self.group_coordination.on_resigned(replica)
            follower = self._followers.get(key)
            if follower is None:
                follower = self._followers[key] = Follower(self, replica)
                follower.hold = self.holds.get(key)
            follower.wake()

    def _version_limits_in(self, image: ClusterImage) -> Mapping[str, int]:
        given = self._configured_version_limits
        return limit_versions(image.features, given) if self._limits_by_features else given

    def _on_registrations(self, before: ClusterImage) -> None:
        """Brokers are registered anew: what they fetched before admits them to no ISR any more."""
        brokers = self.view.brokers
        anew = [b for b, broker in brokers.items() if before.brokers.get(b) != broker]
        if self.broker_id in anew:
            for follower in self._followers.values():
                follower.wake()
        for replica in self.replicas.values():
            if replica.is_leader:
                replica.reevaluate_followers(anew)

    def _delete_topic(self, topic: TopicImage) -> None:
        """Lose a topic that was deleted."""
        self.remote_log_manager.delete_topic(topic)
        for index in range(len(topic.partitions)):
            self._remove_replica(topic.name, index)

    def _remove_replica(self, topic: str, index: int) -> None:
        self.offline.pop((topic, index), None)
        self.storage.delete_unused_log(topic, index)
        follower = self._followers.pop((topic, index), None)
        if follower is not None:
            follower.stop()
        replica = self.replicas.pop((topic, index), None)
        if replica is not None:
            if replica.is_leader:
                self.group_coordination.on_resigned(replica)
            replica.resign()
            self.remote_log_manager.stop_partition(replica)
            self.storage.delete_logs([replica])

    def _delete_all_topics(self, before: ClusterImage) -> None:
        """No topic is left, as after a reset: what is to be quick is not done one by one."""
        for topic in before.topics.values():
            self.remote_log_manager.delete_topic(topic)
        gone = list(self.replicas.values())
        self.replicas.clear()
        for follower in self._followers.values():
            follower.stop()
        self._followers.clear()
        self.offline.clear()
        self.storage.delete_unused_logs()
        for replica in gone:
            if replica.is_leader:
                self.group_coordination.on_resigned(replica)
            replica.resign()
            self.remote_log_manager.stop_partition(replica)
        self.storage.delete_logs(gone)


def _is_up_to_date(replica: Replica | None, settings: TopicSettings) -> bool:
    """Whether a replica, if there is one here, has a role and acts on these settings."""
    return replica is None or (
        replica.leader_epoch >= 0
        and replica.log.config is settings.log
        and replica.min_insync_replicas == settings.min_insync_replicas
    )


def _ignore_answer(_answer: None) -> None:
    """The controller has heard it, and the next view says what came of it."""


def _ignore_loss() -> None:
    """It is told again when the controller can be reached (`steering.rejoin`)."""
