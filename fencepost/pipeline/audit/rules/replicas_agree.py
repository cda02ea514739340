"""All replicas have the same batches where they must.

- A leader epoch has one leader: what two logs hold of it at the same offset is the same, committed
  or not.
- Two logs that agree on an offset and its epoch agree on all before it (KIP-101): one that was
  never truncated where it parted shows.
- Below the high watermarks of both they agree, unless an unclean election has lost what was
  committed.

What lies before a log start is not compared; nor what a replica has above its own high watermark,
which may go when it hears of its leader again.
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
from fencepost.pipeline.audit.rule import PartitionEvidence, Rule, Violation
from fencepost.pipeline.datasource.schemas import Place

NAME: Final = "replicas-agree"


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Where two replicas have different batches, each pair by itself."""
    compacted = may_be_compacted(evidence)
    for topic_logs in logs_by_incarnation(evidence):
        ordered = [(log, log.batches.by_offset()) for log in topic_logs.logs]
        for (one, batches), (other, others) in combinations(ordered, 2):
            found = batch_differences(
                batches,
                others,
                topic_logs.log_start,
                min(one.end, other.end),
                compacted=compacted,
            )
            for difference in found:
                yield from _violations(evidence, one, other, difference)


def _violations(
    evidence: PartitionEvidence, one: ReplicaLog, other: ReplicaLog, difference: BatchDifference
) -> Iterator[Violation]:
    start, epoch, other_epoch = difference.start, difference.epoch, difference.other_epoch
    committed = min(one.metadata.high_watermark or 0, other.metadata.high_watermark or 0)
    explanation = None
    where = f"at offset {start} brokers {one.broker} and {other.broker} have"
    if epoch == other_epoch >= 0:
        message = f"{where} different batches of leader epoch {epoch}"
    elif difference.converges_at is not None and min(epoch, other_epoch) >= 0:
        message = (
            f"{where} batches of leader epochs {epoch} and {other_epoch}, and from offset "
            f"{difference.converges_at} on they agree"
        )
    elif start < committed:
        message = (
            f"{where} batches of leader epochs {epoch} and {other_epoch}, below both high "
            f"watermarks ({one.metadata.high_watermark} and {other.metadata.high_watermark})"
        )
        explanation = committed_loss(
            evidence.traces, min(epoch, other_epoch), max(epoch, other_epoch)
        )
    else:
        return
    yield Violation(
        rule=NAME,
        topic=evidence.topic,
        partition=evidence.partition,
        message=message,
        explanation=explanation,
        broker=one.broker,
        place=Place.LOG,
        offset=start,
        end_offset=difference.end,
        epoch=epoch,
    )


RULE: Final = Rule(
    name=NAME,
    about="Replicas have the same batches below their high watermarks, and in one epoch.",
    source="KIP-101, KIP-279, KIP-320",
    needs_trace=False,
    order=5,
    check=check,
)
