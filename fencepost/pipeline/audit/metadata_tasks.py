"""What tasks read before any batch is read: log directories, checkpoints and cluster metadata.

In this order, which is that of a running cluster's safety: the cluster metadata, then of each log
directory the checkpoints and after them the names in it, then the directories of replicas. So
what is read later is there if what was read earlier names it.

Nothing here imports Spark: a function takes what one task is given, and yields rows for others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from fencepost.broker.metadata.image import INTERNAL_TOPICS
from fencepost.pipeline.audit.coordinator_log import TOPIC as TRANSACTION_TOPIC
from fencepost.pipeline.audit.directory_rule import modified_ns, read_listing
from fencepost.pipeline.audit.directory_task import check_broker
from fencepost.pipeline.audit.metadata_rows import (
    AssignedPart,
    BrokerResult,
    CheckpointedReplica,
    CheckpointPart,
    ClusterFacts,
    ClusterPart,
    CoordinatorReplica,
    FoundDirectory,
    FoundReplicas,
    IdentifiedDirectory,
    ListedDirectory,
    MetadataRow,
    RemoteLogReplica,
    ReplicaPart,
)
from fencepost.pipeline.audit.metadata_sources import read_cluster_metadata
from fencepost.pipeline.audit.rule import ReplicaMetadata, TopicPartition
from fencepost.pipeline.audit.scan_tasks import found_segments
from fencepost.pipeline.audit.suppressions import Suppression
from fencepost.pipeline.datasource.log_directories import (
    LogDir,
    Replica,
    UnreadableSource,
    find_all_dirs,
    is_fenceposts,
    read_replica,
)
from fencepost.pipeline.datasource.segments import replica_segment_files, with_stamp
from fencepost.protocol.byte_utils import format_uuid
from fencepost.protocol.remote_log_metadata_records import REMOTE_LOG_METADATA_TOPIC
from fencepost.storage.formats import file_names
from fencepost.storage.formats.checkpoints import (
    CorruptCheckpoint,
    decode_epochs,
    decode_offsets,
    decode_partition_metadata,
)
from fencepost.storage.formats.file_names import DirectoryState

if TYPE_CHECKING:
    from fencepost.pipeline.audit.cluster_metadata import ClusterMetadata
    from fencepost.pipeline.audit.directory_rule import DirectoryListing

T = TypeVar("T")

POLICY: Final = "cleanup.policy"
DEFAULT_POLICY: Final = "log.cleanup.policy"
TIERED: Final = "remote.storage.enable"
RETENTION_MS: Final = "retention.ms"
RETENTION_BYTES: Final = "retention.bytes"
TOMBSTONES_MS: Final = "delete.retention.ms"
_DEFAULT_TOMBSTONES_MS: Final = "log.cleaner.delete.retention.ms"
_CONFIGS: Final = (POLICY, TIERED, RETENTION_MS, RETENTION_BYTES, TOMBSTONES_MS)
_INTERNAL: Final = INTERNAL_TOPICS | {"__share_group_state"}
"""Kafka compacts them, whatever their configs say here."""
COMPACT: Final = "compact"
_REPLICAS: Final = 200
"""Directories that are listed in less time than a task takes to start, or about as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be read."""

    directory: str
    """Of log directories."""
    topics: frozenset[str] | None = None
    """Names; None for all."""
    with_remote_log: bool = True
    """Whether a real Kafka's metadata of its tier are read."""
    with_coordinators: bool = False
    """Whether the transaction coordinators' log is read."""
    with_keys: bool = False
    """Whether replicas of compacted partitions are compared by keys."""
    rules: tuple[str, ...] = ()
    """Names of rules; none: all."""
    suppressions: tuple[Suppression, ...] = ()
    """Of findings about directories that are accepted."""
    with_stamps: bool = False
    """Whether segments of logs get the stamps of their files."""

    def is_audited(self, topic: str) -> bool:
        """Whether rules run on its partitions."""
        return self.topics is None or topic in self.topics

    def is_read(self, topic: str) -> bool:
        """Whether its directories are listed."""
        return (
            self.is_audited(topic)
            or (self.with_remote_log and topic == REMOTE_LOG_METADATA_TOPIC)
            or (self.with_coordinators and topic == TRANSACTION_TOPIC)
        )


# -- the first task ------------------------------------------------------------------------------


def find_directories(wanted: Wanted) -> Iterator[MetadataRow]:
    """The log directories, each a row, and what the cluster metadata say.

    :raises UnreadableSource: When there is none, or they are of several clusters.
    """
    found = find_all_dirs(wanted.directory)
    cluster = read_cluster_metadata(found.log_dirs)
    keys = tuple(sorted({_key(each.broker) for each in found.log_dirs} | {_key(None)}))
    compacted = _compacted_topics(cluster, wanted)
    for log_dir in found.log_dirs:
        yield _directory_row(log_dir.path, log_dir, keys, compacted)
    for path in found.set_aside:
        yield _directory_row(path, None, keys, compacted)
    yield MetadataRow(value=_cluster_facts(cluster, wanted, found.log_dirs))
    yield from _cluster_parts(cluster, wanted, found.log_dirs)


def _key(broker: int | None) -> str:
    return f"broker {broker}"


def _directory_row(
    path: Path, log_dir: LogDir | None, keys: tuple[str, ...], compacted: frozenset[str]
) -> MetadataRow:
    found = FoundDirectory(path=str(path), log_dir=log_dir, keys=keys, compacted=compacted)
    return MetadataRow(value=found, key=str(path))


def is_compacted(topic: str, own: str | None, defaults: Iterable[str]) -> bool:
    """Whether configs say that the logs of a topic are compacted.

    :param own: Its ``cleanup.policy``; None where it says none.
    :param defaults: The policies that brokers have for those that say none.
    """
    policies = defaults if own is None else (own,)
    return topic in _INTERNAL or any(COMPACT in policy for policy in policies)


def _compacted_topics(cluster: ClusterMetadata, wanted: Wanted) -> frozenset[str]:
    """Those whose replicas are compared by keys."""
    if not wanted.with_keys:
        return frozenset()
    defaults = _default_policies(cluster)
    return frozenset(
        name
        for name in {*cluster.topics, *_INTERNAL}
        if wanted.is_audited(name)
        and is_compacted(name, cluster.topic_configs.get(name, {}).get(POLICY), defaults)
    )


def _default_policies(cluster: ClusterMetadata) -> frozenset[str]:
    known = cluster.broker_configs.values()
    return frozenset(each[DEFAULT_POLICY] for each in known if DEFAULT_POLICY in each)


def _default_tombstones_ms(cluster: ClusterMetadata) -> int | None:
    known = cluster.broker_configs.values()
    values = (each.get(_DEFAULT_TOMBSTONES_MS, "") for each in known)
    return min((int(each) for each in values if each.isdecimal()), default=None)


def _cluster_facts(
    cluster: ClusterMetadata, wanted: Wanted, log_dirs: Collection[LogDir]
) -> ClusterFacts:
    chosen = {
        name: {key: configs[key] for key in _CONFIGS if key in configs}
        for name, configs in cluster.topic_configs.items()
        if wanted.is_audited(name)
    }
    remote_log = cluster.topics.get(REMOTE_LOG_METADATA_TOPIC)
    return ClusterFacts(
        reading=cluster.reading,
        topic_configs={name: configs for name, configs in chosen.items() if configs},
        default_policies=_default_policies(cluster),
        default_tombstones_ms=_default_tombstones_ms(cluster),
        cluster_ids=tuple(sorted({each.cluster_id for each in log_dirs if each.cluster_id})),
        is_clean=all(each.clean for each in log_dirs),
        remote_log_partitions=len(remote_log[-1].partitions) if remote_log else None,
    )


def _cluster_parts(
    cluster: ClusterMetadata, wanted: Wanted, log_dirs: Iterable[LogDir]
) -> Iterator[MetadataRow]:
    histories = {
        (name, index)
        for name, topics in cluster.topics.items()
        if wanted.is_audited(name)
        for each in topics
        for index in each.partitions
    }
    for key in sorted(histories):
        incarnations = cluster.partition(*key).incarnations
        yield MetadataRow(value=ClusterPart(incarnations=incarnations), partition=key)
    whole = _whole_brokers(cluster, log_dirs)
    for key, assigned in cluster.assignments().items():
        brokers = tuple(sorted(whole & set(assigned)))
        if brokers and wanted.is_audited(key[0]):
            yield MetadataRow(value=AssignedPart(brokers=brokers), partition=key)


def _whole_brokers(cluster: ClusterMetadata, log_dirs: Iterable[LogDir]) -> set[int]:
    """Those all of whose registered log directories are there; fencepost's say none."""
    own: dict[int, set[str | None]] = defaultdict(set)
    for each in log_dirs:
        own[each.broker].add(each.directory_id)
    return {
        broker
        for broker, found in own.items()
        if broker in cluster.brokers and found.issuperset(cluster.brokers[broker].directories)
    }


# -- a task a log directory ----------------------------------------------------------------------


def list_directory(wanted: Wanted, found: FoundDirectory) -> Iterator[MetadataRow]:
    """The checkpoints and the names in a log directory.

    :raises UnreadableSource: When it can't be read. A checkpoint that can't be read counts as
        missing.
    """
    path = Path(found.path)
    cleaned = _read(path / file_names.CLEANER_OFFSETS, decode_offsets) or {}
    broker = None if found.log_dir is None else found.log_dir.broker
    listing = read_listing(path, broker)
    # A copy: what this one finds out of its names is not sent along.
    yield MetadataRow(value=ListedDirectory(listing=replace(listing)), key=_key(broker))
    for key in found.keys:
        yield MetadataRow(value=IdentifiedDirectory(identity=listing.identity), key=key)
    if found.log_dir is not None:
        yield from _replicas_in(wanted, found, found.log_dir, listing, cleaned)


def _replicas_in(
    wanted: Wanted,
    found: FoundDirectory,
    log_dir: LogDir,
    listing: DirectoryListing,
    cleaned: Mapping[TopicPartition, int],
) -> Iterator[MetadataRow]:
    high_watermarks = listing.checkpoint(file_names.HIGH_WATERMARKS)
    recovery_points = listing.checkpoint(file_names.RECOVERY_POINTS)
    log_starts = listing.checkpoint(file_names.LOG_STARTS)
    named = {
        name: (each.topic, each.partition)
        for name, each in listing.partitions.items()
        if each.state is DirectoryState.LIVE and wanted.is_read(each.topic)
    }
    replicas = (
        CheckpointedReplica(
            name=name,
            high_watermark=high_watermarks.get(key),
            recovery_point=recovery_points.get(key),
            log_start=log_starts.get(key),
            is_cleaned=key in cleaned,
        )
        for name, key in named.items()
    )
    is_own = is_fenceposts(log_dir.path)
    while some := tuple(islice(replicas, _REPLICAS)):
        yield MetadataRow(
            value=FoundReplicas(
                log_dir=log_dir,
                is_fenceposts=is_own,
                checkpointed_ns=listing.checkpointed_ns,
                compacted=found.compacted,
                replicas=some,
            ),
            key=str(log_dir.path / some[0].name),
        )
    for key in {*high_watermarks, *recovery_points, *cleaned} - set(named.values()):
        if wanted.is_audited(key[0]):
            ends = [each[key] for each in (high_watermarks, recovery_points) if key in each]
            part = CheckpointPart(
                broker=log_dir.broker, end=max(ends, default=None), is_cleaned=key in cleaned
            )
            yield MetadataRow(value=part, partition=key)


# -- tasks of a key ------------------------------------------------------------------------------


def resolve_directories(wanted: Wanted, rows: Iterable[MetadataRow]) -> Iterator[MetadataRow]:
    """The replicas that rows name, and what the rules about directories find of whole brokers.

    :param rows: Those of some keys, all that there are of these.
    :raises UnreadableSource: When a replica can't be read, or a broker has one twice.
    """
    listings: dict[str, list[DirectoryListing]] = defaultdict(list)
    identities = defaultdict(list)
    for row in rows:
        match row.value:
            case FoundReplicas() as found:
                yield from list_replicas(wanted, found)
            case ListedDirectory(listing=listing):
                listings[row.key].append(listing)
            case IdentifiedDirectory(identity=identity):
                identities[row.key].append(identity)
    for key, of_one in listings.items():
        of_one.sort(key=lambda each: each.path)
        _check_for_twins(wanted, of_one)
        everyone = tuple(sorted(identities[key], key=lambda each: each.path))
        topics = wanted.topics or ()
        result = check_broker(
            of_one,
            everyone,
            rules=wanted.rules,
            topics=topics,
            suppressions=wanted.suppressions,
        )
        yield MetadataRow(value=BrokerResult(path=of_one[0].path, result=result))


def _check_for_twins(wanted: Wanted, listings: Iterable[DirectoryListing]) -> None:
    """:raises UnreadableSource: When directories of one broker have the same partition."""
    found: dict[str, str] = {}
    for listing in listings:
        if listing.broker is None:
            continue
        for name, each in listing.partitions.items():
            if each.state is not DirectoryState.LIVE or not wanted.is_read(each.topic):
                continue
            other = found.setdefault(name, listing.path)
            if other != listing.path:
                raise UnreadableSource(
                    f"broker {listing.broker} has {name} twice: "
                    f"{Path(other) / name} and {Path(listing.path) / name}"
                )


def list_replicas(wanted: Wanted, found: FoundReplicas) -> Iterator[MetadataRow]:
    """What the directories of some replicas have, and their segments.

    :raises UnreadableSource: When a directory can't be read.
    """
    for each in found.replicas:
        replica = read_replica(found.log_dir, each.name)
        files = replica_segment_files(replica)
        if wanted.is_audited(replica.topic):
            part = ReplicaPart(
                replica=_replica_metadata(replica, each, found),
                is_cleaned=each.is_cleaned,
            )
            yield MetadataRow(value=part, partition=(replica.topic, replica.partition))
            compacted = replica.topic in found.compacted or (wanted.with_keys and each.is_cleaned)
            yield from found_segments(
                map(with_stamp, files) if wanted.with_stamps else files, is_compacted=compacted
            )
        if wanted.with_remote_log and replica.topic == REMOTE_LOG_METADATA_TOPIC:
            yield MetadataRow(value=RemoteLogReplica(replica=replica))
        if wanted.with_coordinators and replica.topic == TRANSACTION_TOPIC:
            of_it = CoordinatorReplica(partition=replica.partition, segments=tuple(files))
            yield MetadataRow(value=of_it, key=str(replica.path))


def _replica_metadata(
    replica: Replica, checkpointed: CheckpointedReplica, found: FoundReplicas
) -> ReplicaMetadata:
    epochs = _read(replica.path / file_names.LEADER_EPOCHS, decode_epochs)
    topic_id = _read(replica.path / file_names.PARTITION_METADATA, decode_partition_metadata)
    return ReplicaMetadata(
        broker=replica.broker,
        clean=replica.log_dir.clean,
        segments=tuple(segment.base_offset for segment in replica.segments),
        epochs=None if epochs is None else tuple((e.epoch, e.start_offset) for e in epochs),
        high_watermark=checkpointed.high_watermark,
        recovery_point=checkpointed.recovery_point,
        log_start=checkpointed.log_start,
        topic_id=None if topic_id is None else format_uuid(topic_id),
        leftovers=replica.leftovers,
        replaced=replica.replaced,
        epochs_cut_first=found.is_fenceposts,
        snapshots=tuple(
            int(path.stem) for segment in replica.segments for path in segment.snapshots
        ),
        unchanged_since_checkpoint=(
            not replica.log_dir.clean
            and bool(replica.segments)
            and modified_ns(replica.segments[-1].log) <= found.checkpointed_ns
        ),
    )


def _read(path: Path, decode: Callable[[bytes], T]) -> T | None:
    try:
        return decode(path.read_bytes())
    except (OSError, CorruptCheckpoint):
        return None


def read_directories(wanted: Wanted) -> Iterator[MetadataRow]:
    """All of it, in this process.

    :raises UnreadableSource: When it can't be read.
    """
    listed: list[MetadataRow] = []
    for row in find_directories(wanted):
        yield row
        if isinstance(row.value, FoundDirectory):
            listed += list_directory(wanted, row.value)
    yield from listed
    yield from resolve_directories(wanted, listed)
