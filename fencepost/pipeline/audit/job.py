"""The audit: one Spark job that runs every rule on every partition, and its result.

It goes by buckets of partitions (`bucket_job`). Little data comes back to the driver: the
violations, and a summary of each partition.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from fencepost.pipeline.audit.bucket_job import BucketFunctions, bucket_job
from fencepost.pipeline.audit.cluster_metadata import MetadataReading
from fencepost.pipeline.audit.coordinator_reader import read_coordinators
from fencepost.pipeline.audit.directory_rule import DirectoryRule, read_listings
from fencepost.pipeline.audit.directory_rules import DIRECTORY_RULES
from fencepost.pipeline.audit.directory_task import DirectoryResult, check_directories
from fencepost.pipeline.audit.incidents import (
    Incident,
    by_severity,
    incident_table,
)
from fencepost.pipeline.audit.lineage.table import lineage_table
from fencepost.pipeline.audit.partition_metadata import read_partition_metadata
from fencepost.pipeline.audit.partition_summary import (
    PartitionSummary,
    RuleCount,
    RuleFailure,
    from_json,
)
from fencepost.pipeline.audit.rule import (
    VIOLATION_SCHEMA,
    PartitionMetadata,
    Rule,
    TopicPartition,
    violation_table,
)
from fencepost.pipeline.audit.rules import RULES, transactions
from fencepost.pipeline.audit.spark_task import (
    OUTPUT_SCHEMA,
    SUMMARY,
    PartitionResult,
    check_partitions,
    run_task,
)
from fencepost.pipeline.datasource.log_directories import UnreadableSource, find_log_dirs
from fencepost.pipeline.datasource.schemas import BATCHES, TRACES, Level
from fencepost.pipeline.datasource.trace_files import (
    TraceFile,
    UnreadableTrace,
    cluster_id_of,
    find_trace_files,
)
from fencepost.pipeline.requirements import CannotRunError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ALL_RULES: Final[Mapping[str, DirectoryRule | Rule]] = {**DIRECTORY_RULES, **RULES}
"""Every rule by its name, in the order of a report: about directories, logs, and traces."""
_TRACEBACK: Final = "Traceback (most recent call last):"
_OWN_ERROR: Final = re.compile(r"fencepost\.[\w.]+: ")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """What is audited, and at which level."""

    directory: str
    """Of log directories: as executors see it."""
    trace: str | None = None
    """Of ``serve --trace``."""
    remote: str | None = None
    """The URL of the tier."""
    topics: tuple[str, ...] = ()
    """Names; none: all."""
    level: Level = Level.RECORDS
    """`Level.RECORDS` also parses the records, `Level.BATCHES` only the headers of batches."""
    rules: tuple[str, ...] = ()
    """Names of `ALL_RULES`; none: all."""
    with_histories: bool = False
    """Whether summaries have the history, which a report draws."""
    now_ms: int = field(default_factory=_now_ms)
    """When the audit is begun: what every rule takes for the present, wherever it runs."""

    @property
    def checked_rules(self) -> tuple[DirectoryRule | Rule, ...]:
        """The rules that can be followed."""
        return tuple(rule for rule in self.selected_rules if self._can_check(rule))

    @property
    def selected_rules(self) -> tuple[DirectoryRule | Rule, ...]:
        """The rules that the options name."""
        return tuple(
            rule for name, rule in ALL_RULES.items() if not self.rules or name in self.rules
        )

    def _can_check(self, rule: DirectoryRule | Rule) -> bool:
        return self.trace is not None or not rule.needs_trace


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """The violations and summaries that an audit found."""

    options: AuditOptions
    violations: pa.Table
    """`rule.VIOLATION_SCHEMA`, by topic, partition and rule."""
    summaries: tuple[PartitionSummary, ...]
    """Of each partition, by topic and partition."""
    cluster_metadata: MetadataReading = field(default_factory=MetadataReading)
    """Which cluster metadata were read."""
    directories: DirectoryResult = field(default_factory=DirectoryResult)
    """Of the log directories; its findings are among `violations`."""

    @property
    def failures(self) -> tuple[RuleFailure, ...]:
        """Rules that raised: they have no result for that partition."""
        of_partitions = (failure for summary in self.summaries for failure in summary.failures)
        return (*self.directories.failures, *of_partitions)

    @property
    def rule_counts(self) -> Iterator[RuleCount]:
        """What each rule found, in each partition and in the log directories."""
        yield from self.directories.rule_counts
        for summary in self.summaries:
            yield from summary.rule_counts

    @property
    def violation_count(self) -> int:
        """Findings without an explanation, those included that are not listed."""
        return sum(count.found - count.explained for count in self.rule_counts)

    @property
    def explained_count(self) -> int:
        """Findings that have an explanation."""
        return sum(count.explained for count in self.rule_counts)

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """The causes of the findings, the worst first; what is explained comes last."""
        of_partitions = (each for summary in self.summaries for each in summary.incidents)
        return tuple(sorted((*self.directories.incidents, *of_partitions), key=by_severity))

    @property
    def lineage(self) -> pa.Table:
        """The lineage of every partition: `table.LINEAGE_SCHEMA`, by topic and partition."""
        return lineage_table((each.topic, each.partition, each.lineages) for each in self.summaries)

    def write(self, violations: Path, incidents: Path) -> None:
        """Write the findings and their causes as Parquet.

        :raises OSError: When a file can't be written.
        """
        parquet.write_table(self.violations, violations)
        parquet.write_table(incident_table(self.incidents), incidents)

    def write_lineage(self, path: Path) -> None:
        """Write the lineage as Parquet.

        :raises OSError: When the file can't be written.
        """
        parquet.write_table(self.lineage, path)


def find_partition_metadata(options: AuditOptions) -> Mapping[TopicPartition, PartitionMetadata]:
    """What there is to be looked at: quick, and no work for Spark.

    :raises CannotRunError: When there is nothing, or it can't be read.
    """
    try:
        if options.trace is not None:
            _check_cluster(options.directory, find_trace_files(options.trace))
        metadata = read_partition_metadata(
            options.directory, remote=options.remote, topics=options.topics
        )
    except (UnreadableSource, UnreadableTrace) as error:
        raise CannotRunError(str(error)) from error
    if not metadata:
        which = f" of {', '.join(options.topics)}" if options.topics else ""
        raise CannotRunError(f"there is no log{which} in {options.directory}")
    return metadata


def _check_cluster(directory: str, files: Iterable[TraceFile]) -> None:
    """Whether trace and logs are of one cluster, as far as both say of which they are.

    :raises UnreadableTrace: When they are not.
    """
    known = {each.cluster_id for each in find_log_dirs(directory)} - {None}
    for file in files:
        cluster_id = cluster_id_of(file)
        if known and cluster_id not in (None, *known):
            raise UnreadableTrace(
                f"{file.path} is the trace of another cluster ({cluster_id})"
                f" than the logs in {directory} ({', '.join(map(str, known))})"
            )


def audit(
    spark: SparkSession,
    options: AuditOptions,
    metadata: Mapping[TopicPartition, PartitionMetadata] | None = None,
) -> AuditResult:
    """Look at a cluster's logs, its tier and its trace.

    :param metadata: What `find_partition_metadata` found, where it was called already.
    :raises CannotRunError: When there is nothing to look at, or it can't be read.
    """
    metadata = find_partition_metadata(options) if metadata is None else metadata
    directories = _check_directories(options)
    metadata = _with_coordinators(spark, options, metadata)
    answered = _run(spark, options, metadata)
    is_account = pc.is_valid(answered[SUMMARY])
    summaries = [from_json(each.as_py()) for each in answered.filter(is_account)[SUMMARY]]
    found = answered.filter(pc.invert(is_account)).drop_columns([SUMMARY])
    without_rows = _without_rows(metadata, summaries, options)
    summaries += [each.summary for each in without_rows]
    found = pa.concat_tables(
        (
            violation_table(list(directories.violations)),
            found.cast(VIOLATION_SCHEMA),
            violation_table([v for each in without_rows for v in each.violations]),
        )
    )
    return AuditResult(
        options=options,
        violations=found.sort_by([(name, "ascending") for name in ("topic", "partition")]),
        summaries=tuple(sorted(summaries, key=lambda summary: summary.key)),
        cluster_metadata=next(iter(metadata.values()), PartitionMetadata()).cluster.reading,
        directories=directories,
    )


def _check_directories(options: AuditOptions) -> DirectoryResult:
    """What the rules about log directories find.

    :raises CannotRunError: When they can't be read.
    """
    try:
        listings = read_listings(options.directory)
    except UnreadableSource as error:
        raise CannotRunError(str(error)) from error
    return check_directories(listings, rules=options.rules, topics=options.topics)


def _without_rows(
    metadata: Mapping[TopicPartition, PartitionMetadata],
    summaries: Iterable[PartitionSummary],
    options: AuditOptions,
) -> list[PartitionResult]:
    """Partitions of which no row came: their logs are empty, or not there at all."""
    seen = {summary.key for summary in summaries}
    left = {key: known for key, known in metadata.items() if key not in seen}
    traces = None if options.trace is None else TRACES.empty_table()
    return list(
        check_partitions(
            BATCHES.empty_table(), traces, left, now_ms=options.now_ms, rules=options.rules
        )
    )


def _with_coordinators(
    spark: SparkSession, options: AuditOptions, metadata: Mapping[TopicPartition, PartitionMetadata]
) -> Mapping[TopicPartition, PartitionMetadata]:
    """The metadata, with what the transaction coordinators know where a rule asks for it.

    :raises CannotRunError: When that can't be read.
    """
    from pyspark.errors import PySparkException

    if not any(each.name == transactions.NAME for each in options.selected_rules):
        return metadata
    try:
        known = read_coordinators(spark, options.directory)
    except UnreadableSource as error:
        raise CannotRunError(str(error)) from error
    except PySparkException as error:
        raise CannotRunError(f"the job failed: {_error_line(error)}") from error
    return {key: replace(each, coordinators=known) for key, each in metadata.items()}


def _run(
    spark: SparkSession, options: AuditOptions, metadata: Mapping[TopicPartition, PartitionMetadata]
) -> pa.Table:
    """The job: rows of `OUTPUT_SCHEMA`.

    :raises CannotRunError: When it fails.
    """
    from pyspark.errors import PySparkException

    functions = bucket_functions(metadata, options)
    try:
        return bucket_job(spark, options, metadata, functions, OUTPUT_SCHEMA).toArrow()
    except PySparkException as error:
        raise CannotRunError(f"the job failed: {_error_line(error)}") from error


def bucket_functions(
    metadata: Mapping[TopicPartition, PartitionMetadata], options: AuditOptions
) -> BucketFunctions:
    """What Spark calls with a bucket, on executors: its batches, or these and its traces."""
    rules, now_ms, with_history = options.rules, options.now_ms, options.with_histories

    def both(traces: pa.Table, batches: pa.Table) -> pa.Table:
        return run_task(batches, traces, metadata, rules, now_ms=now_ms, with_history=with_history)

    def one(batches: pa.Table) -> pa.Table:
        return run_task(batches, None, metadata, rules, now_ms=now_ms, with_history=with_history)

    return one, both


def _error_line(error: Exception) -> str:
    """The line of an error from Spark that tells a person something."""
    lines = [line for line in str(error).splitlines() if line and not line.startswith(" ")]
    traced = [number for number, line in enumerate(lines) if line.endswith(_TRACEBACK)]
    # Behind a traceback, whose lines are indented, comes what Python raised.
    raised = lines[traced[0] + 1 :] if traced else lines
    # An error of ours says what is wrong without its name.
    return _OWN_ERROR.sub("", (raised or lines or [type(error).__name__])[0], count=1)
