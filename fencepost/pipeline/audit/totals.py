"""What an audit's result says in words and numbers: for the terminal and for the report."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from fencepost.pipeline.audit.directory_rule import DirectoryRule
from fencepost.pipeline.audit.incidents import Incident, offsets_text
from fencepost.pipeline.audit.rule import Rule
from fencepost.pipeline.audit.state.kept_segments import ScanExtent
from fencepost.pipeline.datasource.schemas import Level

if TYPE_CHECKING:
    from fencepost.pipeline.audit.job import AuditResult

FindingRow: TypeAlias = Mapping[str, object]
"""A finding, as `rule.VIOLATION_SCHEMA` says."""
_MAX_LOST_SHOWN: Final = 5
_LEVEL_TEXTS: Final = {
    Level.BATCHES: "headers and checksums of batches",
    Level.RECORDS: "every record",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTotals:
    """The counts of a rule over all partitions."""

    rule: DirectoryRule | Rule
    checked: bool
    """Whether it could be; else it needs what the audit did not look at."""
    partitions: int
    """Where it was followed to its end; of a rule about log directories, how many of these."""
    failed: int
    """Where it was not."""
    violations: int
    explained: int
    suppressed: int

    @property
    def needed(self) -> str:
        """The option without which it can't be followed; empty of most rules."""
        if self.rule.needs_trace:
            return "--trace"
        return "--level records" if self.rule.needs_records else ""

    @property
    def extent(self) -> str:
        """How much it was followed on: a number of partitions, or of directories."""
        if isinstance(self.rule, DirectoryRule):
            return pluralize(self.partitions, "directory", "directories")
        return f"{self.partitions:,}"


def describe_totals(findings: AuditResult) -> str:
    """How much was looked at, in a sentence."""
    inventories = [each for summary in findings.summaries for each in summary.replicas]
    parts = [
        pluralize(len(findings.summaries), "partition"),
        bytes_text(sum(each.bytes for each in inventories)),
        pluralize(sum(each.batches for each in inventories), "batch", "batches"),
        pluralize(sum(each.records for each in inventories), "record"),
    ]
    aborted = sum(each.transactions.aborted_records for each in inventories)
    if aborted:
        parts[-1] += f" ({aborted:,} of aborted transactions)"
    if findings.options.trace is not None:
        traced = sum(summary.trace_rows for summary in findings.summaries)
        parts.append(f"{pluralize(traced, 'row')} of trace")
    return f"{', '.join(parts)}; {_LEVEL_TEXTS[findings.options.level]}"


def describe_extent(extent: ScanExtent) -> str:
    """How much of the segments was read, and how much was trusted, in a line."""
    read = pluralize(extent.read + extent.reread, "segment")
    again = f", {extent.reread:,} of them again" if extent.reread else ""
    return (
        f"state: {read} read ({bytes_text(extent.read_bytes)}{again}), "
        f"{extent.trusted:,} trusted ({bytes_text(extent.trusted_bytes)})"
    )


def lost_text(findings: AuditResult) -> str:
    """Which records are lost, explained or not, to be put behind a verdict; empty without any."""
    lost = [each for each in findings.incidents if each.lost]
    if not lost:
        return ""
    records = pluralize(sum(each.lost_records for each in lost), "record")
    shown = [
        f"{each.where} {offsets_text(each.lost)}{_why_lost(each)}"
        for each in lost[:_MAX_LOST_SHOWN]
    ]
    more = [f"{len(lost) - len(shown):,} more"] if len(lost) > len(shown) else []
    return f"; {records} lost: {', '.join(shown + more)}"


def _why_lost(incident: Incident) -> str:
    if incident.explanation is not None:
        return " (explained)"
    return "" if incident.is_open else " (suppressed)"


def pluralize(number: int, one: str, more: str = "") -> str:
    """Such as ``1 batch`` or ``2,000 batches``."""
    return f"{number:,} {one if number == 1 else more or f'{one}s'}"


def bytes_text(size: int) -> str:
    """Such as ``1.5 MB``."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def totals_by_rule(findings: AuditResult) -> tuple[RuleTotals, ...]:
    """One for each selected rule, in the order of the rules."""
    partitions: Counter[str] = Counter()
    found: Counter[str] = Counter()
    explained: Counter[str] = Counter()
    suppressed: Counter[str] = Counter()
    for count in findings.rule_counts:
        partitions[count.rule] += 1
        found[count.rule] += count.found
        explained[count.rule] += count.explained
        suppressed[count.rule] += count.suppressed
    for count in findings.directories.rule_counts:
        partitions[count.rule] = findings.directories.directories
    failed = Counter(failure.rule for failure in findings.failures)
    followed = {rule.name for rule in findings.options.checked_rules}
    return tuple(
        RuleTotals(
            rule=rule,
            checked=rule.name in followed,
            partitions=partitions[rule.name],
            failed=failed[rule.name],
            violations=found[rule.name] - explained[rule.name] - suppressed[rule.name],
            explained=explained[rule.name],
            suppressed=suppressed[rule.name],
        )
        for rule in findings.options.selected_rules
    )


def select_findings(rows: Sequence[FindingRow], most: int) -> list[FindingRow]:
    """Some of the findings, what nothing explains first, and no rule or partition crowded out."""
    turns: dict[tuple[object, ...], int] = defaultdict(int)
    order = []
    for index, row in enumerate(rows):
        of = (row["rule"], row["topic"], row["partition"])
        is_settled = row["explanation"] is not None or row["suppression"] is not None
        order.append((is_settled, turns[of], index))
        turns[of] += 1
    return [rows[index] for index in sorted(index for _, _, index in sorted(order)[:most])]
