"""Every byte of a log and of the tier is part of a batch, and every batch is what it was.

Of a broker that did not end in order the last batches may be damaged: its recovery cuts them.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.batch_arrays import UNTRUSTED_PROBLEMS
from fencepost.pipeline.audit.explanations import retention, torn_write
from fencepost.pipeline.audit.partition_logs import IncarnationLogs, ReplicaLog, logs_by_incarnation
from fencepost.pipeline.audit.rule import (
    Missing,
    PartitionEvidence,
    Rule,
    Severity,
    Violation,
    row_violation,
)
from fencepost.pipeline.datasource.schemas import Place, Problem

NAME: Final = "crc-and-structure"
_PROBLEMS: Final = (*UNTRUSTED_PROBLEMS, Problem.RECORDS)
_LOG_FILE: Final = re.compile(r"\.log\b")


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """What fails its checksum, is no batch, or has records that are none."""
    for topic_logs in logs_by_incarnation(evidence):
        for log in topic_logs.logs:
            for row in _damages(log.rows):
                offset = _offset_of(log, row)
                end = _end_of(log, row, offset)
                explanation = _explanation(log, topic_logs, row, offset)
                yield _violation(evidence, row, offset, end, explanation)
    for row in _damages(evidence.select(Place.TIER)):
        # That an object is gone is between the tier and the logs.
        if row["problem"] != Problem.MISSING:
            yield _violation(evidence, row, row["base_offset"], None, None)


def is_of_log(row: dict[str, Any]) -> bool:
    """Whether a `Problem.MISSING` is about the records, and not about an index."""
    return _LOG_FILE.search(row["message"] or "") is not None


def _damages(rows: pa.Table) -> Iterator[dict[str, Any]]:
    wanted = pc.is_in(rows["problem"], pa.array((*_PROBLEMS, Problem.MISSING)))
    for row in rows.filter(wanted).to_pylist():
        if row["problem"] != Problem.MISSING or is_of_log(row):
            yield row


def _offset_of(log: ReplicaLog, row: dict[str, Any]) -> int:
    """Where the batches before it end, if its own header may be wrong."""
    if row["problem"] == Problem.RECORDS:
        return int(row["base_offset"])
    batches = log.batches
    before = (batches.segment == row["segment"]) & (batches.position < (row["position"] or 0))
    ends = batches.last[before]
    return int(ends.max()) + 1 if len(ends) else int(row["segment"])


def _end_of(log: ReplicaLog, row: dict[str, Any], offset: int) -> int | None:
    """Behind the last offset (exclusive) that it may have held: where sound batches follow."""
    if row["problem"] == Problem.RECORDS:
        return int(row["last_offset"]) + 1
    later = log.batches.base[log.batches.base >= offset]
    if len(later):
        return int(later.min())
    return log.checkpointed_end if log.checkpointed_end > offset else None


def _explanation(
    log: ReplicaLog, topic_logs: IncarnationLogs, row: dict[str, Any], offset: int
) -> str | None:
    """A crash damages the end; what sound batches follow was not written last."""
    if row["problem"] == Problem.MISSING:
        return retention(log, row["segment"])
    if (log.batches.base >= offset).any():
        return None
    return torn_write(log, topic_logs, offset)


def _violation(
    evidence: PartitionEvidence,
    row: dict[str, Any],
    offset: int | None,
    end: int | None,
    explanation: str | None,
) -> Violation:
    return row_violation(
        NAME,
        evidence,
        row,
        message=row["message"] or row["problem"],
        explanation=explanation,
        offset=offset,
        end_offset=end,
        epoch=row["epoch"],
        missing=Missing.FROM_COPY,
    )


RULE: Final = Rule(
    name=NAME,
    about="Every byte of a log and of the tier is part of a batch with the checksum it states.",
    source="Kafka's message format, version 2",
    needs_trace=False,
    order=1,
    severity=Severity.DAMAGE,
    remedy=(
        "delete the segment or the directory of the partition while the broker is stopped, "
        "where another copy has its records"
    ),
    check=check,
    screen=lambda bucket: bucket.has_no_problem,
)
