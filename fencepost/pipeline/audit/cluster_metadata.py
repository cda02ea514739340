"""Cluster metadata: which topics there were, who was assigned, and who was elected how.

A value of them is read from a real Kafka's metadata log or from fencepost's
(`fencepost.pipeline.audit.metadata_sources`), never changes, and knows no files. A partition's part
of it (`ClusterMetadata.partition`) is small, however large the cluster, and goes to its rules.

Where a metadata log begins with a state (a snapshot, or fencepost's rewritten file), what was
before is not known. Nothing is concluded from what it does not say.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fencepost.broker.metadata.image import PartitionImage


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElection:
    """A leader, or none, and the epoch that began with it."""

    offset: int
    """In the metadata log; of fencepost's, the version of the metadata."""
    time_ms: int | None
    """By the controller's clock; None where the log does not say."""
    leader: int
    """-1 where there is none."""
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    """As the epoch began."""
    elr: tuple[int, ...]
    """Eligible leader replicas (KIP-966), as the epoch began."""
    is_recovering: bool
    """Whether the leader has to recover from an unclean election (KIP-704). A fencepost never
    says so."""
    is_unclean: bool | None
    """Whether the leader was outside of the ISR and ELR before, so that committed records may be
    lost; None where that is not known."""

    @property
    def unclean_text(self) -> str:
        """That it was unclean, as an explanation."""
        return (
            f"the cluster metadata say that the election of leader epoch {self.leader_epoch} was "
            f"unclean, leader {self.leader}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Who holds the partition, from some point on."""

    offset: int
    replicas: tuple[int, ...]
    """Broker ids; during a reassignment the old ones and the new ones."""
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    directories: tuple[str | None, ...] = ()
    """Ids of the log directories, in the order of the replicas; none where it does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionIncarnation:
    """A partition of one topic id."""

    topic_id: str
    created: int | None
    """Offset in the metadata log; None where the topic is older than the known history."""
    deleted: int | None
    """Offset in the metadata log; None where the topic is there at its end."""
    elections: tuple[LeaderElection, ...]
    """One for each leader epoch that is known, in order."""
    assignments: tuple[Assignment, ...]
    """In order; the last holds."""
    last: PartitionImage
    """As it was at the end, or when it was deleted."""

    def election(self, leader_epoch: int) -> LeaderElection | None:
        """How an epoch began; None where it is not known."""
        return next((e for e in self.elections if e.leader_epoch == leader_epoch), None)

    def unclean_election(self, after: int, until: int) -> LeaderElection | None:
        """The first unclean election of an epoch from ``after`` (exclusive) to ``until``."""
        return next(
            (e for e in self.elections if e.is_unclean and after < e.leader_epoch <= until), None
        )

    def are_clean(self, after: int, until: int) -> bool:
        """Whether all epochs from ``after`` (exclusive) to ``until`` are known to be clean."""
        clean = {e.leader_epoch for e in self.elections if e.is_unclean is False}
        return all(epoch in clean for epoch in range(after + 1, until + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSource:
    """Which metadata were read, and how much of them there was."""

    path: str
    """The directory of the log, or fencepost's file."""
    unit: str
    """What offsets count: ``offset``, or ``version`` in fencepost's metadata."""
    start: int
    """Where the history begins; before it there is nothing, or only a state of it."""
    end: int
    """Behind the last that was read (exclusive)."""

    @property
    def text(self) -> str:
        """Which, and up to where."""
        if not self.start:
            return f"{self.path}, all of it up to {self.unit} {self.end - 1}"
        if self.start == self.end:
            return (
                f"{self.path}, the state before {self.unit} {self.end}; how it came about is not "
                "there"
            )
        return (
            f"{self.path}, {self.unit} {self.start} to {self.end - 1}; the history before "
            f"{self.unit} {self.start} is not there"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataReading:
    """What became of the search for cluster metadata."""

    source: MetadataSource | None = None
    """None where there are none, or none that can be read."""
    problems: tuple[str, ...] = ()
    """Metadata that can't be read, or contradict those that were: a sentence each."""
    tier: str | None = None
    """What was read of a real Kafka's metadata of its tier; None where there are none."""

    @property
    def lines(self) -> tuple[str, ...]:
        """What was read, and what could not be: a sentence each."""
        read = "none" if self.source is None else self.source.text
        of_tier = () if self.tier is None else (f"tier metadata: {self.tier}",)
        return (f"cluster metadata: {read}", *of_tier, *self.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionClusterMetadata:
    """What cluster metadata say of one partition."""

    reading: MetadataReading = field(default_factory=MetadataReading)
    """Of the whole cluster."""
    incarnations: tuple[PartitionIncarnation, ...] = ()
    """Those of the topic's name, in the order of their creation."""

    def incarnation(self, topic_id: str | None) -> PartitionIncarnation | None:
        """That of a topic id; None where it is not known.

        :param topic_id: None where the logs say none: then the last one.
        """
        if topic_id is None:
            return self.incarnations[-1] if self.incarnations else None
        return next((each for each in self.incarnations if each.topic_id == topic_id), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistration:
    """A broker, as it registered last."""

    broker: int
    epoch: int
    rack: str | None = None
    directories: tuple[str, ...] = ()
    """Ids of its log directories (KIP-858); none where it does not say."""
    is_registered: bool = True
    """False where an administrator has unregistered it since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicHistory:
    """A topic, from its creation to its deletion."""

    name: str
    topic_id: str
    created: int | None
    deleted: int | None
    partitions: Mapping[int, PartitionIncarnation]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMetadata:
    """All that the metadata of a cluster tell."""

    reading: MetadataReading = field(default_factory=MetadataReading)
    topics: Mapping[str, tuple[TopicHistory, ...]] = field(default_factory=dict)
    """By name: a name may have several topics, one after the other."""
    brokers: Mapping[int, BrokerRegistration] = field(default_factory=dict)
    topic_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The dynamic configs at the end, by topic name."""
    broker_configs: Mapping[int | None, Mapping[str, str]] = field(default_factory=dict)
    """The dynamic configs at the end, by broker; None holds those of all."""

    def partition(self, topic: str, index: int) -> PartitionClusterMetadata:
        """One partition's part."""
        found = (each.partitions.get(index) for each in self.topics.get(topic, ()))
        return PartitionClusterMetadata(
            reading=self.reading,
            incarnations=tuple(each for each in found if each is not None),
        )

    def assignments(self) -> dict[tuple[str, int], tuple[int, ...]]:
        """The replicas of every partition that is there at the end, by topic name and index."""
        return {
            (name, index): partition.assignments[-1].replicas
            for name, topics in self.topics.items()
            if topics[-1].deleted is None
            for index, partition in topics[-1].partitions.items()
        }

    def config_values(self, topic: str, name: str, broker_name: str) -> frozenset[str]:
        """The values that a config of a topic has by the dynamic configs; none where it is unset.

        :param name: Of the topic's config.
        :param broker_name: Of the brokers' config that is its default: several may set it.
        """
        own = self.topic_configs.get(topic, {}).get(name)
        if own is not None:
            return frozenset((own,))
        return frozenset(c[broker_name] for c in self.broker_configs.values() if broker_name in c)

    def with_tier(self, text: str | None, problems: tuple[str, ...]) -> "ClusterMetadata":
        """The same, and what was read of a real Kafka's metadata of its tier."""
        told = (*self.reading.problems, *problems)
        return replace(self, reading=replace(self.reading, tier=text, problems=told))

    def with_problems(self, *problems: str) -> "ClusterMetadata":
        """The same, and more that can't be read."""
        reading = replace(self.reading, problems=(*problems, *self.reading.problems))
        return replace(self, reading=reading)
