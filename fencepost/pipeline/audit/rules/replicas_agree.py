"""All replicas have the same batches where they must.

- A leader epoch has one leader: what two logs hold of it at the same offset is the same, committed
  or not.
- Two logs that agree on an offset and its epoch agree on all before it (KIP-101): one that was
  never truncated where it parted shows.
- What a later epoch has replaced was not committed, unless an unclean election has lost what was.

All that two replicas have is compared. A checkpointed high watermark lags behind, and a log start
may be wrong: by them a difference is explained, such as what a replica will truncate when it hears
of its leader again, and never left out.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Final

from fencepost.pipeline.audit.batch_arrays import BatchDifference, batch_differences
from fencepost.pipeline.audit.explanations import committed_loss
from fencepost.pipeline.audit.partition_logs import (
    ReplicaLog,
    logs_by_incarnation,
    may_be_compacted,
)
from fencepost.pipeline.audit.rule import Missing, PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.datasource.schemas import Place

NAME: Final = "replicas-agree"


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Where two replicas have different batches, each pair by itself."""
    compacted = may_be_compacted(evidence)
    for topic_logs in logs_by_incarnation(evidence):
        ordered = [(log, log.batches.by_offset()) for log in topic_logs.logs]
        for (one, batches), (other, others) in combinations(ordered, 2):
            found = batch_differences(
                batches, others, 0, max(one.end, other.end), compacted=compacted
            )
            for difference in found:
                yield _violation(evidence, topic_logs.topic_id, one, other, difference)


def _violation(
    evidence: PartitionEvidence,
    topic_id: str | None,
    one: ReplicaLog,
    other: ReplicaLog,
    difference: BatchDifference,
) -> Violation:
    start, epoch, other_epoch = difference.start, difference.epoch, difference.other_epoch
    older, newer = (one, other) if epoch <= other_epoch else (other, one)
    explanation, missing = None, None
    where = f"at offset {start} brokers {one.broker} and {other.broker} have"
    differ = f"{where} batches of leader epochs {epoch} and {other_epoch}"
    if epoch == other_epoch >= 0:
        message = f"{where} different batches of leader epoch {epoch}"
    elif difference.converges_at is not None and min(epoch, other_epoch) >= 0:
        message = f"{differ}, and from offset {difference.converges_at} on they agree"
    elif start < _committed(older, newer, difference):
        missing = Missing.OF_EPOCH
        message = (
            f"{differ}, below the high watermark of broker {older.broker} "
            f"({older.metadata.high_watermark})"
        )
        explanation = committed_loss(
            evidence, topic_id, min(epoch, other_epoch), max(epoch, other_epoch)
        )
    else:
        message = differ
        explanation = (
            f"broker {older.broker} does not know them as committed, its checkpointed high "
            f"watermark is {older.metadata.high_watermark or 0}: it truncates them when it follows"
        )
    deleted = max((one, other), key=lambda log: log.log_start)
    if explanation is None and difference.end <= deleted.log_start:
        explanation = f"they are deleted, the log of broker {deleted.broker} starts behind them"
    return Violation(
        rule=NAME,
        topic=evidence.topic,
        partition=evidence.partition,
        message=message,
        explanation=explanation,
        broker=one.broker,
        other_broker=other.broker,
        missing=missing,
        place=Place.LOG,
        offset=start,
        end_offset=difference.end,
        epoch=epoch,
    )


def _committed(older: ReplicaLog, newer: ReplicaLog, difference: BatchDifference) -> int:
    """Up to where (exclusive) what was replaced is known to have been committed.

    Messages of old formats do not tell which replaces which: then both must know it.
    """
    marks = [older.metadata.high_watermark or 0]
    if min(difference.epoch, difference.other_epoch) < 0:
        marks.append(newer.metadata.high_watermark or 0)
    return min(marks)


RULE: Final = Rule(
    name=NAME,
    about="Replicas have the same batches in one epoch, and no epoch replaces what was committed.",
    source="KIP-101, KIP-279, KIP-320",
    needs_trace=False,
    order=5,
    severity=Severity.DAMAGE,
    remedy=(
        "find out which replica is right, and delete the directories of the partition on the "
        "other brokers while they are stopped"
    ),
    check=check,
    screen=lambda bucket: bucket.has_one_replica,
)
