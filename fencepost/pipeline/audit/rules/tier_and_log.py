"""The tier and the logs together have every record from the log start on, of one lineage.

- An object of the tier holds what its metadata say: offsets, bytes, leader epochs.
- What a replica does not hold itself any more, from the log start on, the tier holds of its
  lineage (KIP-405, KIP-1023): no gap.
- Where both have the same offsets of a lineage they have the same batches.
- What the tier has was committed, and so is of the lineage of the leader, unless an unclean
  election has lost it.

Copies that are not finished, or on their way out, count for nothing. Several leaders may have
copied the same records. Where the objects are not read, their metadata are taken at their word.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

import numpy as np

from fencepost.pipeline.audit.batch_arrays import batch_differences, covers, gaps
from fencepost.pipeline.audit.explanations import committed_loss, left_over, lost_tier
from fencepost.pipeline.audit.partition_logs import (
    IncarnationLogs,
    ReplicaLog,
    TierCopy,
    logs_by_incarnation,
    may_be_compacted,
    tier_copies,
)
from fencepost.pipeline.audit.rule import Missing, PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.datasource.schemas import Place

NAME: Final = "tier-and-log"

_Finding: TypeAlias = partial[Violation]
"""Makes a violation of what is peculiar to it."""


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """What the tier lacks, has besides, or has otherwise."""
    find = partial(
        Violation,
        rule=NAME,
        topic=evidence.topic,
        partition=evidence.partition,
        place=Place.TIER,
    )
    for why in evidence.metadata.unreadable:
        yield find(message=why)
    if not evidence.metadata.with_tier:
        return
    for topic_logs in logs_by_incarnation(evidence):
        copies = tier_copies(evidence, topic_logs.tier)
        for copy in copies:
            if copy.segment.end_offset >= topic_logs.log_start:
                yield from _object_mismatches(find, copy, copies, topic_logs)
        there = copies
        if evidence.metadata.with_objects:
            there = [copy for copy in copies if len(copy.batches)]
        for log in topic_logs.logs:
            if log.epochs and not evidence.metadata.is_local_only:
                yield from _gaps(find, evidence, log, topic_logs, there)
                yield from _batch_mismatches(find, evidence, log, topic_logs, there)
        yield from _truncated_in_tier(find, evidence, topic_logs, there)


# An object by itself.


def _object_mismatches(
    find: _Finding, copy: TierCopy, copies: Sequence[TierCopy], topic_logs: IncarnationLogs
) -> Iterator[Violation]:
    segment, batches = copy.segment, copy.batches
    violation = partial(
        find,
        segment=segment.start_offset,
        offset=segment.start_offset,
        end_offset=segment.end_offset + 1,
    )
    if copy.is_lost:
        yield violation(
            message=f"segment {segment.id} is finished, and its records are not there",
            explanation=_others_serve(copy, copies, topic_logs),
        )
    if not len(batches):
        return
    first, last = int(batches.base.min()), int(batches.last.max())
    if (first, last) != (segment.start_offset, segment.end_offset):
        yield violation(
            message=f"segment {segment.id} holds offsets {first} to {last}, its metadata say "
            f"{segment.start_offset} to {segment.end_offset}"
        )
    elif not copy.has_problem() and int(batches.size.sum()) != segment.bytes:
        yield violation(
            message=f"segment {segment.id} holds {int(batches.size.sum())} bytes, its metadata "
            f"say {segment.bytes}"
        )
    yield from _epoch_mismatches(violation, copy, topic_logs.log_start)


def _others_serve(
    copy: TierCopy, copies: Sequence[TierCopy], topic_logs: IncarnationLogs
) -> str | None:
    """That no reader needs it: other copies have it, and the logs themselves."""
    start, end = max(copy.segment.start_offset, topic_logs.log_start), copy.segment.end_offset + 1
    spans = [span for other in copies for span in other.batches.spans]
    for log in topic_logs.logs:
        if not covers([*spans, *log.batches.by_offset().spans], start, end):
            return None
    return "all that it had is in every log, or in another segment" if topic_logs.logs else None


def _epoch_mismatches(violation: _Finding, copy: TierCopy, log_start: int) -> Iterator[Violation]:
    epochs, starts = zip(*copy.segment.epochs, strict=True)
    # What lies before the log start goes by the epoch that is there.
    batches = copy.batches.select(copy.batches.last >= log_start)
    numbers = np.searchsorted(np.array(starts), batches.base, side="right") - 1
    metadata_epochs = np.array(epochs)[np.maximum(numbers, 0)]
    for number in np.flatnonzero(metadata_epochs != batches.epoch)[:1].tolist():
        yield violation(
            message=f"segment {copy.segment.id} has a batch of leader epoch "
            f"{batches.epoch[number]} at offset {batches.base[number]}, where its metadata say "
            f"epoch {metadata_epochs[number]}",
            offset=int(batches.base[number]),
            epoch=int(batches.epoch[number]),
        )


# The tier and one log.


def _gaps(
    find: _Finding,
    evidence: PartitionEvidence,
    log: ReplicaLog,
    topic_logs: IncarnationLogs,
    there: Sequence[TierCopy],
) -> Iterator[Violation]:
    """What is neither in the log nor, of its lineage, in the tier."""
    spans = [(copy.segment.start_offset, copy.lineage_end(log)) for copy in there]
    spans = [span for span in spans if span[0] < span[1]]
    start = topic_logs.log_start
    if not all(each.metadata.clean for each in topic_logs.logs):
        # The tier is expired at once, and the checkpoint of the log start lags behind.
        start = max(start, min((first for first, _ in spans), default=log.local_start))
    for first, end in gaps(spans, start, log.local_start):
        yield find(
            message=f"offsets {first} to {end - 1} are neither in the tier nor in the log of "
            f"broker {log.broker}, which begins at {log.local_start}; the log start is {start}",
            explanation=lost_tier(evidence.traces) or left_over(evidence, log),
            broker=log.broker,
            offset=first,
            end_offset=end,
            missing=Missing.FROM_COPY,
        )


def _batch_mismatches(
    find: _Finding,
    evidence: PartitionEvidence,
    log: ReplicaLog,
    topic_logs: IncarnationLogs,
    there: Sequence[TierCopy],
) -> Iterator[Violation]:
    """Where the tier has other batches of the same lineage than the log."""
    batches, compacted = log.batches.by_offset(), may_be_compacted(evidence)
    for copy in there:
        for difference in batch_differences(
            copy.batches,
            batches,
            topic_logs.log_start,
            min(copy.lineage_end(log), log.end),
            compacted=compacted,
        ):
            yield find(
                message=f"at offset {difference.start} segment {copy.segment.id} has a batch of "
                f"leader epoch {difference.epoch}, and broker {log.broker} another one, of epoch "
                f"{difference.other_epoch}",
                broker=log.broker,
                segment=copy.segment.start_offset,
                offset=difference.start,
                end_offset=difference.end,
                epoch=difference.epoch,
            )


# The tier and the leader.


def _truncated_in_tier(
    find: _Finding,
    evidence: PartitionEvidence,
    topic_logs: IncarnationLogs,
    there: Sequence[TierCopy],
) -> Iterator[Violation]:
    """What is in the tier, and was truncated where the newest leader epoch is known."""
    leader = max(topic_logs.logs, key=lambda log: log.epochs[-1:], default=None)
    if leader is None or not leader.epochs:
        return
    for copy in there:
        segment = copy.segment
        start = max(copy.lineage_end(leader), topic_logs.log_start)
        epoch = _epoch_at(segment.epochs, start)
        if start > segment.end_offset or epoch > leader.epochs[-1][0]:
            continue
        instead = _epoch_at(leader.epochs, start)
        yield find(
            message=f"segment {segment.id} has offsets {start} to {segment.end_offset} of leader "
            f"epoch {epoch}, and they are no part of the log of broker {leader.broker}, where "
            f"epoch {instead} has their place",
            explanation=committed_loss(evidence, topic_logs.topic_id, epoch, instead),
            broker=leader.broker,
            segment=segment.start_offset,
            offset=start,
            end_offset=segment.end_offset + 1,
            epoch=epoch,
        )


def _epoch_at(epochs: Sequence[tuple[int, int]], offset: int) -> int:
    return max((epoch for epoch, start in epochs if start <= offset), default=-1)


RULE: Final = Rule(
    name=NAME,
    about="The tier and the logs have every record from the log start on, of one lineage.",
    source="KIP-405, KIP-1023",
    needs_trace=False,
    order=6,
    severity=Severity.DAMAGE,
    remedy=(
        "read the partition from the brokers while they have it: what is wrong in the tier "
        "stays so until it expires"
    ),
    check=check,
    screen=lambda bucket: bucket.has_no_unread_tier,
)
