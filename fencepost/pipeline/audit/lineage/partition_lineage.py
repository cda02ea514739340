"""The lineage of a partition, from its evidence: every side, and each two of them compared."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fencepost.pipeline.audit.cluster_metadata import PartitionIncarnation
from fencepost.pipeline.audit.lineage.comparison import Comparison, LogSide, compare_logs
from fencepost.pipeline.audit.lineage.model import (
    EpochAnswer,
    PartitionLineage,
    SideLineage,
    SidePair,
    Truncation,
)
from fencepost.pipeline.audit.lineage.single_ranges import (
    BatchKeys,
    CommittedUpTo,
    Side,
    acknowledged_keys,
    committed_up_to,
    single_ranges,
)
from fencepost.pipeline.audit.lineage.tier_comparison import TierSide, compare_tier
from fencepost.pipeline.audit.lineage.truncation import answer_epoch, truncate
from fencepost.pipeline.audit.partition_logs import (
    IncarnationLogs,
    logs_by_incarnation,
    may_be_compacted,
    tier_copies,
)
from fencepost.pipeline.audit.rule import PartitionEvidence
from fencepost.pipeline.audit.timeline import TopicIncarnation

MAX_SINGLE: Final = 1000
"""Ranges that one side of a pair has alone, at most: all are counted."""
_TIER: Final = None
"""The tier as a side."""


def partition_lineages(evidence: PartitionEvidence) -> tuple[PartitionLineage, ...]:
    """One for each incarnation of the partition that a log is of; one at least."""
    incarnation = None if evidence.traces is None else evidence.last_incarnation
    found = []
    for topic_logs in logs_by_incarnation(evidence):
        topic_id = topic_logs.topic_id
        is_traced = incarnation is not None and (
            topic_id is None or incarnation.topic_id in (None, topic_id)
        )
        found.append(_lineage(evidence, topic_logs, topic_id, incarnation if is_traced else None))
    return tuple(found)


def _lineage(
    evidence: PartitionEvidence,
    topic_logs: IncarnationLogs,
    topic_id: str | None,
    incarnation: TopicIncarnation | None,
) -> PartitionLineage:
    logs = {log.broker: LogSide.of(log) for log in topic_logs.logs}
    tier = TierSide.of(
        tier_copies(evidence, topic_logs.tier), is_read=evidence.metadata.with_objects
    )
    compacted = may_be_compacted(evidence)
    seen = dict(_compare_all(tuple(logs.values()), tier, compacted=compacted))
    newest = [tier.newest_epoch, *(log.newest_epoch for log in logs.values())]
    pairs = _Pairs(
        logs=logs,
        tier=tier,
        seen=seen,
        committed={broker: committed_up_to(log, logs, seen) for broker, log in logs.items()},
        acknowledged=None if incarnation is None else acknowledged_keys(incarnation),
        next_epoch=max((epoch for epoch in newest if epoch is not None), default=-1) + 1,
    )
    cluster = evidence.metadata.cluster.incarnation(topic_id)
    leader = _leader(tuple(logs.values()), cluster, incarnation)
    return PartitionLineage(
        topic_id=topic_id,
        sides=tuple(_sides(logs, tier, leader)),
        pairs=tuple(pairs.made()),
    )


def _compare_all(
    logs: Sequence[LogSide], tier: TierSide, *, compacted: bool
) -> Iterator[tuple[tuple[Side, Side], Comparison]]:
    """Each side, seen from each other: by the broker of the one, and of the other."""
    for number, one in enumerate(logs):
        for other in logs[number + 1 :]:
            there, back = compare_logs(one, other, compacted=compacted)
            yield (one.broker, other.broker), there
            yield (other.broker, one.broker), back
    for log in logs if tier.segments else ():
        there, back = compare_tier(tier, log, compacted=compacted)
        yield (_TIER, log.broker), there
        yield (log.broker, _TIER), back


def _leader(
    logs: Sequence[LogSide],
    metadata: PartitionIncarnation | None,
    incarnation: TopicIncarnation | None,
) -> int | None:
    """The broker that led last, by the cluster metadata and the trace.

    Where they name none whose log is there, the broker that knows the newest leader epoch.
    """
    terms = [] if incarnation is None else [(t.epoch, t.leader) for t in incarnation.leader_terms]
    if metadata is not None:
        terms += [(each.leader_epoch, each.leader) for each in metadata.elections]
    _, leader = max((term for term in terms if term[1] >= 0), default=(-1, -1))
    if any(log.broker == leader for log in logs):
        return leader
    known = [(log.epochs[-1].epoch, log.end, -log.broker) for log in logs if log.epochs]
    if not known:
        return None
    *_, negated = max(known)
    return -negated


def _sides(
    logs: Mapping[int, LogSide], tier: TierSide, leader: int | None
) -> Iterator[SideLineage]:
    for broker, log in sorted(logs.items()):
        yield SideLineage(
            broker=broker,
            start=log.start if len(log.batches) else None,
            end=log.end,
            high_watermark=log.high_watermark,
            newest_epoch=log.newest_epoch,
            leads=broker == leader,
            runs=log.runs,
        )
    if tier.segments:
        yield SideLineage(
            broker=_TIER,
            start=int(tier.batches.base.min()),
            end=tier.end,
            high_watermark=None,
            newest_epoch=tier.newest_epoch,
            leads=False,
            runs=tier.runs,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pairs:
    """Makes the pairs of a partition."""

    logs: Mapping[int, LogSide]
    tier: TierSide
    seen: Mapping[tuple[Side, Side], Comparison]
    committed: Mapping[int, CommittedUpTo | None]
    acknowledged: BatchKeys | None
    next_epoch: int
    """In which the next leader would be elected."""

    def made(self) -> Iterator[SidePair]:
        """By the one side and the other, the tier last."""
        for sides, comparison in sorted(self.seen.items(), key=lambda each: _order(each[0])):
            yield self._pair(*sides, comparison)

    def _pair(self, broker: Side, other: Side, comparison: Comparison) -> SidePair:
        single, total = single_ranges(
            comparison,
            committed=self._committed(broker),
            acknowledged=self.acknowledged,
            is_tier=broker is _TIER,
            limit=MAX_SINGLE,
        )
        return SidePair(
            broker=broker,
            other=other,
            ancestor=comparison.ancestor,
            parting=comparison.parting,
            single=single,
            single_total=total,
            truncation=self._truncation(broker, other),
            answer=self._answer(broker, other),
        )

    def _committed(self, broker: Side) -> CommittedUpTo | None:
        if broker is None:
            return CommittedUpTo(end=self.tier.end, broker=_TIER)
        return self.committed[broker]

    def _truncation(self, broker: Side, other: Side) -> Truncation | None:
        if broker is None or other is None or not self.logs[other].epochs:
            return None
        return truncate(self.logs[broker], self.logs[other], self.next_epoch)

    def _answer(self, broker: Side, other: Side) -> EpochAnswer | None:
        asked = self.tier.newest_epoch if other is None else self.logs[other].newest_epoch
        if broker is None or asked is None or asked < 0:
            return None
        return answer_epoch(self.logs[broker], asked, self.next_epoch)


def _order(sides: tuple[Side, Side]) -> tuple[tuple[bool, int], ...]:
    return tuple((side is None, side or 0) for side in sides)
