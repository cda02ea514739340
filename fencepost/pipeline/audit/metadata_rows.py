"""Rows of metadata: what one task has read about a partition, a broker or the cluster, for another.

A row has a value, a frozen dataclass, and where it goes: to the bucket of its partition, to all
buckets where it is of none, or to the task that gathers all of a key. Between tasks the value is
pickled, as Spark does with whatever Python values its rows have.
"""

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Self
from zlib import crc32

import pyarrow as pa

from fencepost.pipeline.audit.cluster_metadata import MetadataReading, PartitionIncarnation
from fencepost.pipeline.audit.condensed.window_rows import PlannedSegment
from fencepost.pipeline.audit.coordinator_log import CoordinatedProducer
from fencepost.pipeline.audit.directory_rule import DirectoryIdentity, DirectoryListing
from fencepost.pipeline.audit.directory_task import DirectoryResult
from fencepost.pipeline.audit.keys.key_differences import KeyDifferences
from fencepost.pipeline.audit.rule import ReplicaMetadata, TierSegment, TopicPartition
from fencepost.pipeline.audit.state.kept_segments import KeptSegment, ScanExtent
from fencepost.pipeline.datasource.log_directories import LogDir, Replica
from fencepost.pipeline.datasource.segment_stamps import SegmentStamp
from fencepost.pipeline.datasource.segments import SegmentFiles
from fencepost.pipeline.datasource.trace_files import TraceFile

# -- of a partition ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPart:
    """A replica that a log directory has."""

    replica: ReplicaMetadata
    is_cleaned: bool
    """Whether the log cleaner of its broker has been there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPart:
    """What the checkpoints of a log directory say of a partition that it has no replica of."""

    broker: int
    end: int | None
    """Up to where (exclusive) there were records; None where it does not say."""
    is_cleaned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPart:
    """What the cluster metadata say of a partition."""

    incarnations: tuple[PartitionIncarnation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedPart:
    """Which brokers must have a replica, of those all of whose log directories are there."""

    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TierPart:
    """Some segments that the tier has of a partition, and what of its metadata makes no sense."""

    segments: tuple[TierSegment, ...] = ()
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionPart:
    """The producers whose open or last decided transaction a coordinator has the partition in.

    Of their partitions only this one is named.
    """

    producers: Mapping[int, CoordinatedProducer]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPart:
    """Where replicas of a partition differ in some of its keys."""

    differences: KeyDifferences


# -- of the cluster, for each bucket ----------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What the cluster metadata and the log directories say of all partitions."""

    reading: MetadataReading = field(default_factory=MetadataReading)
    topic_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By topic name: those that decide which records may be missing."""
    default_policies: frozenset[str] = frozenset()
    """The values of ``log.cleanup.policy`` that brokers have."""
    default_tombstones_ms: int | None = None
    """The least ``log.cleaner.delete.retention.ms`` that a broker has; None where none says it."""
    cluster_ids: tuple[str, ...] = ()
    """Of the log directories that say one."""
    is_clean: bool = False
    """Whether all brokers have ended in order."""
    remote_log_partitions: int | None = None
    """How many partitions ``__remote_log_metadata`` has; None where it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogFacts:
    """What became of reading ``__remote_log_metadata``: as `RemoteLogMetadata` has it."""

    text: str | None
    problems: tuple[str, ...]
    is_complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorFacts:
    """What one partition of the transaction coordinators' log says of all its producers."""

    partition: int
    latest_ms: int
    producers: Mapping[int, CoordinatedProducer]
    """Without partitions and decisions, which are `TransactionPart`s."""


# -- for a task, or for the driver --------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDirectory:
    """A log directory that is to be listed."""

    path: str
    log_dir: LogDir | None
    """None where its logs are not read, as nothing says of which broker they are."""
    keys: tuple[str, ...]
    """Of the tasks that follow the rules about directories, all of them."""
    compacted: frozenset[str]
    """As `FoundReplicas` has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedDirectory:
    """The listing of a log directory, for the rules about directories."""

    listing: DirectoryListing


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentifiedDirectory:
    """Who a log directory says that it is, for the rules about the directories of a broker."""

    identity: DirectoryIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointedReplica:
    """The directory of a replica, and what the checkpoints beside it say of it."""

    name: str
    high_watermark: int | None
    recovery_point: int | None
    log_start: int | None
    is_cleaned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundReplicas:
    """Some replicas of a log directory that are to be listed."""

    log_dir: LogDir
    is_fenceposts: bool
    """As `log_directories.is_fenceposts`."""
    checkpointed_ns: int
    """As `DirectoryListing.checkpointed_ns`."""
    compacted: frozenset[str]
    """Topics whose replicas are compared by keys, as the cluster metadata say."""
    replicas: tuple[CheckpointedReplica, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSegments:
    """Segments of a replica, or of a partition in the tier; their key is that of the partition."""

    segments: tuple[SegmentFiles, ...]
    is_compacted: bool = False
    """Whether the replica is to be compared with others by keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanShare:
    """The segments that a task scans, and how each is cut into windows."""

    segments: tuple[PlannedSegment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyShare:
    """Segments of a partition whose keys a task reads, into how many parts they are divided."""

    segments: tuple[SegmentFiles, ...]
    parts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPart:
    """What an earlier audit has kept of a segment; its key is that of the partition."""

    segment: KeptSegment


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedSegments:
    """Segments of a partition of which the kept summaries are taken as they are."""

    logs: Mapping[str, str]
    """Where each is by now, by its key (`kept_segments.segment_key`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTotals:
    """How much of some partitions is read, and how much is not."""

    extent: ScanExtent


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogReplica:
    """A replica of ``__remote_log_metadata``."""

    replica: Replica


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorReplica:
    """A replica of ``__transaction_state``, which may have no segment."""

    partition: int
    segments: tuple[SegmentFiles, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TierKeys:
    """Segments of the tier whose metadata are to be read."""

    stamps: Mapping[str, SegmentStamp]
    """By the key of the metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTraceFile:
    """A file of the trace, as far as it is to be read."""

    file: TraceFile


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerResult:
    """What the rules about directories found in those of one broker."""

    path: str
    """The first of its directories: results are in the order of these."""
    result: DirectoryResult


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSummary:
    """How much a task has found."""

    counts: Mapping[str, int]
    """Of its rows, by the name of the value's class."""
    partitions: int
    """A set of `PARTITION_BITS` bits: one is set for each partition, by its hash."""

    @classmethod
    def of(cls, rows: Iterable["MetadataRow"]) -> Self:
        """That of some rows."""
        counts: Counter[str] = Counter()
        partitions = 0
        for row in rows:
            counts[type(row.value).__name__] += 1
            if isinstance(row.value, OF_PARTITIONS):
                partitions |= 1 << crc32(repr(row.partition).encode()) % PARTITION_BITS
        return cls(counts=counts, partitions=partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why the audit can't be run, in one line."""

    text: str


OF_PARTITIONS: Final = (ReplicaPart, TierPart, AssignedPart)
"""Where there is none of them there is no partition."""
PARTITION_BITS: Final = 1 << 12
"""Enough for some hundreds of partitions to be told apart: more need not be."""

# -- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRow:
    """A value, and where it goes."""

    value: object
    """One of the dataclasses of this module."""
    partition: TopicPartition | None = None
    key: str = ""
    """What rows have in common that one task needs together."""


SCHEMA: Final = pa.schema(
    (
        ("kind", pa.string()),
        ("key", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("value", pa.binary()),
    )
)
"""``kind`` is the name of the value's class, so that rows can be chosen without it."""
_ROWS: Final = 2_000
"""In a record batch: few enough that their values are small together."""


def to_batches(rows: Iterable[MetadataRow]) -> Iterator[pa.RecordBatch]:
    """Rows as Arrow, `SCHEMA`."""
    left = iter(rows)
    while some := list(islice(left, _ROWS)):
        keys = [each.partition or (None, None) for each in some]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([type(each.value).__name__ for each in some], pa.string()),
                pa.array([each.key for each in some], pa.string()),
                pa.array([topic for topic, _ in keys], pa.string()),
                pa.array([partition for _, partition in keys], pa.int32()),
                pa.array([pickle.dumps(each.value) for each in some], pa.binary()),
            ],
            schema=SCHEMA,
        )


def from_arrow(table: pa.Table | pa.RecordBatch) -> Iterator[MetadataRow]:
    """Rows of `SCHEMA`, or with more columns, as `to_batches` made them."""
    columns = (table[name].to_pylist() for name in ("key", "topic", "partition", "value"))
    for key, topic, partition, value in zip(*columns, strict=True):
        yield MetadataRow(
            value=from_bytes(value),
            partition=None if topic is None else (topic, partition),
            key=key,
        )


def from_bytes(value: bytes) -> object:
    """A value of a row."""
    return pickle.loads(value)  # noqa: S301  # another task of the same job has made it


def kinds(*classes: type) -> str:
    """Rows with values of some classes, in SQL."""
    return f"kind IN ({', '.join(repr(each.__name__) for each in classes)})"
