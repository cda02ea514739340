"""A log begins where its checkpoints say that it begins: no segment at its head is gone.

Retention and DeleteRecords move the log start, and the leader epochs are cut there. Retention
leaves no line in ``log-start-offset-checkpoint``, as the log starts with a segment then, but the
first entry of ``leader-epoch-checkpoint`` never lies before the log start. A broker takes the first
segment that it finds for the log start, and so hides that others were before it. Of a tiered topic
the head is in the tier, and ``tier-and-log`` looks for it there.

A Kafka that is killed may leave the same: retention cuts the epochs in memory and deletes the
segments, and writes the epochs a little later. When the broker starts again, it cuts them at the
checkpointed log start only, which retention has not moved. So it is explained where retention may
delete and the log has been started again since, as far as that shows: a leader that starts begins a
leader epoch, and a follower's leader deletes as well.
"""

from collections.abc import Iterator
from typing import Final

from fencepost.pipeline.audit.batch_arrays import OffsetSpan, covers
from fencepost.pipeline.audit.partition_logs import IncarnationLogs, ReplicaLog, logs_by_incarnation
from fencepost.pipeline.audit.rule import Missing, PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.datasource.schemas import Place

NAME: Final = "head-present"
_EPOCHS: Final = "leader-epoch-checkpoint"
_LOG_STARTS: Final = "log-start-offset-checkpoint"


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Replicas whose first segment begins behind their log start."""
    metadata = evidence.metadata
    if not metadata.is_local_only and (metadata.tiered or metadata.tier or metadata.with_tier):
        return  # `tier-and-log` looks for it in the tier
    for topic_logs in logs_by_incarnation(evidence):
        for log in topic_logs.logs:
            start = log.log_start
            if _says_log_start(log) and start < log.local_start:
                yield _violation(evidence, log, topic_logs, start)


def _says_log_start(log: ReplicaLog) -> bool:
    """Whether a checkpoint that may be believed tells where the log starts."""
    begins_in_log = bool(log.epochs) and log.epochs[0][1] <= log.end
    return begins_in_log or log.checkpointed_start > 0


def _violation(
    evidence: PartitionEvidence, log: ReplicaLog, topic_logs: IncarnationLogs, start: int
) -> Violation:
    first = log.local_start
    file = _EPOCHS if log.epochs and log.epochs[0][1] == start else _LOG_STARTS
    message = (
        f"the {file} says that the log starts at {start}, and its first segment begins at {first}"
    )
    holders = _holders(log, topic_logs, (start, first))
    if holders:
        message += (
            f"; {' and '.join(holders)} {'has' if len(holders) == 1 else 'have'} what is between"
        )
    explanation = _explanation(evidence, log, topic_logs, is_held=bool(holders))
    return Violation(
        rule=NAME,
        topic=evidence.topic,
        partition=evidence.partition,
        message=message,
        explanation=explanation,
        broker=log.broker,
        place=Place.LOG,
        segment=first,
        offset=start,
        end_offset=first,
        missing=Missing.FROM_COPY if explanation is None else None,
    )


def _explanation(
    evidence: PartitionEvidence, log: ReplicaLog, topic_logs: IncarnationLogs, *, is_held: bool
) -> str | None:
    """Why retention may have deleted them.

    :param is_held: Whether another replica has them.
    """
    if not log.metadata.clean:
        return (
            f"broker {log.broker} has not ended in order: retention may have deleted them, "
            "and its checkpoints lag behind"
        )
    if evidence.metadata.tiered is None:
        return "no cluster metadata tell whether the topic is tiered, and then they are in the tier"
    if log.metadata.epochs_cut_first or evidence.metadata.never_expires:
        return None
    for other in topic_logs.logs:
        if other.log_start >= log.local_start:
            return f"they are deleted, the log of broker {other.broker} starts at {other.log_start}"
    later = [(epoch, start) for epoch, start in log.epochs if start >= log.local_start]
    if not later or is_held:
        return None
    return (
        f"leader epoch {later[0][0]} has begun since, at {later[0][1]}: a broker that was killed "
        "before, while retention deleted, leaves such epochs"
    )


def _holders(log: ReplicaLog, topic_logs: IncarnationLogs, span: OffsetSpan) -> list[str]:
    """Which other brokers have every offset of a span."""
    return [
        f"broker {other.broker}"
        for other in topic_logs.logs
        if other is not log and covers(other.batches.by_offset().spans, *span)
    ]


RULE: Final = Rule(
    name=NAME,
    about="A log begins where its checkpoints say: no segment at its head is gone.",
    source="KIP-101, KIP-107",
    needs_trace=False,
    order=4,
    severity=Severity.DAMAGE,
    remedy="what the segments held is gone: only a backup or their producer can bring it",
    check=check,
    screen=lambda bucket: bucket.starts_early_enough,
)
