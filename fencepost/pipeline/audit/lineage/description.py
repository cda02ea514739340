"""The lineage of a partition in lines for people: on the console, and in the page."""

from collections.abc import Iterator
from typing import Final

from fencepost.pipeline.audit.lineage.epoch_runs import EpochRuns
from fencepost.pipeline.audit.lineage.model import (
    PartitionLineage,
    Relation,
    SidePair,
    SingleRange,
)

MAX_RUNS: Final = 8
"""Leader epochs of a side that are listed: the newest."""
MAX_RANGES: Final = 8
"""Ranges that one side has alone and that are listed."""


def describe(lineage: PartitionLineage) -> Iterator[str]:
    """Every side, where any two part, and what the last leader and the others are to each other.

    Offsets are inclusive.
    """
    for side in lineage.sides:
        parts = [describe_runs(side.runs)]
        if side.leads:
            parts.append("leads")
        if side.high_watermark is not None:
            parts.append(f"high watermark {side.high_watermark}")
        yield f"{side_name(side.broker)}: {'; '.join(parts)}"
    for pair in lineage.parted():
        yield describe_parting(pair)
    leader = lineage.leader
    with_leader = [
        pair
        for pair in lineage.pairs
        if leader is None or leader.broker in (pair.broker, pair.other)
    ]
    for pair in with_leader:
        yield from _single_lines(pair)
    for pair in with_leader:
        if leader is not None and pair.other == leader.broker:
            yield from _truncation_lines(pair)
        elif pair.parting is not None and pair.other is not None:
            yield from _answer_lines(pair)


def side_name(broker: int | None) -> str:
    """Such as ``broker 2``."""
    return "the tier" if broker is None else f"broker {broker}"


def describe_runs(runs: EpochRuns) -> str:
    """Such as ``epoch 0 from 0 to 9, epoch 2 from 10 to 14``."""
    if not runs:
        return "no batch"
    shown = ", ".join(
        f"epoch {run.epoch} from {run.start} to {run.end - 1}" for run in runs[-MAX_RUNS:]
    )
    left = len(runs) - MAX_RUNS
    return shown if left <= 0 else f"{left:,} ranges before, {shown}"


def describe_parting(pair: SidePair) -> str:
    """Where two sides part, and what they have in common; of a pair that does."""
    parting = pair.parting
    assert parting is not None, "the pair parts"
    one, other = (
        _with_epoch(pair.broker, parting.epoch),
        _with_epoch(pair.other, parting.other_epoch),
    )
    line = f"{one} and {other} part at offset {parting.offset}; {_ancestor(pair)}"
    if parting.converges_at is None:
        return line
    return f"{line}; from offset {parting.converges_at} on they agree again"


def _with_epoch(broker: int | None, epoch: int | None) -> str:
    known = "knows no epoch there" if epoch is None else f"epoch {epoch}"
    return f"{side_name(broker)} ({known})"


def _ancestor(pair: SidePair) -> str:
    ancestor = pair.ancestor
    if ancestor is None:
        return "they have no common ancestor"
    end = f"offset {ancestor.end - 1} of epoch {ancestor.epoch}"
    if pair.other is None:
        # The tier may have segments of several lineages, this one's too.
        return f"the tier has the same lineage up to {end}"
    return f"their common ancestor is {end}"


def _records(number: int) -> str:
    return "1 record" if number == 1 else f"{number:,} records"


def _single_lines(pair: SidePair) -> Iterator[str]:
    for single in pair.single[:MAX_RANGES]:
        yield _single_line(pair, single)
    left = pair.single_total - MAX_RANGES
    if left > 0:
        yield f"{side_name(pair.broker)} alone has {left:,} ranges more"


def _single_line(pair: SidePair, single: SingleRange) -> str:
    other = side_name(pair.other)
    where = {
        Relation.BEFORE_START: f"before {other} begins",
        Relation.DIVERGING: f"which {other} does not have",
        Relation.GAP: f"where {other} has a gap",
        Relation.BEYOND_END: f"beyond the end of {other}",
    }[single.relation]
    known = [f"{_records(single.records)} of epoch {single.epoch}"]
    if single.acknowledged is not None:
        known.append(f"{single.acknowledged:,} acknowledged")
    known.append(_committed(single))
    return (
        f"{side_name(pair.broker)} alone has offsets {single.start} to {single.end - 1}, {where}: "
        f"{', '.join(known)}"
    )


def _committed(single: SingleRange) -> str:
    if single.committed_end is None:
        return "not known as committed"
    by = "the tier" if single.committed_by is None else f"broker {single.committed_by}"
    end = "" if single.committed_end == single.end else f" up to offset {single.committed_end - 1}"
    return f"committed{end} by {by}"


def _truncation_lines(pair: SidePair) -> Iterator[str]:
    if pair.truncation is not None and pair.truncation.records:
        yield (
            f"{side_name(pair.broker)} would truncate to {pair.truncation.offset} as follower of "
            f"{side_name(pair.other)}, and lose {_records(pair.truncation.records)}"
        )


def _answer_lines(pair: SidePair) -> Iterator[str]:
    answer = pair.answer
    if answer is not None:
        yield (
            f"{side_name(pair.broker)} answers OffsetForLeaderEpoch of epoch {answer.asked_epoch}: "
            f"epoch {answer.epoch} ends at {answer.end_offset}"
        )
