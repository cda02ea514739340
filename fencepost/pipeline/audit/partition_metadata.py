"""Puts the metadata of partitions together, of what tasks have read of each.

`partition_metadata` does so for the partitions of a bucket, on its executor.
"""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from fencepost.pipeline.audit import metadata_tasks as tasks
from fencepost.pipeline.audit.cluster_metadata import PartitionClusterMetadata
from fencepost.pipeline.audit.coordinator_log import CoordinatedProducer, CoordinatorLog
from fencepost.pipeline.audit.coordinator_reader import read_coordinators
from fencepost.pipeline.audit.keys.key_differences import joined
from fencepost.pipeline.audit.keys.key_tasks import read_key_differences
from fencepost.pipeline.audit.metadata_rows import (
    AssignedPart,
    CheckpointPart,
    ClusterFacts,
    ClusterPart,
    CoordinatorFacts,
    CoordinatorReplica,
    KeyPart,
    MetadataRow,
    RemoteLogFacts,
    RemoteLogReplica,
    ReplicaPart,
    TierKeys,
    TierPart,
    TransactionPart,
)
from fencepost.pipeline.audit.rule import (
    TOMBSTONES_MS,
    AbsentReplica,
    PartitionMetadata,
    TopicPartition,
)
from fencepost.pipeline.audit.scan_tasks import plan_scan
from fencepost.pipeline.audit.tier_tasks import list_tier, read_remote_log, read_tier

if TYPE_CHECKING:
    from pathlib import Path

    from fencepost.pipeline.audit.cluster_metadata import MetadataReading

T = TypeVar("T")

_WITHOUT_END: Final = "-1"


def partition_metadata(
    rows: Iterable[MetadataRow], *, with_objects: bool
) -> dict[TopicPartition, PartitionMetadata]:
    """The metadata of each partition that there is.

    There is one where a log directory or the tier has something of it, or a broker should have.

    :param rows: All that there are of these partitions, and those of no partition.
    :param with_objects: Whether the tier was read by its URL.
    :returns: By topic and partition, in order.
    """
    parts: dict[TopicPartition, list[object]] = defaultdict(list)
    shared: list[object] = []
    for row in rows:
        (shared if row.partition is None else parts[row.partition]).append(row.value)
    cluster = _Cluster.of(shared, with_objects=with_objects)
    found = {}
    for key in sorted(parts):
        metadata = _assemble(key, parts[key], cluster)
        if metadata is not None:
            found[key] = metadata
    return found


def cluster_reading(values: Iterable[object]) -> MetadataReading:
    """What was read of the cluster metadata and of a real Kafka's metadata of its tier.

    :param values: Of rows of no partition.
    """
    return _Cluster.of(list(values), with_objects=False).reading


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cluster:
    """What concerns all partitions."""

    facts: ClusterFacts
    reading: MetadataReading
    is_tier_known: bool
    """Whether all that the tier has is known, of partitions that it names."""
    with_objects: bool
    coordinators: CoordinatorLog | None
    """None where their log is not there, or was not read."""
    producers: dict[int, CoordinatedProducer]
    """What they know of each, whatever the partition."""

    @classmethod
    def of(cls, values: Collection[object], *, with_objects: bool) -> _Cluster:
        facts = next(_of(ClusterFacts, values), ClusterFacts())
        remote_log = next(_of(RemoteLogFacts, values), None)
        reading = facts.reading
        if remote_log is not None:
            problems = (*reading.problems, *remote_log.problems)
            reading = replace(reading, tier=remote_log.text, problems=problems)
        coordinators = list(_of(CoordinatorFacts, values))
        producers = {pid: each for part in coordinators for pid, each in part.producers.items()}
        return cls(
            facts=facts,
            reading=reading,
            is_tier_known=with_objects or (remote_log is not None and remote_log.is_complete),
            with_objects=with_objects,
            coordinators=_coordinators(coordinators, producers, facts.is_clean),
            producers=producers,
        )

    def config(self, topic: str, name: str) -> str | None:
        """A dynamic config of a topic."""
        return self.facts.topic_configs.get(topic, {}).get(name)

    def is_compacted(self, topic: str) -> bool:
        """Whether its configs, or brokers' defaults, say that its logs are compacted."""
        own = self.config(topic, tasks.POLICY)
        return tasks.is_compacted(topic, own, self.facts.default_policies)

    def tombstones_ms(self, topic: str) -> int:
        """How long a tombstone of a topic stays at the least, in milliseconds."""
        own = self.config(topic, tasks.TOMBSTONES_MS)
        if own is not None and own.isdecimal():
            return int(own)
        least = self.facts.default_tombstones_ms
        return TOMBSTONES_MS if least is None else least

    def is_tiered(self, topic: str) -> bool | None:
        """Whether its closed segments may be in the tier alone; None where that is unknown."""
        if self.reading.source is None:
            return None
        return (self.config(topic, tasks.TIERED) or "").lower() == "true"

    def never_expires(self, topic: str) -> bool:
        """Whether the topic itself says that retention deletes nothing; brokers' defaults vary."""
        if self.config(topic, tasks.POLICY) == tasks.COMPACT:
            return True
        size = self.config(topic, tasks.RETENTION_BYTES)
        return self.config(topic, tasks.RETENTION_MS) == _WITHOUT_END and size in (
            None,
            _WITHOUT_END,
        )

    def coordinators_for(self, parts: Collection[TransactionPart]) -> CoordinatorLog | None:
        """What the coordinators know, with the transactions that a partition is in."""
        if self.coordinators is None or not parts:
            return self.coordinators
        own: dict[int, CoordinatedProducer] = {}
        for each in parts:
            own.update(each.producers)
        return replace(self.coordinators, producers=ChainMap(own, self.producers))


def _coordinators(
    parts: Collection[CoordinatorFacts],
    producers: Mapping[int, CoordinatedProducer],
    is_clean: bool,
) -> CoordinatorLog | None:
    if not parts:
        return None
    return CoordinatorLog(
        producers=producers,
        whole=sorted(each.partition for each in parts) == list(range(len(parts))),
        clean=is_clean,
        latest_ms=max(each.latest_ms for each in parts),
    )


def _assemble(
    key: TopicPartition, parts: Collection[object], cluster: _Cluster
) -> PartitionMetadata | None:
    """None where there is no such partition."""
    replicas = sorted(_of(ReplicaPart, parts), key=lambda each: each.replica.broker)
    of_tier = list(_of(TierPart, parts))
    checkpoints = list(_of(CheckpointPart, parts))
    absent = _absent_replicas(replicas, checkpoints, next(_of(AssignedPart, parts), None))
    if not (replicas or of_tier or absent):
        return None
    segments = [segment for each in of_tier for segment in each.segments]
    incarnations = next(_of(ClusterPart, parts), ClusterPart(incarnations=())).incarnations
    cleaned = any(each.is_cleaned for each in replicas) or any(c.is_cleaned for c in checkpoints)
    return PartitionMetadata(
        replicas=tuple(each.replica for each in replicas),
        tier=tuple(sorted(segments, key=lambda each: (each.start_offset, each.id))),
        with_tier=cluster.is_tier_known and (cluster.with_objects or bool(segments)),
        with_objects=cluster.with_objects,
        compacted=cleaned or cluster.is_compacted(key[0]),
        tiered=cluster.is_tiered(key[0]),
        never_expires=cluster.never_expires(key[0]),
        unreadable=tuple(sorted(text for each in of_tier for text in each.unreadable)),
        cluster=PartitionClusterMetadata(reading=cluster.reading, incarnations=incarnations),
        coordinators=cluster.coordinators_for(list(_of(TransactionPart, parts))),
        absent=absent,
        key_differences=joined(each.differences for each in _of(KeyPart, parts)),
        tombstones_ms=cluster.tombstones_ms(key[0]),
    )


def _absent_replicas(
    replicas: Iterable[ReplicaPart],
    checkpoints: Iterable[CheckpointPart],
    assigned: AssignedPart | None,
) -> tuple[AbsentReplica, ...]:
    """What brokers lack, all of whose directories are there, of what is assigned to them."""
    if assigned is None:
        return ()
    there = {each.replica.broker for each in replicas}
    ends: dict[int, list[int]] = defaultdict(list)
    for each in checkpoints:
        if each.end is not None:
            ends[each.broker].append(each.end)
    return tuple(
        AbsentReplica(broker=broker, end=max(ends[broker], default=None))
        for broker in assigned.brokers
        if broker not in there
    )


def _of(kind: type[T], values: Iterable[object]) -> Iterator[T]:
    return (each for each in values if isinstance(each, kind))


def read_partition_metadata(
    directory: str | Path,
    *,
    remote: str | None = None,
    topics: Collection[str] = (),
    with_coordinators: bool = False,
    with_keys: bool = False,
) -> dict[TopicPartition, PartitionMetadata]:
    """What the log directories, the tier and the cluster metadata say, all in this process.

    :param directory: A log directory, what ``serve --data-dir`` named, or a folder of such.
    :param remote: The URL of the tier, as ``serve --remote`` takes it. Without it a real Kafka's
        topic ``__remote_log_metadata`` tells of its tier.
    :param topics: Only of these; none for all.
    :param with_coordinators: Whether the transaction coordinators' log is read.
    :param with_keys: Whether replicas of compacted partitions are compared by keys.
    :returns: By topic and partition; empty where there is no log.
    :raises UnreadableSource: When there is no log directory, or the tier does not answer. A
        checkpoint that can't be read counts as missing.
    """
    wanted = tasks.Wanted(
        directory=str(directory),
        topics=frozenset(topics) or None,
        with_remote_log=remote is None,
        with_coordinators=with_coordinators,
        with_keys=with_keys,
    )
    rows = list(tasks.read_directories(wanted))
    values = [each.value for each in rows]
    if remote is None:
        facts = next(_of(ClusterFacts, values))
        replicas = [each.replica for each in _of(RemoteLogReplica, values)]
        rows += read_remote_log(replicas, facts.remote_log_partitions, wanted.topics)
    else:
        for row in list(list_tier(remote, wanted.topics)):
            assert isinstance(row.value, TierKeys), "they are all that it lists"
            rows += read_tier(remote, row.value.stamps)
    rows += read_coordinators(wanted, _of(CoordinatorReplica, values))
    rows += read_key_differences(plan_scan(rows))
    return partition_metadata(rows, with_objects=remote is not None)
