"""The values that the lineage of a partition is made of. The tier is broker None in all of them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from fencepost.pipeline.audit.lineage.epoch_runs import EpochRuns


class Relation(StrEnum):
    """How a range of offsets that only one side has lies to the other side."""

    BEFORE_START = "before_start"
    """The other begins behind it: it has deleted it, or has it in the tier."""
    DIVERGING = "diverging"
    """It lies where the two have parted."""
    GAP = "gap"
    """The other has batches before it and behind it, and none in its place."""
    BEYOND_END = "beyond_end"
    """The other ends before it, and has not parted: it may be behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleRange:
    """Offsets of one leader epoch that one side has and another has not."""

    relation: Relation
    epoch: int
    start: int
    end: int
    """Exclusive."""
    batches: int
    records: int
    """By the headers of the batches."""
    committed_end: int | None
    """Up to where (exclusive) it is known to have been committed; None where that is not known."""
    committed_by: int | None
    """The broker whose checkpointed high watermark says so; None for the tier, which has only what
    was committed."""
    acknowledged: int | None
    """Records of it whose batches were acknowledged to acks=all; None without a trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ancestor:
    """The last batch that two sides have in common, before they part."""

    epoch: int
    end: int
    """Behind it (exclusive)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """Where two sides part."""

    offset: int
    """The first at which they have different batches, or leader epochs."""
    epoch: int | None
    """Of the one side there; None where it knows none."""
    other_epoch: int | None
    converges_at: int | None
    """The first offset behind it from which on they agree; None where they never do."""

    def reversed(self) -> "Parting":
        """The same, seen from the other side."""
        return replace(self, epoch=self.other_epoch, other_epoch=self.epoch)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochAnswer:
    """What OffsetForLeaderEpoch would answer a client (KIP-320)."""

    asked_epoch: int
    epoch: int
    """The newest epoch of the log that is not above the asked one."""
    end_offset: int
    """Where that epoch ends (exclusive)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """What a follower would truncate (KIP-101, KIP-279)."""

    offset: int
    """Where its log would end (exclusive); its log end where it keeps all."""
    records: int
    """How many it would lose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SidePair:
    """One side compared with another; each two sides are compared in both directions."""

    broker: int | None
    other: int | None
    ancestor: Ancestor | None
    """None where they have no batch in common."""
    parting: Parting | None
    """None where they do not part: one may be behind the other."""
    single: tuple[SingleRange, ...]
    """What the first of them has alone, by relation to the other; at most `MAX_SINGLE`."""
    single_total: int
    """How many ranges there are."""
    truncation: Truncation | None
    """What the first would do as follower of the other, if that were elected; None where one of
    them is the tier, or knows no leader epoch."""
    answer: EpochAnswer | None
    """What the first would answer, if it were elected, for the newest epoch of the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideLineage:
    """The leader epochs of one replica, or of the tier."""

    broker: int | None
    start: int | None
    """The first offset that it holds; None where it holds no batch."""
    end: int
    """Its log end (exclusive)."""
    high_watermark: int | None
    """As its checkpoint says."""
    newest_epoch: int | None
    """That it knows, from its batches and its checkpoint."""
    leads: bool
    """Whether it led last, by the cluster metadata and the trace; without both, whether it knows
    the newest epoch."""
    runs: EpochRuns
    """In the tier epochs may overlap: it may have segments of several lineages."""

    @property
    def records(self) -> int:
        """By the headers of the batches."""
        return sum(run.records for run in self.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLineage:
    """The lineage of one incarnation of a partition."""

    topic_id: str | None
    """None where no log says it."""
    sides: tuple[SideLineage, ...]
    """By broker, the tier last."""
    pairs: tuple[SidePair, ...]

    @property
    def parts(self) -> bool:
        """Whether any two sides part."""
        return any(pair.parting is not None for pair in self.pairs)

    @property
    def leader(self) -> SideLineage | None:
        """The side that led last."""
        return next((side for side in self.sides if side.leads), None)

    def pair(self, broker: int | None, other: int | None) -> SidePair | None:
        """One side compared with another."""
        wanted = (each for each in self.pairs if (each.broker, each.other) == (broker, other))
        return next(wanted, None)

    def parted(self) -> Iterator[SidePair]:
        """The pairs that part, each once."""
        seen = set()
        for pair in self.pairs:
            if pair.parting is not None and (pair.other, pair.broker) not in seen:
                seen.add((pair.broker, pair.other))
                yield pair
