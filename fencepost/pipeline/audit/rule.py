"""A rule of an audit: the evidence that it is given, and the violations that it yields.

The evidence of a partition is its batches, traces and metadata. Batches and traces are grouped by
partition, and each group goes to every rule as Arrow tables. Metadata (checkpoints, the tier's
metadata) are read by tasks before any batch is, and go the same way, as `PartitionMetadata`.
Violations are rows of one shape, whatever the rule.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit import timeline
from fencepost.pipeline.audit.batch_arrays import BoolArray
from fencepost.pipeline.audit.cluster_metadata import PartitionClusterMetadata
from fencepost.pipeline.audit.condensed.segment_folds import SegmentFolds
from fencepost.pipeline.audit.coordinator_log import CoordinatorLog
from fencepost.pipeline.audit.keys.key_differences import KeyDifferences
from fencepost.pipeline.audit.timeline import TopicIncarnation
from fencepost.pipeline.audit.trace_scan.scan import NewScan
from fencepost.pipeline.datasource.schemas import Place

if TYPE_CHECKING:
    from fencepost.pipeline.audit.bucket_screen import BucketScreen

TopicPartition: TypeAlias = tuple[str, int]
"""A topic's name and the index of a partition."""
TOMBSTONES_MS: Final = 86_400_000
"""Kafka's default of ``delete.retention.ms``: a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaMetadata:
    """What a broker's directory says of its replica besides the segments."""

    broker: int
    clean: bool
    """Whether the broker ended in order."""
    segments: tuple[int, ...]
    """Base offsets, by the names of the files, in order. The last is the active one."""
    epochs: tuple[tuple[int, int], ...] | None
    """Epochs and their start offsets, from ``leader-epoch-checkpoint``; None without the file."""
    high_watermark: int | None = None
    """Checkpointed: the replica had at least this one (exclusive)."""
    recovery_point: int | None = None
    log_start: int | None = None
    topic_id: str | None = None
    leftovers: tuple[str, ...] = ()
    """Names of files on their way in or out: ``.deleted``, ``.cleaned``, ``.swap``; sorted."""
    replaced: tuple[tuple[int, int], ...] = ()
    """Offsets of the segments that are left out for a ``.swap``: first and end (exclusive)."""
    epochs_cut_first: bool = False
    """Whether the epochs in the file are cut before retention deletes a segment. Fencepost does so;
    Kafka cuts them in memory, and the file a little later."""
    snapshots: tuple[int, ...] | None = None
    """Offsets of the producer snapshots, by the names of the files; None where it is not known."""
    unchanged_since_checkpoint: bool = False
    """Whether its broker has not ended in order, and the active segment was written last before the
    checkpoints were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TierSegment:
    """What the tier's metadata says of a segment."""

    id: str
    start_offset: int
    end_offset: int
    """Inclusive."""
    epochs: tuple[tuple[int, int], ...]
    """Epochs and their start offsets within the segment."""
    bytes: int
    finished: bool
    """Whether its copy was completed and its deletion not begun: readers may rely on it."""
    topic_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentReplica:
    """A replica that the cluster metadata assign to a broker, and that has no directory there."""

    broker: int
    end: int | None
    """Up to where (exclusive) it had records, by its checkpoints; None where none names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetadata:
    """The checkpoints and metadata of one partition."""

    replicas: tuple[ReplicaMetadata, ...] = ()
    tier: tuple[TierSegment, ...] = ()
    with_tier: bool = False
    """Whether the tier's metadata were read; else its segments are unknown."""
    with_objects: bool = True
    """Whether the objects of the tier were read too; else no record in it is known."""
    compacted: bool = False
    """Whether offsets may be missing because of ``cleanup.policy=compact``."""
    tiered: bool | None = None
    """Whether ``remote.storage.enable`` is set; None where no cluster metadata tell."""
    never_expires: bool = False
    """Whether the topic's own configs say that retention deletes nothing."""
    unreadable: tuple[str, ...] = ()
    """Metadata in the tier that make no sense: which, and why."""
    cluster: PartitionClusterMetadata = field(default_factory=PartitionClusterMetadata)
    """What the cluster metadata say of it."""
    coordinators: CoordinatorLog | None = None
    """What the transaction coordinators know, of all partitions; None where their log is not there
    or was not read."""
    absent: tuple[AbsentReplica, ...] = ()
    """Of brokers all of whose log directories were read."""
    key_differences: KeyDifferences = field(default_factory=KeyDifferences)
    """Where replicas differ by keys; none where they were not compared so."""
    tombstones_ms: int = TOMBSTONES_MS
    """How long a record without a value stays at the least (``delete.retention.ms``)."""

    @property
    def is_local_only(self) -> bool:
        """Whether a log must hold every record from its log start on, as nothing is tiered."""
        return self.tiered is False and not self.tier


SegmentKey: TypeAlias = tuple[str, int | None, int, str | None]
"""Place, broker, base offset and, in the tier, id of a segment."""


@dataclass(frozen=True, kw_only=True)
class PartitionEvidence:
    """All that is known of one partition."""

    topic: str
    partition: int
    now_ms: int
    """When the audit was begun, by the clock of where it was: what was written later is newer. No
    rule reads a clock, as executors have many and start at many times."""
    metadata: PartitionMetadata
    batches: pa.Table
    """`BATCHES`, by place, broker, segment and position; some may be windows (`condensed`)."""
    traces: pa.Table | None
    """`TRACES` of this partition and of no partition at all; None without a trace. Events are by
    line, and so are exchanges."""
    folds: Mapping[SegmentKey, SegmentFolds] = field(default_factory=dict)
    """What the batches of segments say of producers, where it was folded when they were read."""

    @cached_property
    def memo(self) -> dict[object, Any]:
        """What functions that rules share have found out of this evidence; see `memoized`."""
        return {}

    def select(self, place: Place, broker: int | None = None) -> pa.Table:
        """The rows of one replica, or of the tier, in order.

        :param broker: Whose replica; None for those of all, and for the tier.
        """
        wanted = pc.equal(self.batches["place"], place)
        if broker is not None:
            wanted = pc.and_(wanted, pc.equal(self.batches["broker"], broker))
        return self.batches.filter(wanted)

    @cached_property
    def incarnations(self) -> tuple[TopicIncarnation, ...]:
        """Every incarnation of the partition in the trace, in order; one at least.

        Each rule about traces looks at them, and to find them takes a pass over the whole trace.
        """
        assert self.traces is not None, "the rules that look at it need a trace"
        return tuple(
            replace(each, cluster=self.metadata.cluster.incarnation(each.topic_id))
            for each in timeline.incarnations(self.traces, self.topic, self.partition)
        )

    @property
    def last_incarnation(self) -> TopicIncarnation | None:
        """The incarnation that the logs are of; None where the trace does not have their topic."""
        incarnation = self.incarnations[-1]
        ids = {each.topic_id for each in self.metadata.replicas} - {None}
        if ids and incarnation.topic_id is not None and incarnation.topic_id not in ids:
            return None
        return incarnation


_T = TypeVar("_T")


def memoized(function: Callable[[PartitionEvidence], _T]) -> Callable[[PartitionEvidence], _T]:
    """A function of evidence that is called once for it, however many rules ask."""

    @wraps(function)
    def call(evidence: PartitionEvidence) -> _T:
        if call not in evidence.memo:
            evidence.memo[call] = function(evidence)
        found: _T = evidence.memo[call]
        return found

    return call


def remember(
    evidence: PartitionEvidence, function: Callable[[PartitionEvidence], _T], found: _T
) -> None:
    """Let a memoized function return a value that is found already.

    :param function: One that is `memoized`.
    """
    evidence.memo[function] = found


VIOLATION_SCHEMA: Final = pa.schema(
    (
        ("rule", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("message", pa.string()),
        ("explanation", pa.string()),
        ("broker", pa.int32()),
        ("place", pa.string()),
        ("segment", pa.int64()),
        ("position", pa.int64()),
        ("offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("epoch", pa.int32()),
        ("number", pa.int64()),
        ("time_ms", pa.int64()),
        ("other_broker", pa.int32()),
        ("missing", pa.string()),
        ("incident", pa.int32()),
        ("severity", pa.string()),
    )
)


FINDING_SCHEMA: Final = VIOLATION_SCHEMA.append(pa.field("suppression", pa.string()))
"""Why a finding is accepted, besides."""


class Severity(StrEnum):
    """What a violation costs, the worst first."""

    LOSS = "loss"
    """Records are gone: no copy has them."""
    DAMAGE = "damage"
    """A copy, or a file that a broker relies on, is not as it must be; no record is known to be
    lost."""
    ANSWER = "answer"
    """A client or follower was answered wrongly; nothing stored is wrong by it."""
    REBUILT = "rebuilt"
    """A file is not as it must be that a broker makes again by itself."""


class Missing(StrEnum):
    """Which records are not there, of those from ``offset`` to ``end_offset``."""

    FROM_COPY = "from-copy"
    """This copy does not have them; others may."""
    OF_EPOCH = "of-epoch"
    """Those of the leader epoch that is named are not where they must be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One finding."""

    rule: str
    topic: str | None
    """None where it is about a log directory."""
    partition: int | None
    message: str
    """A sentence: what is so, and what should be."""
    explanation: str | None = None
    """Why it is legitimate, such as an unclean election; None where it is a violation."""
    broker: int | None = None
    place: str | None = None
    """``log`` or ``tier``."""
    segment: int | None = None
    """Base offset of the segment."""
    position: int | None = None
    """Byte in the segment."""
    offset: int | None = None
    """The first offset concerned."""
    end_offset: int | None = None
    """Behind the last one (exclusive)."""
    epoch: int | None = None
    number: int | None = None
    """Of the exchange in the trace."""
    time_ms: int | None = None
    other_broker: int | None = None
    """Whose replica the one of `broker` is compared with."""
    missing: Missing | None = None
    """Whether records are missing, and which; None where none are."""
    incident: int | None = None
    """The number of its incident in the partition; None until findings are folded."""
    severity: Severity | None = None
    """That of its incident."""
    suppression: str | None = None
    """Why it is accepted, by the file of suppressions; None where it is not."""

    @property
    def is_open(self) -> bool:
        """Whether it counts against the cluster: nothing explains it, and it is not accepted."""
        return self.explanation is None and self.suppression is None


def row_violation(
    rule: str,
    evidence: PartitionEvidence,
    row: Mapping[str, Any],
    *,
    message: str,
    explanation: str | None,
    offset: int | None = None,
    end_offset: int | None = None,
    epoch: int | None = None,
    missing: Missing | None = None,
) -> Violation:
    """A violation at the segment and position of a row of `BATCHES`."""
    return Violation(
        rule=rule,
        topic=evidence.topic,
        partition=evidence.partition,
        message=message,
        explanation=explanation,
        broker=row["broker"],
        place=row["place"],
        segment=row["segment"],
        position=row["position"],
        offset=offset,
        end_offset=end_offset,
        epoch=epoch,
        missing=missing,
    )


def place_text(topic: object, partition: object, broker: object) -> str:
    """What a finding is about: a partition, or else a broker's log directory."""
    if topic is not None:
        return f"{topic}-{partition}"
    return "log directories" if broker is None else f"broker {broker}"


def violation_table(found: list[Violation]) -> pa.Table:
    """Findings as Arrow, `FINDING_SCHEMA`."""
    return pa.Table.from_pylist([asdict(each) for each in found], schema=FINDING_SCHEMA)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What must be so."""

    name: str
    """In kebab-case, as ``--rule`` and the column ``rule`` say it."""
    about: str
    """One sentence for people."""
    source: str
    """Where it is written: a KIP, or a part of Kafka's documentation."""
    needs_trace: bool
    order: int
    """Where it stands in a report, among the rules about logs or among those about traces: what
    others build on comes first. Rules of the same number go by their names."""
    severity: Severity
    """Of what it finds, where no records are lost."""
    remedy: str
    """What can be done about it, where no other copy is the remedy."""
    check: Callable[[PartitionEvidence], Iterator[Violation]]
    screen: Callable[["BucketScreen"], BoolArray] | None = None
    """Of which partitions of a bucket it is certain that `check` finds nothing, so that it is not
    called; None where it always is."""
    scan: NewScan | None = None
    """Which exchanges of a trace can change what `check` finds, besides those that change what
    rules share (`trace_scan.shared_scans`); None where it looks at no other."""
    needs_records: bool = False
    """Whether it can't be followed where only the headers of batches are read."""
    is_of_file: bool = False
    """Whether what it finds of one segment is about one file, and so has one cause."""
