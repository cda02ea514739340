"""Reads the metadata of a cluster with Spark: tasks list and read, and leave rows for the buckets.

The driver reads no file. It is told how many rows of each kind there are, why the audit can't be
run, what the rules about directories find, and which cluster metadata were read. The rows stay with
the executors, which have read each directory once: they are persisted, and read again only where an
executor is lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit import coordinator_log, metadata_rows
from fencepost.pipeline.audit.coordinator_reader import fold_partitions, scan_replica
from fencepost.pipeline.audit.metadata_rows import (
    AssignedPart,
    BrokerResult,
    CheckpointPart,
    ClusterFacts,
    ClusterPart,
    CoordinatorFacts,
    CoordinatorReplica,
    FoundDirectory,
    FoundReplicas,
    FoundSegments,
    FoundTraceFile,
    IdentifiedDirectory,
    ListedDirectory,
    MetadataRow,
    Problem,
    RemoteLogFacts,
    RemoteLogReplica,
    ReplicaPart,
    ScanTotals,
    TaskSummary,
    TierKeys,
    TierPart,
    TransactionPart,
    kinds,
)
from fencepost.pipeline.audit.metadata_tasks import (
    Wanted,
    find_directories,
    list_directory,
    resolve_directories,
)
from fencepost.pipeline.audit.scan_tasks import plan_scan
from fencepost.pipeline.audit.state.kept_segments import Trust
from fencepost.pipeline.audit.tier_tasks import list_tier, read_remote_log, read_tier
from fencepost.pipeline.datasource.log_directories import UnreadableSource
from fencepost.pipeline.datasource.trace_files import (
    UnreadableTrace,
    cluster_id_of,
    find_trace_files,
)
from fencepost.pipeline.python_workers import freeze_loaded_modules
from fencepost.pipeline.requirements import CannotRunError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Task: TypeAlias = Callable[[Iterable[MetadataRow]], Iterator[MetadataRow]]
T = TypeVar("T")

_FOR_BUCKETS: Final = (
    ReplicaPart,
    CheckpointPart,
    ClusterPart,
    AssignedPart,
    TierPart,
    TransactionPart,
    ClusterFacts,
    RemoteLogFacts,
    CoordinatorFacts,
)
_FOR_DRIVER: Final = (TaskSummary, Problem, BrokerResult, ClusterFacts, RemoteLogFacts, ScanTotals)
_RESOLVED: Final = (FoundReplicas, ListedDirectory, IdentifiedDirectory)


@dataclass(slots=True)
class SourceListing:
    """What tasks have found."""

    frames: list[DataFrame]
    """Of `metadata_rows.SCHEMA`; persisted."""
    trust: Trust | None = None
    """Which of the segments that were kept are not read; None where all are."""
    kept: DataFrame | None = None
    """`KeptPart`s of all partitions; None where nothing is kept."""
    planned: DataFrame | None = None
    """That of `frames` which has what `plan_scan` gives; None until it is there."""
    counts: Counter[str] = field(default_factory=Counter)
    """How many rows there are, by the name of the value's class."""
    partitions: int = 0
    """How many partitions there are, about: fewer where they are many, none where there is none."""
    values: list[object] = field(default_factory=list)
    """Those for the driver."""

    def count(self, kind: type) -> int:
        """How many rows there are with values of a class."""
        return self.counts[kind.__name__]

    def of(self, kind: type[T]) -> list[T]:
        """The values of a class that are for the driver."""
        return [each for each in self.values if isinstance(each, kind)]

    def rows(self, *classes: type) -> DataFrame:
        """The rows with values of some classes, in a partition for each core at most."""
        rows = reduce(_union, self.frames).where(kinds(*classes))
        return rows.coalesce(_task_count(rows.sparkSession))

    @property
    def bucket_rows(self) -> DataFrame:
        """Those that go to the buckets."""
        return self.rows(*_FOR_BUCKETS)

    def planned_rows(self, kind: type) -> DataFrame:
        """The rows with values of a class that `plan_scan` gives."""
        assert self.planned is not None, "the sources were listed"
        return self.planned.where(kinds(kind))

    def add(self, frame: DataFrame) -> DataFrame:
        """Have more rows, which are kept once they are computed."""
        kept = frame.persist()
        self.frames.append(kept)
        return kept

    def summarize(self) -> None:
        """Compute what is not yet, and tell the driver of it.

        :raises CannotRunError: When something can't be read.
        """
        found = self.rows(*_FOR_DRIVER).select("value").toArrow()
        self.values = [metadata_rows.from_bytes(value) for value in found["value"].to_pylist()]
        summaries = self.of(TaskSummary)
        self.counts = sum((Counter(each.counts) for each in summaries), Counter())
        self.partitions = reduce(or_, (each.partitions for each in summaries), 0).bit_count()
        for problem in sorted(each.text for each in self.of(Problem)):
            raise CannotRunError(problem)

    def require_partitions(self, wanted: Wanted) -> None:
        """:raises CannotRunError: When there is no partition."""
        if not self.partitions:
            which = f" of {', '.join(sorted(wanted.topics))}" if wanted.topics else ""
            raise CannotRunError(f"there is no log{which} in {wanted.directory}")

    def unpersist(self) -> None:
        """Let go of the rows."""
        for each in self.frames:
            each.unpersist()


def _union(one: DataFrame, two: DataFrame) -> DataFrame:
    return one.unionByName(two)


def list_sources(
    spark: SparkSession,
    wanted: Wanted,
    *,
    remote: str | None,
    trace: str | None,
    trust: Trust | None = None,
    kept: DataFrame | None = None,
) -> SourceListing:
    """Let tasks list and read all but batches and traces.

    :param remote: The URL of the tier.
    :param trace: The directory of ``serve --trace``.
    :param trust: As `SourceListing` has it, like the next one.
    :raises CannotRunError: When there is no partition, or something can't be read.
    :raises PySparkException: When a task fails.
    """
    listing = SourceListing([], trust=trust, kept=kept)
    try:
        _list_logs(spark, wanted, trace, listing, has_tier=remote is not None)
        _list_later(spark, wanted, remote, listing)
        listing.require_partitions(wanted)
    except BaseException:
        listing.unpersist()
        raise
    return listing


def _list_logs(
    spark: SparkSession,
    wanted: Wanted,
    trace: str | None,
    listing: SourceListing,
    *,
    has_tier: bool,
) -> None:
    """Log directories, cluster metadata and trace files, and then replicas.

    :param has_tier: Whether segments of it are planned with those of logs, later.
    """
    tasks = _task_count(spark)

    def list_directories(rows: Iterable[MetadataRow]) -> Iterator[MetadataRow]:
        for row in rows:
            assert isinstance(row.value, FoundDirectory), "no others are taken"
            yield from list_directory(wanted, row.value)

    found = _start(spark, lambda: find_directories(wanted)).repartition(tasks, "key")
    listed = _run(found, list_directories, FoundDirectory)
    listing.add(listed)
    if trace is not None:
        # After the checkpoints, and before the logs: what was answered must be in these.
        facts = listed.where(kinds(ClusterFacts)).repartition(1)
        listing.add(_run(facts, lambda rows: _trace_files(wanted.directory, trace, rows)))
        listing.summarize()
    named = listed.where(kinds(*_RESOLVED)).repartition(tasks, "key")
    listing.add(_run(named, lambda rows: resolve_directories(wanted, rows)))
    if not has_tier:
        listing.planned = listing.add(_planned(listing, tasks))
    listing.summarize()


def _list_later(
    spark: SparkSession, wanted: Wanted, remote: str | None, listing: SourceListing
) -> None:
    """What is read after the logs were listed: the tier's metadata and the coordinators' log."""
    tasks = _task_count(spark)
    before = len(listing.frames)
    if remote is not None:
        topics = wanted.topics

        def read_keys(rows: Iterable[MetadataRow]) -> Iterator[MetadataRow]:
            for row in rows:
                assert isinstance(row.value, TierKeys), "no others are taken"
                yield from read_tier(remote, row.value.stamps)

        keys = _start(spark, lambda: list_tier(remote, topics)).repartition(tasks, "key")
        listing.add(_run(keys, read_keys, TierKeys))
        listing.planned = listing.add(_planned(listing, tasks))
    elif listing.count(RemoteLogReplica):
        rows = listing.rows(RemoteLogReplica, ClusterFacts).repartition(1)
        listing.add(_run(rows, lambda rows: _remote_log(wanted, rows)))
    if listing.count(CoordinatorReplica):
        listing.add(_coordinators(listing.rows(CoordinatorReplica), wanted, tasks))
    if len(listing.frames) > before:
        listing.summarize()


def _planned(listing: SourceListing, tasks: int) -> DataFrame:
    """All segments that were found, as shares for tasks."""
    rows = listing.rows(FoundSegments)
    if listing.kept is not None:
        rows = rows.unionByName(listing.kept)
    return _run(rows.repartition(tasks, "key"), partial(plan_scan, trust=listing.trust))


def _trace_files(directory: str, trace: str, rows: Iterable[MetadataRow]) -> Iterator[MetadataRow]:
    """The files of a trace, if it is of the cluster as far as both say of which they are.

    :param rows: With `ClusterFacts`; none where the directories can't be read.
    :raises UnreadableTrace: When there is none, or it is another cluster's.
    """
    for row in rows:
        assert isinstance(row.value, ClusterFacts), "no others are asked for"
        known = row.value.cluster_ids
        for file in find_trace_files(trace):
            cluster_id = cluster_id_of(file)
            if known and cluster_id not in (None, *known):
                raise UnreadableTrace(
                    f"{file.path} is the trace of another cluster ({cluster_id})"
                    f" than the logs in {directory} ({', '.join(known)})"
                )
            yield MetadataRow(value=FoundTraceFile(file=file), key=file.path)


def _remote_log(wanted: Wanted, rows: Iterable[MetadataRow]) -> Iterator[MetadataRow]:
    values = [row.value for row in rows]
    replicas = [each.replica for each in values if isinstance(each, RemoteLogReplica)]
    facts = next(each for each in values if isinstance(each, ClusterFacts))
    return read_remote_log(replicas, facts.remote_log_partitions, wanted.topics)


def _coordinators(replicas: DataFrame, wanted: Wanted, tasks: int) -> DataFrame:
    """What the transaction coordinators know, of their log's replicas."""
    from pyspark.sql.pandas.types import from_arrow_schema

    def scan(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_loaded_modules()
        for batch in batches:
            for row in metadata_rows.from_arrow(batch):
                assert isinstance(row.value, CoordinatorReplica), "no others are asked for"
                yield from scan_replica(row.value)

    def fold(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_loaded_modules()
        rows = pa.Table.from_batches(
            [each.cast(coordinator_log.SCHEMA) for each in batches], coordinator_log.SCHEMA
        )
        return metadata_rows.to_batches(_reported(fold_partitions(wanted, rows)))

    scanned = replicas.repartition(tasks, "key").mapInArrow(
        scan, from_arrow_schema(coordinator_log.SCHEMA)
    )
    return scanned.repartition(tasks, "partition").mapInArrow(fold, _schema())


# -- tasks ---------------------------------------------------------------------------------------


def one_a_task(frame: DataFrame, rows: int) -> DataFrame:
    """The same rows, each in a partition of its own.

    :param frame: Of `metadata_rows.SCHEMA`; each row has another key.
    :param rows: How many there are.
    """
    from pyspark.sql.functions import monotonically_increasing_id

    # Sorted, so that a task that is run again numbers them as it did before.
    numbered = frame.repartition(1).sortWithinPartitions("key")
    numbered = numbered.withColumn("number", monotonically_increasing_id().cast("int"))
    return numbered.repartitionById(max(rows, 1), "number").drop("number")


def _task_count(spark: SparkSession) -> int:
    """One for each core: what they have to do is as long as it takes to start some."""
    return spark.sparkContext.defaultParallelism


def _start(spark: SparkSession, task: Callable[[], Iterator[MetadataRow]]) -> DataFrame:
    """The rows of one task, which needs none."""

    def call(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_loaded_modules()
        for _ in batches:
            yield from metadata_rows.to_batches(_reported(task()))

    return spark.range(0, 1, numPartitions=1).mapInArrow(call, _schema())


def _run(frame: DataFrame, task: Task, *classes: type) -> DataFrame:
    """The rows that tasks make of all rows of their partitions.

    :param classes: Of the values that they take, other rows stay as they are; none: all.
    """
    names = pa.array([each.__name__ for each in classes], pa.string())

    def call(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_loaded_modules()
        taken = []
        for batch in batches:
            wanted = pc.is_in(batch["kind"], names) if classes else pc.is_valid(batch["kind"])
            taken.append(batch.filter(wanted))
            left = batch.filter(pc.invert(wanted))
            if left.num_rows:
                yield left
        rows = (row for batch in taken for row in metadata_rows.from_arrow(batch))
        yield from metadata_rows.to_batches(_reported(task(rows)))

    return frame.mapInArrow(call, _schema())


def _schema() -> StructType:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(metadata_rows.SCHEMA)


def _reported(rows: Iterable[MetadataRow]) -> Iterator[MetadataRow]:
    """The same rows, and what they are together.

    What can't be read is a row too, as trying again is of no use.
    """
    found: list[MetadataRow] = []
    try:
        for row in rows:
            found.append(row)
            yield row
    except (UnreadableSource, UnreadableTrace) as error:
        yield MetadataRow(value=Problem(text=str(error)))
    except OSError as error:
        reason = error.strerror.lower() if error.strerror else str(error)
        yield MetadataRow(value=Problem(text=f"{error.filename}: {reason}"))
    yield MetadataRow(value=TaskSummary.of(found))
