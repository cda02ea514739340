"""The controller: the only node that changes the cluster's metadata.

It changes topics, partitions, brokers, features and configs, makes the next image of the cluster,
and publishes it to the brokers. Elections are its decision alone.
"""

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from fencepost.broker.configs.effective_configs import TopicSettings
from fencepost.broker.controller.elections import (
    ElectionRules,
    ElectionType,
    change_partition,
    elect_leader,
    is_clean_leader,
)
from fencepost.broker.controller.elr_configs import elr_configs
from fencepost.broker.controller.evaluations import Evaluations
from fencepost.broker.controller.quorum import without_voter
from fencepost.broker.controller.requests import IsrProposal, proposal_error
from fencepost.broker.controller.topic_changes import (
    MAX_PARTITIONS_PER_REQUEST,
    NewTopic,
    TopicPlanner,
)
from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.log_levels import LogLevels
from fencepost.broker.metadata.features import (
    NEWEST,
    Levels,
    UnstableFeatures,
    keeps_eligible_replicas,
)
from fencepost.broker.metadata.image import (
    AdvertisedEndpoint,
    BrokerImage,
    ClusterImage,
    PartitionImage,
    TopicImage,
    with_registration,
)
from fencepost.protocol.errors import ErrorCode

Publish = Callable[[ClusterImage, frozenset[str]], None]
"""Takes a new image and the names of the topics that changed in it."""


class Controller:
    """Metadata and elections of one cluster."""

    def __init__(
        self,
        *,
        brokers: Iterable[BrokerImage],
        cluster_id: str,
        rng: random.Random,
        settings: Callable[[str], TopicSettings],
        publish: Publish,
        controller_ids: tuple[int, ...] = (),
        address: AdvertisedEndpoint | None = None,
        downgrades_unsafely: bool = True,
        min_insync_replicas: str | None = None,
        in_later_turn: Callable[[Callable[[], None]], None] | None = None,
        log_levels: LogLevels | None = None,
        features: Levels = NEWEST,
        unstable_features: UnstableFeatures | None = None,
    ) -> None:
        """What it is given.

        :param settings: A topic's configs, as of the newest image that was published.
        :param controller_ids: The quorum's voters; empty where a broker is the only one.
        :param address: Where it listens for tools; None where it does not.
        :param features: The levels that are finalized at the start.
        :param unstable_features: Which nodes support unstable levels; None: none does.
        :param downgrades_unsafely: Whether a feature may lose metadata when it is asked for.
        :param min_insync_replicas: What holds without dynamic configs, to be kept as one where
            there is an ELR (`elr_configs`); None keeps none.
        :param in_later_turn: Calls something in a later turn of the event loop; None: at once.
        """
        registered = {broker.broker_id: broker for broker in brokers}
        self._controller_ids = controller_ids
        self._settings = settings
        self._rng = rng
        self._publish = publish
        self._evaluations = Evaluations(self, in_later_turn or _call_now)
        self._planner: TopicPlanner | None = None
        """Of the image for which it was needed last."""
        self._next_producer_id = 0
        self._features = features
        self.unstable_features = unstable_features or UnstableFeatures()
        self.downgrades_unsafely = downgrades_unsafely
        self.record_producer_ids: Callable[[int], None] = _record_nothing
        """Told the next producer id, before any below it is given out."""
        self._min_insync_replicas = min_insync_replicas
        self.log_levels = log_levels or LogLevels()
        """Of all nodes' loggers."""
        self.image = ClusterImage(
            version=1,
            cluster_id=cluster_id,
            controller_id=min(registered),
            brokers=registered,
            controller_ids=controller_ids,
            controller_address=address,
            broker_configs=elr_configs({}, features, min_insync_replicas),
            features=features,
        )

    # -- topics ---------------------------------------------------------------------------------

    @property
    def topic_planner(self) -> TopicPlanner:
        """Plans for topics, as the cluster is now."""
        if self._planner is None or self._planner.image is not self.image:
            self._planner = TopicPlanner(self.image, self._rng)
        return self._planner

    def create_topics(self, topics: Sequence[tuple[TopicImage, Mapping[str, str]]]) -> None:
        """Make planned topics real, with their configs, all in one image."""
        names = dict(self.image.names)
        all_topics = dict(self.image.topics)
        configs = dict(self.image.topic_configs)
        for topic, topic_configs in topics:
            all_topics[topic.name] = topic
            names[topic.topic_id] = topic.name
            if topic_configs:
                configs[topic.name] = dict(topic_configs)
        self._publish_next(
            replace(self.image, topics=all_topics, names=names, topic_configs=configs),
            {topic.name for topic, _ in topics},
        )

    def create_topic(self, topic: NewTopic) -> TopicImage:
        """Plan and create one topic.

        :raises ControllerError: When the topic can't be.
        """
        image = self.topic_planner.plan_topic(topic)
        self.create_topics([(image, topic.configs)])
        return image

    def create_each_topic(self, topics: Iterable[NewTopic]) -> list[ErrorCode]:
        """Create the topics that can be, all in one image; NONE or the error of each.

        More than `MAX_PARTITIONS_PER_REQUEST` partitions are POLICY_VIOLATION for all topics.
        """
        planned: list[tuple[TopicImage, Mapping[str, str]]] = []
        codes: list[ErrorCode] = []
        partitions = 0
        for topic in topics:
            partitions += len(topic.assignments or ()) or max(topic.partitions, 0)
            codes.append(ErrorCode.NONE)
            if partitions > MAX_PARTITIONS_PER_REQUEST:
                continue
            try:
                planned.append((self.topic_planner.plan_topic(topic), topic.configs))
            except ControllerError as error:
                codes[-1] = error.code
        if partitions > MAX_PARTITIONS_PER_REQUEST:
            return [ErrorCode.POLICY_VIOLATION] * len(codes)
        if planned:
            self.create_topics(planned)
        return codes

    def delete_topics(self, deleted: Iterable[str]) -> None:
        """Delete topics that exist; their names may be used again at once, with other ids."""
        gone = set(deleted)
        topics = {name: t for name, t in self.image.topics.items() if name not in gone}
        configs = {n: c for n, c in self.image.topic_configs.items() if n not in gone}
        names = {t.topic_id: t.name for t in topics.values()}
        self._publish_next(
            replace(self.image, topics=topics, names=names, topic_configs=configs), gone
        )

    def update_topics(self, topics: Sequence[TopicImage]) -> None:
        """Put changed topics into the registry, all in one image."""
        changed = {topic.name: topic for topic in topics}
        self._publish_next(
            replace(self.image, topics={**self.image.topics, **changed}), set(changed)
        )

    # -- elections ------------------------------------------------------------------------------

    def election_rules(self, topic: str) -> ElectionRules:
        """The rules for elections of a topic's partitions, as the cluster is now."""
        settings = self._settings(topic)
        return ElectionRules(
            is_online=self.is_online,
            min_insync_replicas=settings.min_insync_replicas,
            unclean=settings.unclean_leader_election_enable,
            keeps_eligible=keeps_eligible_replicas(self.image.features),
        )

    def topic_settings(self, topic: str) -> TopicSettings:
        """A topic's configs."""
        return self._settings(topic)

    def is_online(self, broker_id: int) -> bool:
        """Whether a broker is registered and not fenced."""
        broker = self.image.brokers.get(broker_id)
        return broker is not None and not broker.fenced

    def is_fenced(self, broker_id: int) -> bool:
        """Whether a broker is registered and fenced."""
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.fenced

    def elect(self, topic: str, index: int, leader: int, *, unclean: bool = False) -> None:
        """Make a broker the leader: one from the ISR, or uncleanly any that is online.

        The leader epoch rises by one, also when the leader stays.

        :raises ControllerError: UNKNOWN_TOPIC_OR_PARTITION where there is no such partition;
            ELIGIBLE_LEADERS_NOT_AVAILABLE when the broker can't lead it.
        """
        partition = self.partition(topic, index)
        name = f"{topic}-{index}"
        problem = None
        if leader not in partition.replicas:
            problem = f"broker {leader} has no replica of {name}: {list(partition.replicas)} have"
        elif not self.is_online(leader):
            problem = f"broker {leader} is offline"
        elif leader in partition.failed:
            problem = f"the log of {name} on broker {leader} has failed: stop and start the broker"
        elif not unclean and not is_clean_leader(partition, leader):
            problem = (
                f"broker {leader} is not in the ISR of {name}, which is {list(partition.isr)}: "
                "a clean election needs one of these, and unclean=true takes any replica"
            )
        if problem is not None:
            raise ControllerError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, problem)
        elected = elect_leader(partition, leader, self.election_rules(topic))
        self.update_partitions({(topic, index): elected})

    def alter_partitions(
        self, proposals: Sequence[IsrProposal]
    ) -> list[PartitionImage | ErrorCode]:
        """Take over the ISRs that a leader proposes, or say why not (KIP-497, KIP-903).

        :param proposals: Each for another partition.
        :returns: For each the partition as it is then, or why it is as it was.
        """
        answers = [self._altered(proposal) for proposal in proposals]
        accepted = {
            (proposal.topic, proposal.index): answer
            for proposal, answer in zip(proposals, answers, strict=True)
            if isinstance(answer, PartitionImage)
        }
        if accepted:
            self.update_partitions(accepted)
        return answers

    def _altered(self, proposal: IsrProposal) -> PartitionImage | ErrorCode:
        partition = self.image.partition(proposal.topic, proposal.index)
        if partition is None or proposal.topic_id not in self.image.names:
            return ErrorCode.UNKNOWN_TOPIC_ID
        problem = proposal_error(self.image, proposal, partition)
        if problem is not None:
            return problem
        isr = tuple(broker_id for broker_id, _ in proposal.isr)
        return change_partition(partition, self.election_rules(proposal.topic), isr=isr)

    def update_partitions(self, changes: Mapping[tuple[str, int], PartitionImage]) -> None:
        """Put changed partitions into the registry, by topic and index, all in one image."""
        topics: dict[str, list[PartitionImage]] = {}
        for (name, index), partition in changes.items():
            if name not in topics:
                topics[name] = list(self.image.topics[name].partitions)
            topics[name][index] = partition
        self.update_topics(
            [
                replace(self.image.topics[name], partitions=tuple(partitions))
                for name, partitions in topics.items()
            ]
        )

    def partition(self, topic: str, index: int) -> PartitionImage:
        """A partition that there is.

        :raises ControllerError: UNKNOWN_TOPIC_OR_PARTITION where there is none.
        """
        partition = self.image.partition(topic, index)
        if partition is None:
            raise ControllerError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{index}"
            )
        return partition

    # -- brokers --------------------------------------------------------------------------------

    def register(self, broker: BrokerImage) -> None:
        """Take up a broker, or where it is reached now."""
        brokers = {**self.image.brokers, broker.broker_id: broker}
        self._publish_next(replace(self.image, brokers=brokers), set())

    def fence(self, broker_id: int) -> None:
        """Mark a broker offline: it leaves every ISR, and others lead where it led."""
        broker = self.image.brokers.get(broker_id)
        if broker is not None and not broker.fenced:
            self._set_broker(replace(broker, fenced=True), leaves=True)

    def unfence(self, broker_id: int) -> None:
        """Register a broker again that was fenced or unregistered: it is online, in the next broker
        epoch.
        """
        broker = self.image.registrations[broker_id]
        self._set_broker(replace(broker, fenced=False, epoch=broker.epoch + 1), leaves=False)

    def unregister(self, broker_id: int) -> None:
        """End a broker's registration (KIP-631): it leaves every ISR, as if it were fenced.

        A broker that runs goes on with what it knows and hears, and registers when it starts the
        next time: until then it is neither fenced nor unfenced.

        :raises ControllerError: BROKER_ID_NOT_REGISTERED where it is not registered.
        """
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            raise ControllerError(
                ErrorCode.BROKER_ID_NOT_REGISTERED,
                f"Broker ID {broker_id} is not currently registered",
            )
        self._set_broker(replace(broker, fenced=True), leaves=True, is_registered=False)

    def _set_broker(self, broker: BrokerImage, *, leaves: bool, is_registered: bool = True) -> None:
        """A broker comes or goes: every partition of which it has a replica is evaluated again."""
        self.finish_evaluations()
        self.image = with_registration(self.image, broker, is_registered=is_registered)
        self._evaluations.begin(broker.broker_id, leaves=leaves)

    def finish_evaluations(self) -> None:
        """Evaluate at once what is left for later turns, as a broker came or went."""
        self._evaluations.finish()

    def reevaluated(
        self, topic: str, partition: PartitionImage, gone: Collection[int] = ()
    ) -> PartitionImage:
        """A partition after its election, as the cluster is now, without brokers that are gone."""
        unclean = self._settings(topic).unclean_leader_election_enable
        return change_partition(
            partition,
            self.election_rules(topic),
            isr=[b for b in partition.isr if b not in gone],
            election=ElectionType.UNCLEAN if unclean else ElectionType.ANY,
        )

    def _partitions(self, topics: Iterable[str]) -> Iterator[tuple[str, int, PartitionImage]]:
        for name in topics:
            for index, partition in enumerate(self.image.topics[name].partitions):
                yield name, index, partition

    # -- features, configs and ids --------------------------------------------------------------

    def update_features(self, levels: Levels) -> None:
        """Finalize levels that `features.update_error` accepts; no change where they are final."""
        features = {**self.image.features, **levels}
        if features != self.image.features:
            before = self.image.broker_configs
            configs = elr_configs(before, features, self._min_insync_replicas)
            changed = set() if configs is before else set(self.image.topics)
            image = replace(self.image, features=features, broker_configs=configs)
            self._publish_next(image, changed)

    def remove_voter(self, node_id: int) -> None:
        """Take one of several voters out of the controllers' quorum."""
        self._publish_next(without_voter(self.image, node_id), set())

    def set_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        """Replace the dynamic configs of a topic."""
        self.set_configs_of_topics({topic: configs})

    def set_configs_of_topics(self, changed: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the dynamic configs of topics, all in one image."""
        copies = {topic: dict(configs) for topic, configs in changed.items()}
        all_configs = {**self.image.topic_configs, **copies}
        self._publish_next(replace(self.image, topic_configs=all_configs), set(changed))
        self._reevaluate_all(changed)

    def set_broker_configs(self, broker_id: int | None, configs: Mapping[str, str]) -> None:
        """Replace the dynamic configs of a broker, or the cluster-wide ones (None)."""
        all_configs = {**self.image.broker_configs, broker_id: dict(configs)}
        # Every topic without a config of its own follows the brokers'.
        self._publish_next(replace(self.image, broker_configs=all_configs), set(self.image.topics))
        self._reevaluate_all(self.image.topics)

    def set_group_configs(self, group: str, configs: Mapping[str, str]) -> None:
        """Replace the dynamic configs of a group; no change where it has them."""
        if configs != self.image.group_configs.get(group, {}):
            groups = _with_configs(self.image.group_configs, group, configs)
            self._publish_next(replace(self.image, group_configs=groups), set())

    def set_client_metrics_configs(self, subscription: str, configs: Mapping[str, str]) -> None:
        """Replace the configs of a client metrics subscription; without any it is gone."""
        before = self.image.client_metrics_configs
        if configs != before.get(subscription, {}):
            after = _with_configs(before, subscription, configs)
            self._publish_next(replace(self.image, client_metrics_configs=after), set())

    def next_producer_ids(self, count: int) -> range:
        """Producer ids that no producer has had."""
        first = self._next_producer_id
        self._next_producer_id += count
        self.record_producer_ids(self._next_producer_id)
        return range(first, first + count)

    def skip_producer_ids(self, below: int) -> None:
        """Never give out ids lower than this one: producers may have had them."""
        self._next_producer_id = max(self._next_producer_id, below)
        self.record_producer_ids(self._next_producer_id)

    def reset(self) -> None:
        """Back to the first features, no topics and no dynamic configs; brokers stay."""
        empty = replace(
            self.image,
            topics={},
            names={},
            topic_configs={},
            broker_configs=elr_configs({}, self._features, self._min_insync_replicas),
            group_configs={},
            client_metrics_configs={},
            features=self._features,
            controller_ids=self._controller_ids,
            former_voters=(),
        )
        self._publish_next(empty, set(self.image.topics))
        self.log_levels.reset()

    # -- restart --------------------------------------------------------------------------------

    def load_image(self, image: ClusterImage) -> None:
        """Take over an earlier image; `publish_image` sends it to the brokers."""
        configs = elr_configs(image.broker_configs, image.features, self._min_insync_replicas)
        self.image = replace(image, broker_configs=configs)

    def restart_partitions(
        self,
        conclude: Callable[[str, int, PartitionImage], PartitionImage],
        next_producer_id: int,
    ) -> None:
        """Set every partition to what ``conclude`` makes of it, before it is published."""
        topics = {
            name: replace(
                topic,
                partitions=tuple(
                    conclude(name, index, partition)
                    for index, partition in enumerate(topic.partitions)
                ),
            )
            for name, topic in self.image.topics.items()
        }
        self.image = replace(self.image, topics=topics)
        self._next_producer_id = next_producer_id

    def publish_image(self) -> None:
        """Send the brokers the whole image."""
        self._publish_next(self.image, set(self.image.topics))

    # -- inside ---------------------------------------------------------------------------------

    def _publish_next(self, image: ClusterImage, changed: set[str]) -> None:
        self.image = replace(image, version=self.image.version + 1)
        self._publish(self.image, frozenset(changed))

    def _reevaluate_all(self, topics: Iterable[str]) -> None:
        """Configs changed: an unclean election may be allowed now, or the ISR large enough."""
        settled = {}
        for name, index, partition in self._partitions(topics):
            after = self.reevaluated(name, partition)
            if after is not partition:
                settled[name, index] = after
        if settled:
            self.update_partitions(settled)


def _call_now(callback: Callable[[], None]) -> None:
    callback()


def _with_configs(
    before: Mapping[str, Mapping[str, str]], name: str, configs: Mapping[str, str]
) -> dict[str, Mapping[str, str]]:
    """Configs by resource, with those of one replaced."""
    after = {**before, name: dict(configs)}
    return {each: found for each, found in after.items() if found}


def _record_nothing(_next_producer_id: int) -> None:
    """A cluster in memory: ids begin at 0 with each process."""
