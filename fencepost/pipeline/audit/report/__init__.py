"""The report of an audit: one HTML file that needs no other file.

It leaves out some partitions and violations where there are too many.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from fencepost.pipeline.audit.partition_summary import (
    PartitionHistory,
    PartitionSummary,
    ReplicaInventory,
)
from fencepost.pipeline.audit.report.lineage_lanes import MAX_RUNS, lane_name
from fencepost.pipeline.audit.report.lineage_rows import lineage_notes, lineage_rows
from fencepost.pipeline.audit.report.plots import Mark, render_svg
from fencepost.pipeline.audit.rule import place_text
from fencepost.pipeline.audit.totals import (
    FindingRow,
    bytes_text,
    describe_totals,
    lost_text,
    pluralize,
    select_findings,
    totals_by_rule,
)

if TYPE_CHECKING:
    from fencepost.pipeline.audit.job import AuditResult
    from fencepost.pipeline.audit.rule import TopicPartition


MAX_DRAWN: Final = 16
"""Partitions that are drawn: those with findings first, then those with most records."""
MAX_FINDINGS: Final = 300
"""Incidents, and findings, in their tables. Of findings each rule and partition has some first."""
MAX_LISTED: Final = 2000
"""Partitions in the table."""
_TEMPLATE: Final = "page.html.j2"
_MAX_MARKS: Final = 50
"""Findings that are marked in a drawing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A row of the table of findings."""

    rule: str
    partition: str
    message: str
    explanation: str | None
    suppression: str | None
    where: str
    when: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A partition with its picture."""

    name: str
    summary: PartitionSummary
    svg: str
    notes: tuple[str, ...]
    """What the picture does not show."""
    lineage: tuple[str, ...]
    """The lineage in words, where sides part."""


def write_report(path: Path, findings: AuditResult, *, made: datetime | None = None) -> None:
    """Write the page.

    :param findings: Of a case with histories; without them only segments are drawn.
    :param made: When it was made; None: now.
    :raises OSError: When the file can't be written.
    """
    environment = Environment(
        loader=PackageLoader("fencepost.pipeline.audit.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"bytes": bytes_text, "count": count_text, "place": replica_text}
    rows = findings.findings.to_pylist()
    summaries = rank_partitions(findings.summaries)
    listed = sorted(summaries[:MAX_LISTED], key=lambda summary: summary.key)
    page = environment.get_template(_TEMPLATE).render(
        options=findings.options,
        made=(made or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC"),
        total=findings.violation_count,
        explained=findings.explained_count,
        suppressed=findings.suppressed_count,
        failures=findings.failures,
        rules=totals_by_rule(findings),
        incidents=findings.incidents[:MAX_FINDINGS],
        incidents_of=len(findings.incidents),
        lost=lost_text(findings),
        findings=[_finding(row) for row in select_findings(rows, MAX_FINDINGS)],
        findings_of=sum(count.found for count in findings.rule_counts),
        drawings=_drawings(summaries[:MAX_DRAWN], rows),
        summaries=listed,
        lineage=list(lineage_rows(listed)),
        summary_count=len(summaries),
        totals=describe_totals(findings),
        cluster_metadata=findings.cluster_metadata.lines,
        many=pluralize,
    )
    path.write_text(page, encoding="utf-8")


def rank_partitions(summaries: Iterable[PartitionSummary]) -> list[PartitionSummary]:
    """Partitions by what there is to see of them."""
    return sorted(
        summaries,
        key=lambda each: (
            -each.violations,
            -sum(count.explained for count in each.rule_counts),
            -max((inventory.records for inventory in each.replicas), default=0),
            each.key,
        ),
    )


def _finding(row: FindingRow) -> Finding:
    places = (
        ("in the tier" if row["place"] == "tier" else None),
        *(
            f"{name} {row[column]}"
            for name, column in (
                ("broker", "broker"),
                ("segment", "segment"),
                ("byte", "position"),
                ("exchange", "number"),
            )
            if row[column] is not None
        ),
        _offsets(row),
        (None if row["epoch"] is None else f"epoch {row['epoch']}"),
    )
    return Finding(
        rule=str(row["rule"]),
        partition=place_text(row["topic"], row["partition"], row["broker"]),
        message=str(row["message"]),
        explanation=None if row["explanation"] is None else str(row["explanation"]),
        suppression=None if row["suppression"] is None else str(row["suppression"]),
        where=", ".join(filter(None, places)),
        when=_time(row["time_ms"]),
    )


def _offsets(row: FindingRow) -> str | None:
    first, end = row["offset"], row["end_offset"]
    if first is None:
        return None
    if not isinstance(first, int) or not isinstance(end, int) or end - first <= 1:
        return f"offset {first}"
    return f"offsets {first} to {end - 1}"


def _time(time_ms: object) -> str:
    if not isinstance(time_ms, int):
        return ""
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(" ", "milliseconds")[:-6]


def _drawings(summaries: Sequence[PartitionSummary], rows: Sequence[FindingRow]) -> list[Drawing]:
    marks: dict[TopicPartition, list[Mark]] = defaultdict(list)
    for row in rows:
        mark = _mark(row)
        if mark is not None and row["topic"] is not None:
            marks[str(row["topic"]), int(str(row["partition"]))].append(mark)
    return [
        Drawing(
            name=f"{summary.topic}-{summary.partition}",
            summary=summary,
            svg=render_svg(summary, marks[summary.key][:_MAX_MARKS], name=f"p{number}"),
            notes=tuple(_notes(summary, len(marks[summary.key]))),
            lineage=tuple(lineage_notes(summary)),
        )
        for number, summary in enumerate(summaries)
    ]


def _mark(row: FindingRow) -> Mark | None:
    """Where a finding is drawn, if it says an offset."""
    broker, offset, time_ms = row["broker"], row["offset"], row["time_ms"]
    if not isinstance(offset, int):
        return None
    whose = None if broker is None else str(broker)
    return Mark(
        row="tier" if row["place"] == "tier" else whose,
        offset=offset,
        time_ms=time_ms if isinstance(time_ms, int) else None,
    )


def _notes(summary: PartitionSummary, marks: int) -> Iterable[str]:
    """What is thinned out, or not there, in the picture of a partition."""
    if summary.history is None:
        yield "no record and no trace of it, so nothing over time"
    else:
        yield from _downsampled(summary.history)
    for inventory in summary.replicas:
        if inventory.segments > len(inventory.spans):
            where = replica_text(inventory)
            yield f"{inventory.segments:,} segments of {where} as {len(inventory.spans)}"
    for lineage in summary.lineages:
        for side in lineage.sides:
            if len(side.runs) > MAX_RUNS:
                yield f"{MAX_RUNS} of {len(side.runs):,} ranges of epochs of {lane_name(side)}"
    if marks > _MAX_MARKS:
        yield f"{_MAX_MARKS} of {marks:,} findings are marked"


def _downsampled(history: PartitionHistory) -> Iterable[str]:
    if not history.from_trace:
        yield "without a trace: the log end by the timestamps of the batches"
    series = {
        "log end": history.log_end,
        "high watermark": history.high_watermark,
        "ListOffsets": history.latest,
        **{f"lag of {each.broker}": each.records for each in history.lag},
    }
    thin = [
        f"{name} {len(each.times)} of {each.total:,}"
        for name, each in series.items()
        if each.total > len(each.times)
    ]
    if thin:
        yield f"thinned out to what limits each stretch of time: {', '.join(thin)}"
    if history.elections_total > len(history.elections):
        yield f"{len(history.elections)} of {history.elections_total:,} elections"


def count_text(number: int) -> str:
    """Such as ``12,000``."""
    return f"{number:,}"


def replica_text(inventory: ReplicaInventory) -> str:
    """Whose it is."""
    return "the tier" if inventory.broker is None else f"broker {inventory.broker}"
