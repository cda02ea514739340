"""One broker: its view of the cluster, its replicas, and the handlers' way to both."""

import random
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, cast

from fencepost.broker.configs.resolve import BrokerConfigs
from fencepost.broker.context import Context, Handler
from fencepost.broker.controller import NewTopic
from fencepost.broker.coordination import Coordination
from fencepost.broker.follower import Follower
from fencepost.broker.groups.coordinator import GroupCoordinator
from fencepost.broker.image import INTERNAL_TOPICS, ClusterImage, PartitionImage, TopicImage
from fencepost.broker.producer_ids import ProducerIds
from fencepost.broker.replica import Replica
from fencepost.broker.scheduler import Scheduler
from fencepost.broker.sessions import FetchSessions
from fencepost.broker.telemetry import ClientInstances
from fencepost.protocol.apis import Api
from fencepost.storage.config import LogConfig
from fencepost.storage.log import Log

if TYPE_CHECKING:
    from fencepost.broker.controller import Controller
    from fencepost.broker.network import Network

MakeLog = Callable[[str, LogConfig], Log]
"""Makes a log by its name (``topic-0``) and configs."""


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
        make_log: MakeLog,
        producer_ids: ProducerIds,
        offset_value_version: int,
    ) -> None:
        self.broker_id = broker_id
        self.view = view
        self.configs = configs
        self.scheduler = scheduler
        self.rng = rng
        self.network = network
        self.controller = controller
        self.producer_ids = producer_ids
        self.replicas: dict[tuple[str, int], Replica] = {}
        self.sessions = FetchSessions(rng, configs)
        self.telemetry = ClientInstances()
        self.coordination = Coordination(self, offset_value_version)
        self.discard: Callable[[list[Replica]], None] = _let_go
        """Takes the replicas that are gone; the edge sets it, to free their logs bit by bit."""
        self._followers: dict[tuple[str, int], Follower] = {}
        self._make_log = make_log

    @property
    def coordinator(self) -> GroupCoordinator:
        """The groups that this broker coordinates."""
        return self.coordination.groups

    @property
    def host(self) -> str:
        """Where clients reach it, as it is registered."""
        return self.view.brokers[self.broker_id].host

    @property
    def epoch(self) -> int:
        """The epoch of its registration."""
        return self.view.brokers[self.broker_id].epoch

    def handle(self, api: Api, ctx: Context, request: object) -> object:
        """Answer a request of an API: a response, a ``Wait``, or None for no response."""
        return handler_of(api).handle(ctx, request)

    def apply(self, image: ClusterImage, changed: frozenset[str]) -> None:
        """Take a new view, and become what it says in the topics that changed.

        :param changed: Names of topics that are new, gone or different in this image.
        """
        before, self.view = self.view, image
        self.configs.update(image)
        if not image.topics:
            self._drop_all()
        for name in changed if image.topics else ():
            old, new = before.topics.get(name), image.topics.get(name)
            if old is not None and (new is None or new.topic_id != old.topic_id):
                self._drop(old)
            if new is not None:
                self._take(new)
        self.coordinator.on_topics_deleted(
            name
            for name, topic in before.topics.items()
            if name in changed and topic.topic_id not in image.names
        )

    def auto_create(self, name: str) -> None:
        """Create a topic because a client asked for it, as this broker's configs say.

        :raises ControllerError: When it can't be.
        """
        if name in INTERNAL_TOPICS:
            self.create_internal_topic(name)
            return
        self.controller.create_topic(
            NewTopic(
                name=name,
                partitions=self.configs.num_partitions,
                replication_factor=self.configs.default_replication_factor,
                configs={},
            )
        )

    def create_internal_topic(self, name: str) -> None:
        """Create ``__consumer_offsets`` if it is not there, as this broker's configs say.

        Its replication factor is no larger than the number of brokers: one broker has to do.

        :raises ControllerError: When it can't be.
        """
        if name in self.view.topics:
            return
        factor = min(self.configs.offsets_topic_replication_factor, len(self.view.brokers))
        self.controller.create_topic(
            NewTopic(
                name=name,
                partitions=self.configs.offsets_topic_num_partitions,
                replication_factor=factor,
                configs=self.configs.offsets_topic_configs,
            )
        )

    def follower(self, topic: str, index: int) -> Follower | None:
        """The follower of a partition, None where this broker has no replica or leads."""
        return self._followers.get((topic, index))

    def poke_follower(self, topic: str, index: int) -> None:
        """A leader has something new for this broker's replica."""
        follower = self._followers.get((topic, index))
        if follower is not None:
            follower.poke()

    def _take(self, topic: TopicImage) -> None:
        settings = self.configs.topic(topic.name)
        for index, partition in enumerate(topic.partitions):
            if self.broker_id not in partition.replicas:
                self._forget(topic.name, index)
                continue
            replica = self.replicas.get((topic.name, index))
            if replica is None:
                replica = self._new_replica(topic, index, settings.log)
            replica.log.config = settings.log
            replica.min_insync_replicas = settings.min_insync_replicas
            self._set_role(replica, partition)

    def _new_replica(self, topic: TopicImage, index: int, config: LogConfig) -> Replica:
        replica = Replica(
            topic=topic.name,
            topic_id=topic.topic_id,
            index=index,
            broker_id=self.broker_id,
            log=self._make_log(f"{topic.name}-{index}", config),
            ring=self.network.ring,
        )
        self.replicas[topic.name, index] = replica
        return replica

    def _set_role(self, replica: Replica, partition: PartitionImage) -> None:
        key = (replica.topic, replica.index)
        was_leader, epoch = replica.is_leader, replica.leader_epoch
        if partition.leader == self.broker_id:
            self._followers.pop(key, None)
            replica.lead(partition)
            if not was_leader or replica.leader_epoch != epoch:
                self.coordination.on_elected(replica)
        else:
            replica.follow(partition)
            if was_leader:
                self.coordination.on_resigned(replica)
            if key not in self._followers:
                self._followers[key] = Follower(self, replica)
            self._followers[key].poke()

    def _drop(self, topic: TopicImage) -> None:
        for index in range(len(topic.partitions)):
            self._forget(topic.name, index)

    def _forget(self, topic: str, index: int) -> None:
        self._followers.pop((topic, index), None)
        replica = self.replicas.pop((topic, index), None)
        if replica is not None:
            if replica.is_leader:
                self.coordination.on_resigned(replica)
            replica.resign()
            self.discard([replica])

    def _drop_all(self) -> None:
        """No topic is left, as after a reset: what is to be quick is not done one by one."""
        gone = list(self.replicas.values())
        self.replicas.clear()
        self._followers.clear()
        for replica in gone:
            if replica.is_leader:
                self.coordination.on_resigned(replica)
            replica.resign()
        self.discard(gone)


def _let_go(_replicas: list[Replica]) -> None:
    """Nobody frees logs bit by bit: they go at once, with the last reference."""


_HANDLERS: dict[int, Handler] = {}


def handler_of(api: Api) -> Handler:
    """The module that answers an API; imported on first use, because start-up is a goal."""
    handler = _HANDLERS.get(api.key)
    if handler is None:
        handler = cast(Handler, import_module(f"fencepost.broker.handlers.{api.name}"))
        _HANDLERS[api.key] = handler
    return handler
