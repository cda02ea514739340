"""The audit: one Spark job that runs every rule on every partition, and its result.

Tasks list and read what there is (`source_listing`), and then it goes by buckets of partitions
(`bucket_job`). The driver reads no file, and little comes back to it: the violations, and a summary
of each partition.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from fencepost.pipeline.audit.bucket_job import BucketFunction, bucket_job, scan_segments
from fencepost.pipeline.audit.cluster_metadata import MetadataReading
from fencepost.pipeline.audit.condensed.window_scan import WindowReader
from fencepost.pipeline.audit.directory_rule import DirectoryRule
from fencepost.pipeline.audit.directory_rules import DIRECTORY_RULES
from fencepost.pipeline.audit.directory_task import DirectoryResult, merge_brokers
from fencepost.pipeline.audit.incidents import (
    Incident,
    by_severity,
    incident_table,
)
from fencepost.pipeline.audit.keys.key_tasks import key_differences
from fencepost.pipeline.audit.lineage.table import lineage_table
from fencepost.pipeline.audit.metadata_rows import (
    BrokerResult,
    ClusterFacts,
    ScanTotals,
    TrustedSegments,
)
from fencepost.pipeline.audit.metadata_tasks import Wanted
from fencepost.pipeline.audit.partition_metadata import cluster_reading
from fencepost.pipeline.audit.partition_summary import (
    PartitionSummary,
    RuleCount,
    RuleFailure,
    from_json,
)
from fencepost.pipeline.audit.rule import (
    FINDING_SCHEMA,
    VIOLATION_SCHEMA,
    PartitionMetadata,
    Rule,
    TopicPartition,
    violation_table,
)
from fencepost.pipeline.audit.rules import RULES, keys_agree, transactions
from fencepost.pipeline.audit.source_listing import SourceListing, list_sources
from fencepost.pipeline.audit.spark_task import OUTPUT_SCHEMA, SUMMARY, run_task
from fencepost.pipeline.audit.state.audit_state import AuditState
from fencepost.pipeline.audit.state.kept_segments import ScanExtent
from fencepost.pipeline.audit.suppressions import Suppression
from fencepost.pipeline.datasource.schemas import Level
from fencepost.pipeline.datasource.segment_scan import Checks
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
    state: str | None = None
    """Where the summaries of segments are kept for the next audit, and findings of each run."""
    full: bool = False
    """Whether all segments are read, whatever is kept of them."""
    reread: float = 0.0
    """The share (0 to 1) of the segments that did not change which are read nevertheless."""
    suppressions: tuple[Suppression, ...] = ()
    """Of findings that are accepted."""
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
        if rule.needs_records and self.level is not Level.RECORDS:
            return False
        return self.trace is not None or not rule.needs_trace


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """The violations and summaries that an audit found."""

    options: AuditOptions
    findings: pa.Table
    """`rule.FINDING_SCHEMA`, by topic, partition and rule."""
    summaries: tuple[PartitionSummary, ...]
    """Of each partition, by topic and partition."""
    cluster_metadata: MetadataReading = field(default_factory=MetadataReading)
    """Which cluster metadata were read."""
    directories: DirectoryResult = field(default_factory=DirectoryResult)
    """Of the log directories; its findings are among `findings`."""
    cluster_ids: tuple[str, ...] = ()
    """Of the log directories that say one."""
    extent: ScanExtent | None = None
    """How much was read, and how much was not; None without a state."""

    @property
    def violations(self) -> pa.Table:
        """The findings as `rule.VIOLATION_SCHEMA`."""
        return self.findings.select(VIOLATION_SCHEMA.names)

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
        """Findings that count against the cluster, those included that are not listed."""
        return sum(count.violations for count in self.rule_counts)

    @property
    def suppressed_count(self) -> int:
        """Findings that are accepted."""
        return sum(count.suppressed for count in self.rule_counts)

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

    @property
    def run_fields(self) -> dict[str, object]:
        """What was asked and what was found, as the table of runs of a state has it."""
        options = self.options
        return {
            "started": datetime.fromtimestamp(options.now_ms / 1000, UTC),
            "directory": options.directory,
            "cluster_ids": list(self.cluster_ids),
            "topics": list(options.topics),
            "rules": [rule.name for rule in options.checked_rules],
            "level": options.level.value,
            "with_tier": options.remote is not None,
            "with_trace": options.trace is not None,
            "full": options.full,
            "reread_share": options.reread,
            "partitions": len(self.summaries),
            "violations": self.violation_count,
            "explained": self.explained_count,
            "suppressed": self.suppressed_count,
            "failures": len(self.failures),
            "lost_records": sum(each.lost_records for each in self.incidents),
        }

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


def list_logs(
    spark: SparkSession, options: AuditOptions, state: AuditState | None = None
) -> SourceListing:
    """Let tasks find and read what there is besides batches and traces.

    :param state: Of which the segments that did not change are not to be read.
    :raises CannotRunError: When there is nothing, or it can't be read.
    """
    wanted = Wanted(
        directory=options.directory,
        topics=frozenset(options.topics) or None,
        with_remote_log=options.remote is None,
        with_coordinators=any(each.name == transactions.NAME for each in options.selected_rules),
        rules=options.rules,
        suppressions=options.suppressions,
        with_keys=any(each.name == keys_agree.NAME for each in options.checked_rules),
        with_stamps=state is not None,
    )
    with _readable_failure():
        return list_sources(
            spark,
            wanted,
            remote=options.remote,
            trace=options.trace,
            trust=None if state is None else state.trust,
            kept=None if state is None else state.kept_parts(),
        )


def audit(spark: SparkSession, options: AuditOptions) -> AuditResult:
    """Look at a cluster's logs, its tier and its trace.

    :raises CannotRunError: When there is nothing to look at, or it can't be read.
    """
    with _readable_failure():
        state = _open_state(spark, options)
    listing = list_logs(spark, options, state)
    cluster_ids = tuple(each for facts in listing.of(ClusterFacts) for each in facts.cluster_ids)
    try:
        with _readable_failure():
            windows = None
            if state is not None:
                state.check_cluster(cluster_ids)
                scanned = scan_segments(options, listing, keep=True)
                windows = state.write(
                    scanned,
                    listing.planned_rows(TrustedSegments),
                    topics=options.topics,
                    with_tier=options.remote is not None,
                )
            answered = bucket_job(
                options,
                listing,
                bucket_function(options),
                OUTPUT_SCHEMA,
                windows,
                key_differences(listing),
            ).toArrow()
    finally:
        listing.unpersist()
    directories = merge_brokers(
        each.result for each in sorted(listing.of(BrokerResult), key=lambda each: each.path)
    )
    is_account = pc.is_valid(answered[SUMMARY])
    summaries = [from_json(each.as_py()) for each in answered.filter(is_account)[SUMMARY]]
    found = answered.filter(pc.invert(is_account)).drop_columns([SUMMARY])
    found = pa.concat_tables(
        (violation_table(list(directories.violations)), found.cast(FINDING_SCHEMA))
    )
    extents = (each.extent for each in listing.of(ScanTotals))
    result = AuditResult(
        options=options,
        findings=found.sort_by([(name, "ascending") for name in ("topic", "partition")]),
        summaries=tuple(sorted(summaries, key=lambda summary: summary.key)),
        cluster_metadata=cluster_reading(listing.values),
        directories=directories,
        cluster_ids=cluster_ids,
        extent=None if state is None else sum(extents, ScanExtent()),
    )
    if state is not None and result.extent is not None:
        with _readable_failure():
            state.commit(result.findings, result.lineage, result.run_fields, result.extent)
    return result


def _open_state(spark: SparkSession, options: AuditOptions) -> AuditState | None:
    """:raises CannotRunError: When it can't be used."""
    if options.state is None:
        return None
    checks = Checks(options.level.value)
    return AuditState.open(spark, options.state, checks, full=options.full, reread=options.reread)


def bucket_function(options: AuditOptions) -> BucketFunction:
    """What executors call with a bucket."""
    rules, now_ms, with_history = options.rules, options.now_ms, options.with_histories
    suppressions = options.suppressions
    read = WindowReader(options.remote)

    def call(
        batches: pa.Table,
        traces: pa.Table | None,
        metadata: Mapping[TopicPartition, PartitionMetadata],
    ) -> pa.Table:
        return run_task(
            batches,
            traces,
            metadata,
            rules,
            now_ms=now_ms,
            with_history=with_history,
            read=read,
            suppressions=suppressions,
        )

    return call


@contextmanager
def _readable_failure() -> Iterator[None]:
    """:raises CannotRunError: Instead of what Spark raises when a job fails."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise CannotRunError(f"the job failed: {_error_line(error)}") from error


def _error_line(error: Exception) -> str:
    """The line of an error from Spark that tells a person something."""
    lines = [line for line in str(error).splitlines() if line and not line.startswith(" ")]
    traced = [number for number, line in enumerate(lines) if line.endswith(_TRACEBACK)]
    # Behind a traceback, whose lines are indented, comes what Python raised.
    raised = lines[traced[0] + 1 :] if traced else lines
    # An error of ours says what is wrong without its name.
    return _OWN_ERROR.sub("", (raised or lines or [type(error).__name__])[0], count=1)
