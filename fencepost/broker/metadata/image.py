"""The cluster as its controller knows it, at one moment, and lookups in it.

An image never changes: the controller makes the next one, and a broker's view is simply the image
that reached it last. A broker that is cut off from the controller keeps an old one, and stale
metadata (KIP-232), the zombie (KAFKA-6880) and UNKNOWN_LEADER_EPOCH follow without a special case.
What a fault answers with metadata of earlier leader epochs comes from `LeaderEpochHistory`.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final
from uuid import UUID

from msgspec import Struct, field
from msgspec.structs import replace

from fencepost.broker.metadata.features import NEWEST, Levels
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.listener_text import PLAINTEXT

NO_LEADER: Final = -1
TRANSACTION_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", TRANSACTION_TOPIC})
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
NO_ENDPOINTS: "Final[Mapping[str, AdvertisedEndpoint]]" = MappingProxyType({})
MAX_EPOCHS: Final = 32
"""Past leader epochs of a partition that a `LeaderEpochHistory` keeps."""


class AdvertisedEndpoint(Struct, frozen=True, kw_only=True):
    """Where clients of one listener reach a node."""

    host: str
    """As advertised; empty where clients are told the address that they reached."""
    port: int


class Address(Struct, frozen=True, kw_only=True):
    """Where a node listens, and what it advertises to clients that reach it there."""

    listener: str = PLAINTEXT
    """The name of the listener."""
    host: str
    """The address it listens on."""
    port: int
    advertised_host: str
    """Empty: the address that the client reached."""
    advertised_port: int | None = None
    """None: the port that it listens on."""

    @property
    def advertised(self) -> AdvertisedEndpoint:
        """Where clients reach it."""
        port = self.port if self.advertised_port is None else self.advertised_port
        return AdvertisedEndpoint(host=self.advertised_host, port=port)


class BrokerImage(Struct, frozen=True, kw_only=True):
    """A registered broker, and where clients reach it."""

    broker_id: int
    host: str
    """As the first listener advertises it; see `AdvertisedEndpoint`."""
    port: int
    other_endpoints: Mapping[str, AdvertisedEndpoint] = field(default_factory=lambda: NO_ENDPOINTS)
    """Of the further listeners, by name."""
    rack: str | None = None
    epoch: int = 1
    """Of its registration; rises with each. In no cluster is it 0."""
    fenced: bool = False

    def endpoint(self, listener: str) -> AdvertisedEndpoint:
        """Where clients of a listener reach it."""
        found = self.other_endpoints.get(listener)
        return AdvertisedEndpoint(host=self.host, port=self.port) if found is None else found


class PartitionImage(Struct, frozen=True, kw_only=True):
    """A partition: who holds it, who leads it, in which epoch."""

    replicas: tuple[int, ...]
    """Broker ids of the assignment, the preferred leader first."""
    isr: tuple[int, ...]
    leader: int
    """Broker id, or -1 where there is none."""
    leader_epoch: int = 0
    """Rises by one at each election."""
    partition_epoch: int = 0
    """Rises by one at each change of this partition, of its ISR as well."""
    elr: tuple[int, ...] = ()
    """Out of sync, and yet with every committed record: eligible leaders (KIP-966)."""
    last_known_elr: tuple[int, ...] = ()
    """The last leader, while there is none (KIP-966): as in Kafka one broker, or none."""
    adding: tuple[int, ...] = ()
    """Replicas that a reassignment brings (KIP-455); they are among ``replicas``."""
    removing: tuple[int, ...] = ()
    """Replicas that go when the reassignment is complete; until then among ``replicas``."""
    failed: tuple[int, ...] = ()
    """Replicas whose broker is up but can't use their log; until it registers again."""

    def is_led_uncleanly_after(self, before: "PartitionImage") -> bool:
        """Whether an election since then may have lost records that were acknowledged."""
        is_elected = (self.leader, self.leader_epoch) != (before.leader, before.leader_epoch)
        return is_elected and self.leader not in (NO_LEADER, *before.isr, *before.elr)


class TopicImage(Struct, frozen=True, kw_only=True):
    """A topic: its id lives as long as it, its name may come again."""

    name: str
    topic_id: UUID
    partitions: tuple[PartitionImage, ...]
    """By partition index."""

    @property
    def is_internal(self) -> bool:
        """Whether it is one of Kafka's own topics."""
        return self.name in INTERNAL_TOPICS


class ClusterImage(Struct, frozen=True, kw_only=True):
    """The whole cluster. ``version`` rises by one with each image."""

    version: int
    cluster_id: str
    controller_id: int
    """The broker that clients are told to be the controller."""
    brokers: Mapping[int, BrokerImage]
    unregistered: Mapping[int, BrokerImage] = field(default_factory=dict)
    """Brokers that an administrator has unregistered (KIP-631), as they were registered; each until
    it starts the next time."""
    features: Levels = field(default_factory=lambda: NEWEST)
    """Finalized levels of all features (KIP-584)."""
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    names: Mapping[UUID, str] = field(default_factory=dict)
    """Topic names by topic id."""
    topic_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Dynamic topic configs, by topic."""
    broker_configs: Mapping[int | None, Mapping[str, str]] = field(default_factory=dict)
    """Dynamic broker configs, by broker id; None holds the cluster-wide defaults."""
    group_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Dynamic configs of groups that have some, by group id."""
    client_metrics_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Configs of client metrics subscriptions (KIP-714), by name; none is empty."""
    controller_address: AdvertisedEndpoint | None = None
    """Where the active controller listens for tools; None where it does not."""
    quorum_epoch: int = 1
    """Of the leader of the controllers' quorum."""
    former_voters: tuple[int, ...] = ()
    """Controllers that were removed from the quorum's voters."""
    controller_ids: tuple[int, ...] = ()
    """The quorum's voters where they are nodes of their own, the active one first."""

    @property
    def voters(self) -> tuple[int, ...]:
        """The controllers' node ids, the active one first: a broker's where there are no others."""
        return self.controller_ids or (self.controller_id,)

    @property
    def registrations(self) -> Mapping[int, BrokerImage]:
        """The last registration of every broker, of those that are unregistered as well."""
        return {**self.brokers, **self.unregistered} if self.unregistered else self.brokers

    def topic_by_id(self, topic_id: UUID | None) -> TopicImage | None:
        """The topic with this id, None where there is none (or the id is zero)."""
        name = self.names.get(topic_id) if topic_id is not None else None
        return None if name is None else self.topics[name]

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        """A partition by topic name and index, None where there is none."""
        found = self.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]

    def configs_of(self, topic: str) -> Mapping[str, str]:
        """The dynamic configs of a topic."""
        return self.topic_configs.get(topic, _NOTHING)


def resolve_name(
    view: ClusterImage, name: str, topic_id: UUID | None, *, by_id: bool
) -> str | ErrorCode:
    """The topic's name, or UNKNOWN_TOPIC_ID where no topic has the id.

    :param by_id: Whether this version of the API identifies topics by id.
    """
    if not by_id:
        return name
    found = view.names.get(topic_id) if topic_id is not None else None
    return ErrorCode.UNKNOWN_TOPIC_ID if found is None else found


def online_brokers(view: ClusterImage) -> frozenset[int]:
    """The brokers that are registered and not fenced."""
    return frozenset(b.broker_id for b in view.brokers.values() if not b.fenced)


def with_registration(
    image: ClusterImage, broker: BrokerImage, *, is_registered: bool = True
) -> ClusterImage:
    """The cluster with a broker as it is registered now, or as one that was unregistered.

    The brokers stay in the order of their ids. Where the broker that clients are told to be the
    controller is not online, the first that is takes its place.
    """
    broker_id = broker.broker_id
    brokers = {**image.brokers, broker_id: broker}
    unregistered = {b: each for b, each in image.unregistered.items() if b != broker_id}
    if not is_registered:
        unregistered[broker_id] = brokers.pop(broker_id)
    online = [b for b, each in brokers.items() if not each.fenced]
    controller_id = image.controller_id
    if online and controller_id not in online:
        controller_id = min(online)
    return replace(
        image,
        brokers=dict(sorted(brokers.items())),
        unregistered=unregistered,
        controller_id=controller_id,
    )


def with_next_epoch(image: ClusterImage, broker_id: int) -> ClusterImage:
    """The cluster after a broker's registration began again; itself where it has none."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        return image
    return with_registration(image, replace(broker, epoch=broker.epoch + 1))


def offline_replicas(partition: PartitionImage, online: frozenset[int]) -> tuple[int, ...]:
    """The replicas whose broker is not online, or whose log has failed."""
    replicas, failed = partition.replicas, partition.failed
    if not failed and online.issuperset(replicas):
        return ()
    return tuple(b for b in replicas if b not in online or b in failed)


class LeaderEpochHistory:
    """The partitions as they were at the end of their earlier leader epochs, for stale metadata."""

    __slots__ = ("_by_topic",)

    def __init__(self) -> None:
        self._by_topic: dict[UUID, dict[int, tuple[PartitionImage, ...]]] = {}

    def record(
        self,
        before: Mapping[str, TopicImage],
        after: Mapping[str, TopicImage],
        changed: Iterable[str],
    ) -> None:
        """Keep what ends with a new image.

        :param changed: Names of topics that are new, gone or different in it.
        """
        for name in changed:
            old, new = before.get(name), after.get(name)
            if old is None or old is new:
                continue
            if new is None or new.topic_id != old.topic_id:
                self._by_topic.pop(old.topic_id, None)
                continue
            pairs = zip(old.partitions, new.partitions, strict=False)
            for index, was, now in [(i, a, b) for i, (a, b) in enumerate(pairs) if a is not b]:
                if was.leader_epoch != now.leader_epoch:
                    epochs = self._by_topic.setdefault(old.topic_id, {})
                    epochs[index] = (*epochs.get(index, ()), was)[-MAX_EPOCHS:]

    def find(self, topic_id: UUID, index: int, epoch: int) -> PartitionImage | None:
        """A partition at the end of a leader epoch; None where it is not known to have had it."""
        ended = self._by_topic.get(topic_id, {}).get(index, ())
        return next((was for was in reversed(ended) if was.leader_epoch == epoch), None)
