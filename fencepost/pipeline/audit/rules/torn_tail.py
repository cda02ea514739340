"""A log ends with a whole batch, and not before records that it had by its checkpoints.

By the checkpoints it had the records that were durable (below the recovery point) and those that
were committed (below the high watermark). When a broker did not end cleanly, the end may be torn,
as long as no record is missing that was durable, or that was committed and is on no other replica.
"""

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.batch_arrays import UNTRUSTED_PROBLEMS
from fencepost.pipeline.audit.explanations import (
    committed_loss,
    left_over,
    lost_disk,
    not_written_yet,
    torn_write,
    unclean_shutdown,
)
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

NAME: Final = "torn-tail"


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Torn ends of segments, and logs that end too early."""
    for topic_logs in logs_by_incarnation(evidence):
        for log in topic_logs.logs:
            tails = _tails(log.rows)
            for row in tails:
                yield _torn(evidence, log, topic_logs, row)
            if not any(row["segment"] == log.active for row in tails):
                yield from _ends_too_early(evidence, log, topic_logs)
    for row in _tails(evidence.select(Place.TIER)):
        yield row_violation(NAME, evidence, row, message=row["message"], explanation=None)


def _tails(rows: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.filter(
        pc.equal(rows["problem"], Problem.TRAILING)
    ).to_pylist()
    return found


def _torn(
    evidence: PartitionEvidence, log: ReplicaLog, topic_logs: IncarnationLogs, row: dict[str, Any]
) -> Violation:
    batches = log.batches
    ends = batches.last[batches.segment == row["segment"]]
    end = int(ends.max()) + 1 if len(ends) else int(row["segment"])
    message, explanation, not_yet = row["message"], torn_write(log, topic_logs, end), None
    until = log.checkpointed_end
    if row["segment"] != log.active:
        until = min(each for each in log.metadata.segments if each > row["segment"])
    elif end < until:
        message += f"; {_too_early(log, end)}"
        not_yet = not_written_yet(log) if explanation is None else None
    return row_violation(
        NAME,
        evidence,
        row,
        message=message,
        explanation=explanation or not_yet,
        offset=end,
        end_offset=until if until > end else None,
        missing=Missing.FROM_COPY if until > end and not_yet is None else None,
    )


def _ends_too_early(
    evidence: PartitionEvidence, log: ReplicaLog, topic_logs: IncarnationLogs
) -> Iterator[Violation]:
    """A log that ends with a whole batch, too early. A damaged end is another finding."""
    end, expected = log.end, log.checkpointed_end
    if (
        end >= expected
        or any(each.end > end for each in log.misplaced)
        or pc.any(pc.is_in(log.rows["problem"], pa.array(UNTRUSTED_PROBLEMS))).as_py()
    ):
        return
    explanation = (
        _truncated(evidence, log, topic_logs, end)
        or torn_write(log, topic_logs, end)
        or lost_disk(log, evidence.traces)
        or left_over(evidence, log)
    )
    not_yet = not_written_yet(log) if explanation is None else None
    yield Violation(
        rule=NAME,
        topic=evidence.topic,
        partition=evidence.partition,
        message=_too_early(log, end),
        explanation=explanation or not_yet,
        broker=log.broker,
        place=Place.LOG,
        segment=log.active,
        offset=end,
        end_offset=expected,
        missing=Missing.FROM_COPY if not_yet is None else None,
    )


def _too_early(log: ReplicaLog, end: int) -> str:
    high_watermark, recovery_point = (
        log.metadata.high_watermark or 0,
        log.metadata.recovery_point or 0,
    )
    if recovery_point > high_watermark:
        return f"the log ends at {end}, and it was durable up to {recovery_point}"
    return f"the log ends at {end}, and its high watermark was {high_watermark}"


def _truncated(
    evidence: PartitionEvidence, log: ReplicaLog, topic_logs: IncarnationLogs, end: int
) -> str | None:
    """That it was cut back to a leader who lacked committed records, since the checkpoint."""
    if unclean_shutdown(log, end) is None:
        return None
    own = {epoch for epoch, _ in log.epochs}
    last = log.last_epoch_before(end)
    newer = [
        epoch
        for other in topic_logs.logs
        for epoch, start in other.epochs
        if epoch > last and epoch not in own and start < log.checkpointed_end
    ]
    return committed_loss(evidence, topic_logs.topic_id, last, min(newer)) if newer else None


RULE: Final = Rule(
    name=NAME,
    about="A log ends with a whole batch, and has what was durable and what was committed.",
    source="Kafka's recovery point and high watermark checkpoints",
    needs_trace=False,
    order=2,
    severity=Severity.DAMAGE,
    remedy="start the broker: its recovery cuts the log behind the last whole batch",
    check=check,
    screen=lambda bucket: bucket.ends_late_enough,
)
