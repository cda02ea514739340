"""Replicas of a compacted partition have the newest value of each key.

A cleaner runs when it likes, and leaves the newest record of a key of those before the offset up to
which it has been. Replicas that were cleaned differently have other batches; but the newest value
of a key in one of them is in each other that reaches as far, or a newer one is.

A tombstone goes when its time is over, and with it the only sign that an older value was deleted. A
replica that was away meanwhile keeps that value. So it is explained that one replica alone has a
value, where a tombstone may have been behind it and have gone.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.batch_arrays import NOT_FOUND, Batches, OffsetSpan, gaps
from fencepost.pipeline.audit.keys.key_differences import KeyDifference
from fencepost.pipeline.audit.lineage.comparison import LogSide, compare_logs
from fencepost.pipeline.audit.partition_logs import ReplicaLog, logs_by_incarnation
from fencepost.pipeline.audit.rule import PartitionEvidence, Rule, Severity, Violation
from fencepost.pipeline.datasource.schemas import Place, Problem

NAME: Final = "keys-agree"
_DAMAGES: Final = (Problem.CRC, Problem.STRUCTURE, Problem.TRAILING, Problem.RECORDS)
"""Problems of a segment of which some records are not known."""


def check(evidence: PartitionEvidence) -> Iterator[Violation]:
    """Each newest value that a replica lacks, or has otherwise than another."""
    differences = evidence.metadata.key_differences
    found: list[Violation] = []
    for topic_logs in logs_by_incarnation(evidence) if differences.found else ():
        sides = {log.broker: _Side(log=log) for log in topic_logs.logs}
        own = [each for each in differences.found if {each.holder, each.other} <= sides.keys()]
        found += _judged(evidence, sides, own)
    yield from found
    if differences.more and any(each.explanation is None for each in found):
        yield Violation(
            rule=NAME,
            topic=evidence.topic,
            partition=evidence.partition,
            message=f"{differences.more} more values of keys are not the same in all replicas",
            place=Place.LOG,
        )


@dataclass(slots=True, kw_only=True, eq=False)
class _Side:
    """A replica, prepared to be judged."""

    log: ReplicaLog
    batches: Batches = field(init=False)
    """By offset."""
    unknown: list[OffsetSpan] = field(init=False)
    """Of segments in which something is damaged."""
    partings: dict[int, bool] = field(default_factory=dict)
    """Whether it has parted from another, by broker."""

    def __post_init__(self) -> None:
        self.batches = self.log.batches.by_offset()
        self.unknown = list(_damaged_segments(self.log))

    def is_known(self, offset: int) -> bool:
        """Whether it would have a record, as far as it is not damaged or deleted."""
        is_kept = self.log.log_start <= offset < self.log.end and not self.log.misplaced
        return is_kept and not any(start <= offset < end for start, end in self.unknown)

    def has_parted(self, other: "_Side") -> bool:
        """Whether it and another are of two lineages, of which other rules tell."""
        broker = other.log.broker
        if broker not in self.partings:
            sides = LogSide.of(self.log), LogSide.of(other.log)
            self.partings[broker] = compare_logs(*sides, compacted=True)[0].parting is not None
        return self.partings[broker]

    def hole_end(self, offset: int) -> int:
        """Where the next batch begins behind an offset at which it has none."""
        if self.batches.index_of(np.array([offset]))[0] != NOT_FOUND:
            return offset + 1
        behind = self.batches.base[self.batches.base > offset]
        return int(behind[0]) if len(behind) else offset + 1

    @property
    def whole(self) -> list[OffsetSpan]:
        """Offsets of which it has every record, so that none was a tombstone that went."""
        batches = self.batches
        return batches.select(batches.is_never_compacted & ~batches.has_holes).spans


def _damaged_segments(log: ReplicaLog) -> Iterator[OffsetSpan]:
    problems = log.rows.filter(pc.is_valid(log.rows["problem"]))
    damaged = pc.is_in(problems["problem"], pa.array(_DAMAGES))
    found = set(problems.filter(damaged)["segment"].to_pylist())
    missing = pc.equal(problems["problem"], Problem.MISSING)
    found |= set(problems.filter(missing)["segment"].to_pylist()) - set(
        log.batches.segment.tolist()
    )
    segments = log.metadata.segments
    for base in found:
        yield base, next((each for each in segments if each > base), log.end)


def _judged(
    evidence: PartitionEvidence, sides: Mapping[int, _Side], differences: Sequence[KeyDifference]
) -> Iterator[Violation]:
    known = (
        each
        for each in differences
        if sides[each.holder].is_known(each.offset)
        and sides[each.other].is_known(each.offset)
        and not sides[each.holder].has_parted(sides[each.other])
    )
    for _, of_record in groupby(sorted(known, key=_record), key=_record):
        yield from _violations(evidence, sides, list(of_record))


def _record(difference: KeyDifference) -> tuple[int, str]:
    return difference.offset, difference.key


def _violations(
    evidence: PartitionEvidence, sides: Mapping[int, _Side], found: Sequence[KeyDifference]
) -> Iterator[Violation]:
    """The findings about a record: which brokers lack it, and which have it otherwise.

    :param found: One for each two replicas that differ there.
    """
    lacking = sorted({each.other for each in found if not each.is_there})
    for broker in lacking:
        of_it = [each for each in found if each.other == broker and not each.is_there]
        holders = [each.holder for each in of_it]
        yield _violation(
            evidence,
            sides[broker],
            of_it[0],
            f"{_named(of_it[0])} is on {_brokers(holders)} and not on broker {broker}",
            _explanation(evidence, sides, of_it),
        )
    pairs = [(each.holder, each.other) for each in found if each.is_there]
    if pairs:
        # The one that differs from most: of two of which one is wrong, nothing tells which.
        counts = Counter(broker for pair in pairs for broker in pair)
        odd = max(counts, key=lambda broker: (counts[broker], broker))
        others = sorted({broker for pair in pairs if odd in pair for broker in pair} - {odd})
        yield _violation(
            evidence,
            sides[odd],
            replace(found[0], holder=others[0], other=odd),
            f"{_named(found[0])} is another on broker {odd} than on {_brokers(others)}",
            None,
        )


def _named(difference: KeyDifference) -> str:
    return f"the newest value of key {difference.key}, at offset {difference.offset},"


def _brokers(brokers: Sequence[int]) -> str:
    return f"broker{'s' if len(brokers) > 1 else ''} {' and '.join(map(str, brokers))}"


def _violation(
    evidence: PartitionEvidence,
    side: _Side,
    difference: KeyDifference,
    message: str,
    explanation: str | None,
) -> Violation:
    """:param side: The replica that lacks a record, or has it otherwise."""
    return Violation(
        rule=NAME,
        topic=evidence.topic,
        partition=evidence.partition,
        message=message,
        explanation=explanation,
        broker=difference.other,
        other_broker=difference.holder,
        place=Place.LOG,
        offset=difference.offset,
        end_offset=side.hole_end(difference.offset),
    )


def _explanation(
    evidence: PartitionEvidence, sides: Mapping[int, _Side], found: Sequence[KeyDifference]
) -> str | None:
    """Why a replica may lack a value that others have; None where it must have it."""
    first = found[0]
    holder, other = sides[first.holder], sides[first.other]
    if not other.log.metadata.clean:
        return (
            f"broker {first.other} has not ended in order: its cleaner may have been at work while "
            "its log was read"
        )
    if len(found) > 1:
        return None
    if 0 <= evidence.now_ms - first.time_ms < evidence.metadata.tombstones_ms:
        return None
    end = max(holder.log.end, other.log.end)
    if not gaps(holder.whole + other.whole, first.offset + 1, end):
        return None
    return (
        f"a tombstone of the key may have been behind it, and have gone before broker "
        f"{first.holder} fetched it, if that was away for so long"
    )


RULE: Final = Rule(
    name=NAME,
    about="Replicas of a compacted partition have the newest value of each key.",
    source="Kafka's log compaction, KIP-534",
    needs_trace=False,
    order=5,
    severity=Severity.DAMAGE,
    remedy=(
        "find out which replica is right, mostly one that has a value which another lacks, and "
        "delete the directories of the partition on the other brokers while they are stopped"
    ),
    check=check,
    screen=lambda bucket: bucket.has_no_key_difference,
    needs_records=True,
)
