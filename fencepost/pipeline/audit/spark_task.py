"""What an executor does: it runs every rule on every partition of a bucket.

Nothing here imports Spark. `check_partitions` takes and gives Python objects, `run_task` is the
same for Arrow tables.
"""

import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit import partition_history
from fencepost.pipeline.audit.batch_arrays import Int64Array
from fencepost.pipeline.audit.bucket_screen import BucketScreen
from fencepost.pipeline.audit.condensed.refinement import ReadWindow, no_windows, refine
from fencepost.pipeline.audit.condensed.window_rows import split_folds
from fencepost.pipeline.audit.incidents import fold
from fencepost.pipeline.audit.lineage.model import PartitionLineage
from fencepost.pipeline.audit.lineage.partition_lineage import partition_lineages
from fencepost.pipeline.audit.partition_summary import (
    PartitionHistory,
    PartitionSummary,
    ReplicaInventory,
    RuleCount,
    RuleFailure,
    replica_inventories,
    split_by_replica,
    to_json,
)
from fencepost.pipeline.audit.plain_logs import PlainLogs
from fencepost.pipeline.audit.rule import (
    FINDING_SCHEMA,
    PartitionEvidence,
    PartitionMetadata,
    Rule,
    TopicPartition,
    Violation,
    violation_table,
)
from fencepost.pipeline.audit.rules import RULES
from fencepost.pipeline.audit.suppressions import Suppression, reason_of
from fencepost.pipeline.audit.trace_rows import rows_where
from fencepost.pipeline.audit.trace_scan.passes import trace_row_count
from fencepost.pipeline.datasource.schemas import BATCHES, TRACES
from fencepost.pipeline.datasource.trace_files import EXCHANGE

MAX_LISTED: Final = 10_000
"""Findings of a rule in a partition that are listed; all are counted."""
_BATCH_ORDER: Final = ("place", "broker", "segment", "segment_id", "position")
WITHOUT_PARTITION: Final = "partition IS NULL AND (kind <> 'exchange' OR api = 'DeleteGroups')"
"""In SQL: the rows of a trace that are of no partition and concern each, or each of their topic."""
LINEAGE: Final = "lineage"
"""What stands for a rule's name where the lineage of a partition could not be computed."""
_NULL: Final = -1
_NO_METADATA: Final = PartitionMetadata()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionResult:
    """The summary of one partition, and its violations."""

    summary: PartitionSummary
    violations: tuple[Violation, ...]


def check_partitions(
    batches: pa.Table,
    traces: pa.Table | None,
    metadata: Mapping[TopicPartition, PartitionMetadata],
    *,
    now_ms: int,
    rules: Collection[str] = (),
    with_history: bool = False,
    read: ReadWindow = no_windows,
    suppressions: Sequence[Suppression] = (),
) -> Iterator[PartitionResult]:
    """Run rules on every partition that is known of.

    A rule that raises ends for that partition alone: its summary has the failure.

    :param batches: `BATCHES` or `WINDOWS` of any partitions, in any order.
    :param traces: `TRACES` of any partitions and of none, in any order; None without a trace.
    :param metadata: By partition; rules run on each of these as well.
    :param now_ms: When the audit was begun.
    :param rules: Names of `RULES`; none: all that can be followed.
    :param with_history: Whether summaries have the history.
    :param read: Reads the batches of windows.
    :param suppressions: Of findings that are accepted.
    """
    chosen = tuple(
        rule
        for name, rule in RULES.items()
        if (not rules or name in rules) and (traces is not None or not rule.needs_trace)
    )
    found = deque(partition_evidence(batches, traces, metadata, now_ms=now_ms, read=read))
    cleared, plain = _proven(chosen, [evidence for evidence, _ in found])
    for number in range(len(found)):
        evidence, trace_rows = found.popleft()
        clear = {name for name, flags in cleared.items() if flags[number]}
        inventories = None
        if plain is not None:
            plain.remember(number, evidence)
            inventories = plain.inventories(number)
        result = _check_partition(evidence, chosen, clear, inventories, suppressions)
        summary = replace(
            result.summary,
            trace_rows=trace_rows,
            history=_history(evidence) if with_history else None,
        )
        yield PartitionResult(summary=summary, violations=result.violations)


def partition_evidence(
    batches: pa.Table,
    traces: pa.Table | None,
    metadata: Mapping[TopicPartition, PartitionMetadata],
    *,
    now_ms: int,
    read: ReadWindow = no_windows,
) -> Iterator[tuple[PartitionEvidence, int]]:
    """The evidence of every partition that is known of, and how many rows of the trace are of it.

    The arguments are those of `check_partitions`.
    """
    without_partition = None if traces is None else _events_without_partition(traces)
    rows, folds = split_folds(batches)
    batches_by_partition = _split(rows, _BATCH_ORDER)
    traces_by_partition = {} if traces is None else _split(traces, ("line",), _is_exchange)
    # Rows from Spark have a column more, and those of no partition are joined to these.
    no_traces = (TRACES if traces is None else traces.schema).empty_table()
    no_batches = BATCHES.empty_table()
    keys = sorted({*batches_by_partition, *traces_by_partition, *metadata})
    own_traces = [traces_by_partition.get(key, no_traces) for key in keys]
    found = [
        PartitionEvidence(
            topic=key[0],
            partition=key[1],
            now_ms=now_ms,
            metadata=metadata.get(key, _NO_METADATA),
            batches=batches_by_partition.get(key, no_batches),
            folds=folds.get(key, {}),
            traces=None
            if without_partition is None
            else _with_events(own, without_partition, key[0]),
        )
        for key, own in zip(keys, own_traces, strict=True)
    ]
    for evidence, own, refined in zip(found, own_traces, refine(found, read), strict=True):
        yield _with_rows(evidence, refined), trace_row_count(own)


def _with_rows(evidence: PartitionEvidence, rows: pa.Table) -> PartitionEvidence:
    """The evidence with other rows, in their order."""
    if rows is evidence.batches:
        return evidence
    (in_order,) = _split(rows, _BATCH_ORDER).values()
    return replace(evidence, batches=in_order)


def _proven(
    rules: Collection[Rule], found: Sequence[PartitionEvidence]
) -> tuple[Mapping[str, Sequence[bool]], PlainLogs | None]:
    """What the arrays of a bucket prove: by rule, in which partitions it finds nothing; and logs.

    Neither where no array can hold a number: what is wrong with that is told by the rules.
    """
    try:
        bucket = BucketScreen.of(found)
        cleared = {
            rule.name: rule.screen(bucket).tolist() for rule in rules if rule.screen is not None
        }
        return cleared, PlainLogs(bucket)
    except OverflowError:
        return {}, None


def _check_partition(
    evidence: PartitionEvidence,
    rules: tuple[Rule, ...],
    clear: Collection[str],
    inventories: tuple[ReplicaInventory, ...] | None,
    suppressions: Sequence[Suppression],
) -> PartitionResult:
    """Run rules on a partition.

    :param clear: Names of those that certainly find nothing.
    :param inventories: Of its replicas; None where they are not known yet.
    """
    found: list[Violation] = []
    counts: list[RuleCount] = []
    failures: list[RuleFailure] = []
    for rule in rules:
        if rule.name in clear:
            counts.append(RuleCount(rule=rule.name, found=0, explained=0, listed=0))
            continue
        with _noting_failure(failures, rule.name, evidence):
            count, kept = count_findings(rule.name, rule.check(evidence), suppressions)
            counts.append(count)
            found += kept
    incidents, violations = fold(evidence, found, RULES)
    lineages: tuple[PartitionLineage, ...] = ()
    with _noting_failure(failures, LINEAGE, evidence):
        lineages = partition_lineages(evidence)
    if inventories is None:
        inventories = tuple(replica_inventories(evidence.batches, evidence.folds))
    summary = PartitionSummary(
        topic=evidence.topic,
        partition=evidence.partition,
        replicas=inventories,
        trace_rows=0,
        rule_counts=tuple(counts),
        failures=tuple(failures),
        incidents=incidents,
        lineages=lineages,
    )
    return PartitionResult(summary=summary, violations=violations)


@contextmanager
def _noting_failure(
    failures: list[RuleFailure], name: str, evidence: PartitionEvidence
) -> Iterator[None]:
    try:
        yield
    except Exception:  # noqa: BLE001  # a rule that fails must not hide what others find
        failures.append(
            RuleFailure(
                rule=name,
                topic=evidence.topic,
                partition=evidence.partition,
                reason=traceback.format_exc(),
            )
        )


def count_findings(
    rule: str, findings: Iterable[Violation], suppressions: Sequence[Suppression]
) -> tuple[RuleCount, list[Violation]]:
    """The counts of a rule, and the findings that are listed.

    :param rule: Its name.
    """
    kept: list[Violation] = []
    found = explained = suppressed = 0
    for each in findings:
        reason = reason_of(each, suppressions)
        found += 1
        explained += each.explanation is not None
        suppressed += reason is not None
        if len(kept) < MAX_LISTED:
            kept.append(each if reason is None else replace(each, suppression=reason))
    count = RuleCount(
        rule=rule, found=found, explained=explained, listed=len(kept), suppressed=suppressed
    )
    return count, kept


def _history(evidence: PartitionEvidence) -> PartitionHistory | None:
    """From the trace where it tells of the partition, else from the replica that goes furthest."""
    traces = evidence.traces
    if traces is not None and pc.any(pc.is_valid(traces["partition"])).as_py():
        return partition_history.from_traces(traces, evidence.partition)
    ends = [
        (pc.max(rows["last_offset"]).as_py(), rows) for rows in split_by_replica(evidence.batches)
    ]
    known = [(end, rows) for end, rows in ends if end is not None]
    if not known:
        return None
    return partition_history.from_batches(max(known, key=lambda pair: pair[0])[1])


def _events_without_partition(traces: pa.Table) -> pa.Table:
    """What is of no partition, and concerns each: `WITHOUT_PARTITION`."""
    concerns = pc.or_kleene(
        pc.not_equal(traces["kind"], "exchange"), pc.equal(traces["api"], "DeleteGroups")
    )
    return traces.filter(pc.and_(pc.is_null(traces["partition"]), concerns))


def _with_events(own: pa.Table, without_partition: pa.Table, topic: str) -> pa.Table:
    """The rows of a partition and the events of none that may concern it: events, then exchanges.

    :param own: Events, then exchanges, each by line.
    """
    mine = pc.fill_null(pc.equal(without_partition["topic"], topic), fill_value=True)
    events = without_partition.filter(mine)
    if not events.num_rows:
        return own
    is_exchange = _is_exchange(own)
    events = pa.concat_tables((rows_where(own, pc.invert(is_exchange)), events))
    events = events.take(pc.sort_indices(events, sort_keys=[("line", "ascending")]))
    return pa.concat_tables((events, rows_where(own, is_exchange)))


def _is_exchange(traces: pa.Table) -> pa.ChunkedArray:
    return pc.equal(traces["kind"], EXCHANGE)


def _split(
    table: pa.Table,
    order: tuple[str, ...],
    is_behind: Callable[[pa.Table], pa.ChunkedArray] | None = None,
) -> dict[TopicPartition, pa.Table]:
    """The rows of each partition, those of none left out.

    :param order: Columns that the rows of a partition are sorted by; null comes first.
    :param is_behind: Tells which rows of a partition come behind all others.
    """
    rows = rows_where(table, pc.and_(pc.is_valid(table["topic"]), pc.is_valid(table["partition"])))
    rows = rows.combine_chunks()
    if not rows.num_rows:
        return {}
    columns = [_ranks(rows[name]) for name in ("topic", "partition", *order)]
    if is_behind is not None:
        columns.insert(2, is_behind(rows).to_numpy().astype(np.int64))
    by = np.lexsort(columns[::-1])
    if (np.diff(by) < 0).any():
        rows = rows.take(by)
    topics, partitions = columns[0][by], columns[1][by]
    changes = np.flatnonzero((np.diff(topics) != 0) | (np.diff(partitions) != 0)) + 1
    edges = [0, *changes.tolist(), rows.num_rows]
    return {
        (rows["topic"][start].as_py(), rows["partition"][start].as_py()): rows.slice(
            start, end - start
        )
        for start, end in pairwise(edges)
    }


def _ranks(column: pa.ChunkedArray) -> Int64Array:
    """Numbers in the order of the values, below all of them for null."""
    if pa.types.is_integer(column.type):
        numbers: Int64Array = pc.fill_null(column.cast(pa.int64()), _NULL).to_numpy()
        return numbers
    encoded = column.combine_chunks().dictionary_encode()
    ranks = np.argsort(pc.sort_indices(encoded.dictionary).to_numpy())
    indices = pc.fill_null(encoded.indices, -1).to_numpy()
    codes: Int64Array = np.append(ranks, _NULL)[indices]
    return codes


SUMMARY: Final = "summary"
OUTPUT_SCHEMA: Final = FINDING_SCHEMA.append(pa.field(SUMMARY, pa.binary()))
"""A row is a violation, or the summary of a partition."""


def run_task(
    batches: pa.Table,
    traces: pa.Table | None,
    metadata: Mapping[TopicPartition, PartitionMetadata],
    rules: tuple[str, ...],
    *,
    now_ms: int,
    with_history: bool,
    read: ReadWindow = no_windows,
    suppressions: Sequence[Suppression] = (),
) -> pa.Table:
    """What an executor finds in some partitions.

    :param metadata: Of these, and of partitions without a row.
    :param now_ms: When the audit was begun.
    :param read: Reads the batches of windows.
    :param suppressions: Of findings that are accepted.
    :returns: `OUTPUT_SCHEMA`.
    """
    violations: list[Violation] = []
    summaries: list[bytes] = []
    for each in check_partitions(
        batches,
        traces,
        metadata,
        now_ms=now_ms,
        rules=rules,
        with_history=with_history,
        read=read,
        suppressions=suppressions,
    ):
        violations += each.violations
        summaries.append(to_json(each.summary))
    found = violation_table(violations)
    none = pa.nulls(found.num_rows, pa.binary())
    columns = [pa.nulls(len(summaries), field.type) for field in FINDING_SCHEMA]
    return pa.concat_tables(
        (
            found.append_column(OUTPUT_SCHEMA.field(SUMMARY), none),
            pa.Table.from_arrays(
                [*columns, pa.array(summaries, pa.binary())], schema=OUTPUT_SCHEMA
            ),
        )
    )
