"""The offset index and the time index of a segment say where its batches are, and how late.

The active segment's are whole once its broker has ended in order. What is not known to be durable
is indexed again when its broker starts after a crash.
"""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.explanations import retention, unclean_shutdown
from fencepost.pipeline.audit.partition_logs import ReplicaLog, replica_logs
from fencepost.pipeline.audit.rule import (
    PartitionEvidence,
    Rule,
    Severity,
    Violation,
    row_violation,
)
from fencepost.pipeline.audit.rules.crc_and_structure import is_of_log
from fencepost.pipeline.datasource.schemas import Place, Problem

NAME: Final = "true-indexes"
_PROBLEMS: Final = (Problem.OFFSET_INDEX, Problem.TIME_INDEX, Problem.MISSING)


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Entries that are not so, and indexes that are not there."""
    for log in replica_logs(evidence):
        for row in _faults(log.rows):
            if row["segment"] == log.active and not log.metadata.clean:
                continue  # what is written of them is of no account until the segment is closed
            excuse = unclean_shutdown(log, _end_of(log, row["segment"]))
            if row["problem"] == Problem.MISSING:
                excuse = excuse or retention(log, row["segment"])
            yield _violation(evidence, row, excuse)
    for row in _faults(evidence.select(Place.TIER)):
        yield _violation(evidence, row, None)


def _faults(rows: pa.Table) -> Iterator[dict[str, Any]]:
    for row in rows.filter(pc.is_in(rows["problem"], pa.array(_PROBLEMS))).to_pylist():
        if row["problem"] != Problem.MISSING or not is_of_log(row):
            yield row


def _end_of(log: ReplicaLog, segment: int) -> int:
    """Where a segment ends (exclusive)."""
    later = [base for base in log.metadata.segments if base > segment]
    return min(later) if later else log.end


def _violation(
    evidence: PartitionEvidence, row: dict[str, Any], explanation: str | None
) -> Violation:
    message = row["message"] or ""
    if row["problem"] != Problem.MISSING:
        message = f"{row['problem'].replace('-', ' ')}: {message}"
    return row_violation(
        NAME,
        evidence,
        row,
        message=message,
        explanation=explanation,
    )


RULE: Final = Rule(
    name=NAME,
    about="The indexes of a segment say where its batches are, and how late.",
    source="Kafka's OffsetIndex and TimeIndex",
    needs_trace=False,
    order=7,
    severity=Severity.REBUILT,
    remedy="delete the index while the broker is stopped: it is rebuilt when the broker starts",
    is_of_file=True,
    check=check,
    screen=lambda bucket: bucket.has_no_problem,
)
