"""Replays a metadata log into `ClusterMetadata`: a real Kafka's, or fencepost's `registry.log`."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Final
from uuid import UUID

from fencepost.broker.data_dir import metadata_log
from fencepost.broker.data_dir.kafka_metadata import (
    Entry,
    KafkaMetadataLog,
    MetadataEntry,
    SnapshotStart,
    apply_config,
)
from fencepost.broker.data_dir.metadata_log import ControllerState
from fencepost.broker.metadata.image import NO_LEADER, PartitionImage
from fencepost.pipeline.audit.cluster_metadata import (
    Assignment,
    BrokerRegistration,
    ClusterMetadata,
    LeaderElection,
    MetadataReading,
    MetadataSource,
    PartitionIncarnation,
    TopicHistory,
)
from fencepost.protocol.byte_utils import format_uuid
from fencepost.protocol.metadata_records import (
    BROKER_RESOURCE,
    NO_LEADER_CHANGE,
    RECOVERING,
    TOPIC_RESOURCE,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    Directories,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from fencepost.storage.files.file_system import FileSystem

_NO_CHANGE: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    """Where in a metadata log something stands."""

    offset: int
    time_ms: int | None = None
    is_state: bool = False
    """Whether it belongs to a state with which the log begins: then what was before is unknown."""


@dataclass(slots=True)
class _Partition:
    image: PartitionImage
    is_recovering: bool
    directories: tuple[str | None, ...] = ()
    elections: list[LeaderElection] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)


@dataclass(slots=True)
class _Topic:
    name: str
    created: int | None
    deleted: int | None = None
    partitions: dict[int, _Partition] = field(default_factory=dict)


class HistoryBuilder:
    """Takes in the changes of a cluster's metadata, one by one.

    A change of what is not known to be there (a partition of a topic that was never created) is
    left out: a log that is whole has none.
    """

    def __init__(self) -> None:
        self.topics: dict[UUID, _Topic] = {}
        self.names: dict[str, UUID] = {}
        """Of the topics that are there."""
        self.brokers: dict[int, BrokerRegistration] = {}
        self.topic_configs: dict[str, dict[str, str]] = {}
        self.broker_configs: dict[int | None, dict[str, str]] = {}

    def create_topic(self, at: _Point, name: str, topic_id: UUID) -> None:
        """A topic, so far without partitions."""
        self.topics[topic_id] = _Topic(name, None if at.is_state else at.offset)
        self.names[name] = topic_id

    def delete_topic(self, at: _Point, topic_id: UUID) -> None:
        """A topic is gone, with its configs; its history stays."""
        topic = self.topics.get(topic_id)
        if topic is not None:
            topic.deleted = at.offset
            if self.names.get(topic.name) == topic_id:
                del self.names[topic.name]
                self.topic_configs.pop(topic.name, None)

    def partition(self, topic_id: UUID, index: int) -> _Partition | None:
        """One that is there; None where it is not known."""
        topic = self.topics.get(topic_id)
        return None if topic is None else topic.partitions.get(index)

    def put_partition(
        self,
        at: _Point,
        topic_id: UUID,
        index: int,
        image: PartitionImage,
        *,
        is_recovering: bool = False,
        directories: tuple[str | None, ...] = (),
    ) -> None:
        """What a partition is from here on."""
        topic = self.topics.get(topic_id)
        if topic is None:
            return
        was = topic.partitions.get(index)
        now = topic.partitions.setdefault(index, _Partition(image, is_recovering))
        if was is None or was.image.leader_epoch != image.leader_epoch:
            now.elections.append(_election(at, was, image, is_recovering=is_recovering))
        assignment = Assignment(
            offset=at.offset,
            replicas=image.replicas,
            adding=image.adding,
            removing=image.removing,
            directories=directories,
        )
        if not now.assignments or replace(now.assignments[-1], offset=at.offset) != assignment:
            now.assignments.append(assignment)
        now.image, now.is_recovering, now.directories = image, is_recovering, directories

    def finish(self, source: MetadataSource, problems: Iterable[str]) -> ClusterMetadata:
        """All of it, as a value."""
        topics: dict[str, tuple[TopicHistory, ...]] = {}
        for topic_id, topic in self.topics.items():
            history = _topic_history(format_uuid(topic_id), topic)
            topics[topic.name] = (*topics.get(topic.name, ()), history)
        return ClusterMetadata(
            reading=MetadataReading(source=source, problems=tuple(problems)),
            topics=topics,
            brokers=dict(sorted(self.brokers.items())),
            topic_configs={name: c for name, c in self.topic_configs.items() if c},
            broker_configs={broker: c for broker, c in self.broker_configs.items() if c},
        )


def _election(
    at: _Point, before: _Partition | None, image: PartitionImage, *, is_recovering: bool
) -> LeaderElection:
    unclean: bool | None
    if before is not None:
        begins_recovery = is_recovering and not before.is_recovering
        unclean = begins_recovery or image.is_led_uncleanly_after(before.image)
    elif is_recovering and image.leader != NO_LEADER:
        unclean = True
    else:
        # What is created had no leader before; of a state nothing tells how it was made.
        unclean = None if at.is_state else False
    return LeaderElection(
        offset=at.offset,
        time_ms=at.time_ms,
        leader=image.leader,
        leader_epoch=image.leader_epoch,
        partition_epoch=image.partition_epoch,
        isr=image.isr,
        elr=image.elr,
        is_recovering=is_recovering,
        is_unclean=unclean,
    )


def _topic_history(topic_id: str, topic: _Topic) -> TopicHistory:
    return TopicHistory(
        name=topic.name,
        topic_id=topic_id,
        created=topic.created,
        deleted=topic.deleted,
        partitions={
            index: PartitionIncarnation(
                topic_id=topic_id,
                created=topic.created,
                deleted=topic.deleted,
                elections=tuple(each.elections),
                assignments=tuple(each.assignments),
                last=each.image,
            )
            for index, each in sorted(topic.partitions.items())
        },
    )


# -- a real Kafka's -----------------------------------------------------------------------------


def replay_kafka(fs: FileSystem, *directories: PurePath) -> ClusterMetadata:
    """What a real Kafka's metadata log tells.

    :param directories: Copies of it, as `KafkaMetadataLog` takes them; the last goes furthest.
    :raises OSError: When a file can't be read.
    """
    log = KafkaMetadataLog(fs, *directories)
    replay = _KafkaReplay()
    for entry in log.entries():
        replay.apply(entry)
    if not log.end:
        return ClusterMetadata(reading=MetadataReading(problems=tuple(log.problems)))
    path = str(directories[-1])
    source = MetadataSource(path=path, unit="offset", start=log.start, end=log.end)
    return replay.builder.finish(source, log.problems)


class _KafkaReplay:
    def __init__(self) -> None:
        self.builder = HistoryBuilder()

    def apply(self, entry: Entry) -> None:
        """Take one entry in."""
        if isinstance(entry, SnapshotStart):
            self.builder = HistoryBuilder()
            return
        at = _Point(offset=entry.offset, time_ms=entry.time_ms, is_state=entry.is_state)
        match entry.record:
            case TopicRecord(name=name, topic_id=UUID() as topic_id):
                self.builder.create_topic(at, name, topic_id)
            case RemoveTopicRecord(topic_id=UUID() as topic_id):
                self.builder.delete_topic(at, topic_id)
            case PartitionRecord() as record:
                self._put(at, record)
            case PartitionChangeRecord() as record:
                self._change(at, record)
            case ClearElrRecord(topic_name=name):
                self._clear_elr(at, name)
            case _:
                self._apply_of_cluster(entry)

    def _apply_of_cluster(self, entry: MetadataEntry) -> None:
        brokers = self.builder.brokers
        match entry.record:
            case ConfigRecord(resource_type=kind, resource_name=name) as record:
                if kind == TOPIC_RESOURCE:
                    apply_config(self.builder.topic_configs.setdefault(name, {}), record)
                elif kind == BROKER_RESOURCE:
                    broker = int(name) if name else None
                    apply_config(self.builder.broker_configs.setdefault(broker, {}), record)
            case RegisterBrokerRecord() as record:
                brokers[record.broker_id] = BrokerRegistration(
                    broker=record.broker_id,
                    epoch=record.broker_epoch,
                    rack=record.rack,
                    directories=_known(record.log_dirs),
                )
            case BrokerRegistrationChangeRecord(broker_id=broker, log_dirs=dirs) if dirs:
                if broker in brokers:
                    brokers[broker] = replace(brokers[broker], directories=_known(dirs))
            case UnregisterBrokerRecord(broker_id=broker) if broker in brokers:
                brokers[broker] = replace(brokers[broker], is_registered=False)

    def _put(self, at: _Point, record: PartitionRecord) -> None:
        if record.topic_id is not None:
            self.builder.put_partition(
                at,
                record.topic_id,
                record.partition_id,
                PartitionImage(
                    replicas=record.replicas,
                    isr=record.isr,
                    leader=record.leader,
                    leader_epoch=record.leader_epoch,
                    partition_epoch=record.partition_epoch,
                    elr=record.eligible_leader_replicas or (),
                    last_known_elr=record.last_known_elr or (),
                    adding=record.adding_replicas,
                    removing=record.removing_replicas,
                ),
                is_recovering=record.leader_recovery_state == RECOVERING,
                directories=_texts(record.directories),
            )

    def _change(self, at: _Point, record: PartitionChangeRecord) -> None:
        topic_id, index = record.topic_id, record.partition_id
        was = None if topic_id is None else self.builder.partition(topic_id, index)
        if topic_id is None or was is None:
            return
        before, state = was.image, record.leader_recovery_state
        is_election = record.leader != NO_LEADER_CHANGE
        self.builder.put_partition(
            at,
            topic_id,
            index,
            PartitionImage(
                replicas=_changed(before.replicas, record.replicas),
                isr=_changed(before.isr, record.isr),
                leader=record.leader if is_election else before.leader,
                leader_epoch=before.leader_epoch + is_election,
                partition_epoch=before.partition_epoch + 1,
                elr=_changed(before.elr, record.eligible_leader_replicas),
                last_known_elr=_changed(before.last_known_elr, record.last_known_elr),
                adding=_changed(before.adding, record.adding_replicas),
                removing=_changed(before.removing, record.removing_replicas),
            ),
            is_recovering=was.is_recovering if state == _NO_CHANGE else state == RECOVERING,
            directories=(
                was.directories if record.directories is None else _texts(record.directories)
            ),
        )

    def _clear_elr(self, at: _Point, name: str) -> None:
        names = [name] if name else list(self.builder.names)
        for topic_id in [self.builder.names[each] for each in names if each in self.builder.names]:
            for index, partition in self.builder.topics[topic_id].partitions.items():
                image = partition.image
                if image.elr or image.last_known_elr:
                    cleared = PartitionChangeRecord(
                        index, topic_id, eligible_leader_replicas=(), last_known_elr=()
                    )
                    self._change(at, cleared)


def _changed(before: tuple[int, ...], now: tuple[int, ...] | None) -> tuple[int, ...]:
    return before if now is None else now


def _texts(directories: Directories) -> tuple[str | None, ...]:
    return tuple(None if each is None else format_uuid(each) for each in directories)


def _known(directories: Directories) -> tuple[str, ...]:
    return tuple(format_uuid(each) for each in directories if each is not None)


# -- fencepost's --------------------------------------------------------------------------------


def replay_fencepost(fs: FileSystem, path: PurePath) -> ClusterMetadata:
    """What fencepost's metadata log tells.

    The file begins with the state when the process began, as one line.

    :param path: ``registry.log``.
    :raises OSError: When it can't be read.
    :raises CorruptMetadataLog: When it is damaged, or made by a newer fencepost.
    """
    known = ControllerState(cluster_id="")
    builder = HistoryBuilder()
    start: int | None = None
    for records, _ in metadata_log.replay(path, fs.read(path), known):
        if start is None:
            # Before the first start there was nothing.
            start = 0 if known.starts == 1 and not known.topics else known.version
            is_state = start > 0
        at = _Point(offset=known.version, is_state=is_state)
        is_state = False
        for record in records:
            _apply_fencepost(builder, at, record, known)
    builder.brokers = {
        broker: BrokerRegistration(broker=broker, epoch=epoch)
        for broker, epoch in known.brokers.items()
    }
    builder.topic_configs = dict(known.topic_configs)
    builder.broker_configs = dict(known.broker_configs)
    source = MetadataSource(path=str(path), unit="version", start=start or 0, end=known.version + 1)
    return builder.finish(source, ())


def _apply_fencepost(
    builder: HistoryBuilder, at: _Point, record: metadata_log.Record, known: ControllerState
) -> None:
    """Take in one record of a line, the whole of which is applied to ``known`` already."""
    match record:
        case ["topic", name, topic_id, _, _]:
            if builder.names.get(name) != UUID(topic_id):
                builder.create_topic(at, name, UUID(topic_id))
            for index, image in enumerate(known.topics[name].partitions):
                builder.put_partition(at, UUID(topic_id), index, image)
        case ["partition", name, index, _]:
            topic = known.topics[name]
            builder.put_partition(at, topic.topic_id, index, topic.partitions[index])
        case ["deleted", _, topic_id]:
            builder.delete_topic(at, UUID(topic_id))
