"""Rows of logs and traces, and accounts, for tests that need no cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

import pyarrow as pa

from fencepost.pipeline.audit.directory_rule import read_listings
from fencepost.pipeline.audit.directory_task import DirectoryResult, check_directories
from fencepost.pipeline.audit.job import AuditOptions, AuditResult
from fencepost.pipeline.audit.lineage.model import PartitionLineage
from fencepost.pipeline.audit.lineage.partition_lineage import partition_lineages
from fencepost.pipeline.audit.partition_metadata import read_partition_metadata
from fencepost.pipeline.audit.partition_summary import (
    PartitionHistory,
    PartitionSummary,
    ReplicaInventory,
    RuleCount,
    RuleFailure,
    SegmentSpan,
    TimeSeries,
)
from fencepost.pipeline.audit.rule import (
    PartitionEvidence,
    PartitionMetadata,
    Violation,
    violation_table,
)
from fencepost.pipeline.audit.spark_task import check_partitions
from fencepost.pipeline.datasource.schemas import BATCHES, TRACES, Level
from fencepost.pipeline.datasource.segment_scan import Checks, scan_folder
from fencepost.pipeline.datasource.trace_files import read_trace_directory
from tests.harness.recorded_cluster import Recorded

START_MS: Final = 1_700_000_000_000
NOW_MS: Final = START_MS + 3_600_000
"""When audits of rows are begun."""


def batches(*rows: Mapping[str, object]) -> pa.Table:
    """Rows of one batch of ten records each, where they do not say otherwise."""
    made = []
    for row in rows:
        base = row.get("base_offset", 0)
        base = base if isinstance(base, int) else 0
        usual = {
            "topic": "orders",
            "partition": 0,
            "place": "log",
            "broker": 1,
            "segment": 0,
            "position": base * 10,
            "size": 100,
            "base_offset": base,
            "last_offset": base + 9,
            "count": 10,
            "epoch": 0,
            "max_timestamp": START_MS + base,
        }
        made.append({**usual, **row})
    return pa.Table.from_pylist(made, BATCHES)


def traces(*rows: Mapping[str, object]) -> pa.Table:
    """Rows by line, a millisecond each, of exchanges of one partition."""
    made = []
    for line, row in enumerate(rows, 1):
        usual: dict[str, object] = {
            "number": line,
            "line": line,
            "time_ms": START_MS + line,
            "answered_ms": START_MS + line,
            "newest": line,
            "kind": "exchange",
            "replica_id": -1,
            "topic": "orders",
            "partition": 0,
            "error": 0,
        }
        made.append({**usual, **row})
    return pa.Table.from_pylist(made, TRACES)


def event(
    kind: str, *, topic: str | None = None, partition: int | None = None, **details: object
) -> dict[str, object]:
    """A row of a trace that is an event."""
    return {
        "kind": kind,
        "topic": topic,
        "partition": partition,
        "answered_ms": None,
        "replica_id": None,
        "error": None,
        "details": json.dumps(details),
    }


def result(recorded: Recorded, *, topics: Sequence[str] = ()) -> AuditResult:
    """An audit without Spark."""
    case = AuditOptions(
        directory=str(recorded.data),
        trace=str(recorded.trace),
        remote=recorded.tier,
        topics=tuple(topics),
        level=Level.RECORDS,
        with_histories=True,
    )
    rows = scan_folder(recorded.data, remote=recorded.tier, checks=Checks.RECORDS)
    metadata = read_partition_metadata(recorded.data, remote=recorded.tier)
    trace = read_trace_directory(str(recorded.trace))
    found = list(check_partitions(rows, trace, metadata, now_ms=case.now_ms, with_history=True))
    directories = check_directories(read_listings(recorded.data), topics=topics)
    return findings(
        [each.summary for each in found],
        [*directories.violations, *(v for each in found for v in each.violations)],
        case=case,
        directories=directories,
    )


def findings(
    summaries: Sequence[PartitionSummary],
    found: Sequence[Violation] = (),
    *,
    case: AuditOptions | None = None,
    directories: DirectoryResult | None = None,
) -> AuditResult:
    """What an audit may come to."""
    return AuditResult(
        options=case or AuditOptions(directory="/logs", with_histories=True),
        findings=violation_table(list(found)),
        summaries=tuple(summaries),
        directories=directories or DirectoryResult(),
    )


def summary(
    partition: int,
    *,
    found: int = 0,
    explained: int = 0,
    failures: Sequence[RuleFailure] = (),
    segments: int = 3,
    points: int = 50,
) -> PartitionSummary:
    """A partition with something to draw."""
    spans = tuple(
        SegmentSpan(start=at * 10, end=at * 10 + 10, bytes=1000) for at in range(segments)
    )
    steps = TimeSeries(
        times=tuple(START_MS + at for at in range(points)),
        values=tuple(range(points)),
        total=points,
    )
    counts = (RuleCount(rule="torn-tail", found=found, explained=explained, listed=found),)
    return PartitionSummary(
        topic="orders",
        partition=partition,
        replicas=(
            ReplicaInventory(
                place="log",
                broker=1,
                batches=segments,
                records=segments * 10,
                bytes=segments * 1000,
                problems=0,
                start=0,
                end=segments * 10,
                segments=segments,
                largest=1000,
                spans=spans,
            ),
        ),
        trace_rows=points,
        rule_counts=counts,
        failures=tuple(failures),
        history=PartitionHistory(
            from_trace=True,
            log_end=steps,
            high_watermark=steps,
            latest=steps,
            gated=TimeSeries(),
            lag=(),
            elections=(),
            elections_total=0,
        ),
        lineages=(lineage(segments * 10),),
    )


@cache
def lineage(end: int) -> PartitionLineage:
    """Of two replicas, one of which was elected uncleanly at half of what the other had."""
    parts = {
        1: [(0, 0, end)],
        2: [(0, 0, end // 2), (1, end // 2, end)],
    }
    rows = [
        {"broker": broker, "base_offset": base, "epoch": epoch, "crc": epoch}
        for broker, epochs in parts.items()
        for epoch, first, behind in epochs
        for base in range(first, behind, 10)
    ]
    (found,) = partition_lineages(
        PartitionEvidence(
            topic="orders",
            partition=0,
            now_ms=NOW_MS,
            metadata=PartitionMetadata(),
            batches=batches(*rows),
            traces=None,
        )
    )
    return found


def violation(
    partition: int = 0,
    message: str = "so it is",
    *,
    rule: str = "torn-tail",
    offset: int | None = None,
) -> Violation:
    """A finding, where no rule is named of the one that `summary` counts."""
    return Violation(rule=rule, topic="orders", partition=partition, message=message, offset=offset)
