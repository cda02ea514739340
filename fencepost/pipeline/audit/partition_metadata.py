"""Reads the metadata of partitions: checkpoints, the tier's metadata, and the cluster's.

They are small. The driver reads them once, before any batch is read: so the checkpoints of a
cluster that is running are never newer than its batches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from fencepost.broker.metadata.image import INTERNAL_TOPICS
from fencepost.pipeline.audit.cluster_metadata import ClusterMetadata
from fencepost.pipeline.audit.metadata_sources import read_cluster_metadata
from fencepost.pipeline.audit.remote_log_metadata import (
    RemoteLogMetadata,
    read_remote_log_metadata,
)
from fencepost.pipeline.audit.rule import (
    AbsentReplica,
    PartitionMetadata,
    ReplicaMetadata,
    TierSegment,
    TopicPartition,
)
from fencepost.pipeline.datasource.log_directories import (
    LogDir,
    Replica,
    find_log_dirs,
    find_replicas,
    is_fenceposts,
)
from fencepost.pipeline.datasource.tier import Tier, partition_of_key
from fencepost.protocol.byte_utils import format_uuid
from fencepost.storage.formats import file_names
from fencepost.storage.formats.checkpoints import (
    CorruptCheckpoint,
    decode_epochs,
    decode_offsets,
    decode_partition_metadata,
    decode_properties,
)
from fencepost.storage.tier.segment_metadata import RemoteSegment

T = TypeVar("T")

_INTERNAL: Final = INTERNAL_TOPICS | {"__share_group_state"}
"""Kafka compacts them, whatever their configs say here."""
_POLICY: Final = "cleanup.policy"
_DEFAULT_POLICY: Final = "log.cleanup.policy"
_COMPACT: Final = "compact"
_TIERED: Final = "remote.storage.enable"
_RETENTION_MS: Final = "retention.ms"
_RETENTION_BYTES: Final = "retention.bytes"
_WITHOUT_END: Final = "-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checkpoints:
    """The files at the top of a log directory."""

    high_watermarks: Mapping[TopicPartition, int]
    recovery_points: Mapping[TopicPartition, int]
    log_starts: Mapping[TopicPartition, int]
    cleaned: Mapping[TopicPartition, int]

    def ends(self, key: TopicPartition) -> list[int]:
        """Up to where (exclusive) a partition had records; none where nothing names it."""
        found = (each.get(key) for each in (self.high_watermarks, self.recovery_points))
        return [each for each in found if each is not None]


def read_partition_metadata(
    directory: str | Path, *, remote: str | None = None, topics: Collection[str] = ()
) -> dict[TopicPartition, PartitionMetadata]:
    """What the log directories, the tier and the cluster metadata say of each partition.

    :param directory: A log directory, what ``serve --data-dir`` named, or a folder of such.
    :param remote: The URL of the tier, as ``serve --remote`` takes it. Without it a real Kafka's
        topic ``__remote_log_metadata`` tells of its tier.
    :param topics: Only of these; none for all.
    :returns: By topic and partition; empty where there is no log.
    :raises UnreadableSource: When there is no log directory, or the tier does not answer. A
        checkpoint that can't be read counts as missing.
    """
    wanted = frozenset(topics) or None
    log_dirs = find_log_dirs(directory)
    cluster = read_cluster_metadata(log_dirs)
    checkpoints = {each.path: _read_checkpoints(each.path) for each in log_dirs}
    compacted = _compaction_check(cluster, checkpoints.values())
    replicas: dict[TopicPartition, list[ReplicaMetadata]] = defaultdict(list)
    for replica in find_replicas(log_dirs, wanted):
        key = (replica.topic, replica.partition)
        replicas[key].append(_replica_metadata(replica, checkpoints[replica.log_dir.path]))
    tier: dict[TopicPartition, list[TierSegment]] = defaultdict(list)
    unreadable: dict[TopicPartition, list[str]] = defaultdict(list)
    if remote is not None:
        opened = Tier.open(remote)
        for segment in opened.segments(wanted):
            tier[segment.partition.topic, segment.partition.index].append(_tier_segment(segment))
        for name, why in opened.unreadable:
            unreadable[partition_of_key(name)].append(f"{name}: {why}")
    absent = _absent_replicas(cluster, log_dirs, checkpoints, replicas, wanted)
    listed = RemoteLogMetadata()
    if remote is None:
        listed = read_remote_log_metadata(log_dirs, cluster, wanted)
        cluster = cluster.with_tier(listed.text, listed.problems)
        for key, segments in listed.segments.items():
            tier[key] += segments
    return {
        key: PartitionMetadata(
            replicas=tuple(replicas[key]),
            tier=tuple(tier[key]),
            with_tier=remote is not None or (listed.is_complete and key in listed.segments),
            with_objects=remote is not None,
            compacted=compacted(*key),
            tiered=_is_tiered(cluster, key[0]),
            never_expires=_never_expires(cluster, key[0]),
            unreadable=tuple(unreadable[key]),
            cluster=cluster.partition(*key),
            absent=tuple(absent[key]),
        )
        for key in sorted({*replicas, *tier, *unreadable, *absent})
    }


def _absent_replicas(
    cluster: ClusterMetadata,
    log_dirs: Iterable[LogDir],
    checkpoints: Mapping[Path, _Checkpoints],
    replicas: Mapping[TopicPartition, Iterable[ReplicaMetadata]],
    topics: Collection[str] | None,
) -> dict[TopicPartition, list[AbsentReplica]]:
    """What brokers lack, all of whose directories are there, of what is assigned to them."""
    own: dict[int, list[LogDir]] = defaultdict(list)
    for log_dir in log_dirs:
        own[log_dir.broker].append(log_dir)
    whole = {broker: dirs for broker, dirs in own.items() if _are_all_there(cluster, broker, dirs)}
    absent: dict[TopicPartition, list[AbsentReplica]] = defaultdict(list)
    for key, assigned in cluster.assignments().items():
        there = {each.broker for each in replicas.get(key, ())}
        for broker in sorted(whole.keys() & set(assigned) - there):
            if topics is None or key[0] in topics:
                ends = [end for each in whole[broker] for end in checkpoints[each.path].ends(key)]
                absent[key].append(AbsentReplica(broker=broker, end=max(ends, default=None)))
    return absent


def _are_all_there(cluster: ClusterMetadata, broker: int, log_dirs: Iterable[LogDir]) -> bool:
    """Whether all log directories are there that a broker has registered; fencepost's say none."""
    registration = cluster.brokers.get(broker)
    files = [each.path / file_names.META_PROPERTIES for each in log_dirs]
    found = {(_read(file, decode_properties) or {}).get("directory.id") for file in files}
    return registration is not None and found.issuperset(registration.directories)


def _replica_metadata(replica: Replica, checkpoints: _Checkpoints) -> ReplicaMetadata:
    key = (replica.topic, replica.partition)
    epochs = _read(replica.path / file_names.LEADER_EPOCHS, decode_epochs)
    topic_id = _read(replica.path / file_names.PARTITION_METADATA, decode_partition_metadata)
    return ReplicaMetadata(
        broker=replica.broker,
        clean=replica.log_dir.clean,
        segments=tuple(segment.base_offset for segment in replica.segments),
        epochs=None if epochs is None else tuple((e.epoch, e.start_offset) for e in epochs),
        high_watermark=checkpoints.high_watermarks.get(key),
        recovery_point=checkpoints.recovery_points.get(key),
        log_start=checkpoints.log_starts.get(key),
        topic_id=None if topic_id is None else format_uuid(topic_id),
        leftovers=replica.leftovers,
        replaced=replica.replaced,
        epochs_cut_first=is_fenceposts(replica.log_dir.path),
        snapshots=tuple(
            int(path.stem) for segment in replica.segments for path in segment.snapshots
        ),
    )


def _tier_segment(segment: RemoteSegment) -> TierSegment:
    return TierSegment(
        id=format_uuid(segment.id),
        topic_id=format_uuid(segment.partition.topic_id),
        start_offset=segment.start_offset,
        end_offset=segment.end_offset,
        epochs=tuple((each.epoch, each.start_offset) for each in segment.epochs),
        bytes=segment.size_bytes,
        finished=segment.is_served,
    )


def _read_checkpoints(log_dir: Path) -> _Checkpoints:
    def offsets(name: str) -> Mapping[TopicPartition, int]:
        return _read(log_dir / name, decode_offsets) or {}

    return _Checkpoints(
        high_watermarks=offsets(file_names.HIGH_WATERMARKS),
        recovery_points=offsets(file_names.RECOVERY_POINTS),
        log_starts=offsets(file_names.LOG_STARTS),
        cleaned=offsets(file_names.CLEANER_OFFSETS),
    )


def _read(path: Path, decode: Callable[[bytes], T]) -> T | None:
    try:
        return decode(path.read_bytes())
    except (OSError, CorruptCheckpoint):
        return None


# Who is compacted.


def _is_tiered(cluster: ClusterMetadata, topic: str) -> bool | None:
    """Whether its closed segments may be in the tier alone; None where that is unknown."""
    if cluster.reading.source is None:
        return None
    return cluster.topic_configs.get(topic, {}).get(_TIERED, "").lower() == "true"


def _never_expires(cluster: ClusterMetadata, topic: str) -> bool:
    """Whether the topic itself says that retention deletes nothing; brokers' defaults vary."""
    configs = cluster.topic_configs.get(topic, {})
    if configs.get(_POLICY) == _COMPACT:
        return True
    return configs.get(_RETENTION_MS) == _WITHOUT_END == configs.get(_RETENTION_BYTES, "-1")


def _compaction_check(
    cluster: ClusterMetadata, checkpoints: Iterable[_Checkpoints]
) -> Callable[[str, int], bool]:
    """Tells whether offsets of a partition may be missing because a later record replaced them.

    A broker whose cleaner has been there says so in its checkpoint, and others copy what it left.
    """
    cleaned = {key for each in checkpoints for key in each.cleaned}

    def is_compacted(topic: str, partition: int) -> bool:
        if topic in _INTERNAL or (topic, partition) in cleaned:
            return True
        values = cluster.config_values(topic, _POLICY, _DEFAULT_POLICY)
        return any(_COMPACT in policy for policy in values)

    return is_compacted
