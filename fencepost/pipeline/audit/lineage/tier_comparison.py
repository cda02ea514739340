"""The segments of the tier compared with one log, segment by segment.

The tier may have segments of several lineages: what a leader has copied stays when the leader was
deposed and its log truncated. So each segment parts from a log by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from fencepost.pipeline.audit.batch_arrays import (
    BatchDifference,
    Batches,
    Int64Array,
    batch_differences,
)
from fencepost.pipeline.audit.lineage.comparison import (
    BEFORE_START,
    BEYOND_END,
    DIVERGING,
    GAP,
    SAME,
    Comparison,
    LogSide,
    convergence,
    last_batch,
    relate,
)
from fencepost.pipeline.audit.lineage.epoch_runs import EpochRuns, epoch_runs, first_conflict
from fencepost.pipeline.audit.lineage.model import Ancestor, Parting
from fencepost.pipeline.audit.partition_logs import TierCopy
from fencepost.pipeline.audit.rule import TierSegment
from fencepost.storage.log.leader_epoch_cache import EpochEntry


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SegmentSide:
    """A finished segment of the tier, prepared to be compared."""

    batches: Batches
    """By offset. Where its object was not read, one for each leader epoch of its metadata."""
    epochs: tuple[EpochEntry, ...]
    """By its metadata, without what can't be."""
    is_read: bool
    """Whether its object was read."""

    @classmethod
    def of(cls, copy: TierCopy, *, is_read: bool) -> "SegmentSide":
        """One copy's."""
        return cls(
            batches=copy.batches if is_read else _batches_of_metadata(copy.segment),
            epochs=tuple(EpochEntry(*entry) for entry in copy.segment.epochs if min(entry) >= 0),
            is_read=is_read,
        )


def _batches_of_metadata(segment: TierSegment) -> Batches:
    """One batch for each leader epoch of a segment, which says nothing but its offsets."""
    starts = [max(start, segment.start_offset) for _, start in segment.epochs]
    ends = [*starts[1:], segment.end_offset + 1]
    ranges = [
        (epoch, start, end)
        for (epoch, _), start, end in zip(segment.epochs, starts, ends, strict=True)
        if start < end
    ]
    return _batches_of_ranges(ranges)


def _batches_of_ranges(ranges: Sequence[tuple[int, int, int]]) -> Batches:
    """One batch for each range of epoch, first offset and end (exclusive)."""
    epoch, start, end = np.array(ranges, np.int64).reshape(-1, 3).T
    columns = {each.name: np.zeros(len(start), np.int64) for each in fields(Batches)}
    known = {"epoch": epoch, "base": start, "last": end - 1, "count": end - start}
    known["batches"] = np.ones(len(start), np.int64)
    return Batches(**{**columns, **known})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TierSide:
    """The finished segments of the tier that have records, prepared to be compared."""

    segments: tuple[SegmentSide, ...]
    """By start offset."""
    batches: Batches
    """Of all of them, each once, by epoch and offset."""

    @classmethod
    def of(cls, copies: Sequence[TierCopy], *, is_read: bool) -> "TierSide":
        """Those of some segments whose records are there.

        :param is_read: Whether objects were read; else their metadata are believed.
        """
        sides = [SegmentSide.of(copy, is_read=is_read) for copy in copies]
        there = tuple(side for side in sides if len(side.batches))
        batches = _joined([side.batches for side in there])
        return cls(segments=there, batches=batches.select(_distinct(batches)))

    @property
    def runs(self) -> EpochRuns:
        """By epoch and offset; a gap ends a run, and runs of different epochs may overlap."""
        batches = self.batches
        edges = np.flatnonzero(batches.base[1:] > batches.last[:-1] + 1) + 1
        parts = np.split(np.arange(len(batches)), edges)
        return tuple(run for part in parts for run in epoch_runs(batches.select(part)))

    @property
    def end(self) -> int:
        """Behind the last offset (exclusive); 0 where there is none."""
        return int(self.batches.last.max(initial=-1)) + 1

    @property
    def newest_epoch(self) -> int | None:
        """The newest epoch of a batch; None without one."""
        return int(self.batches.epoch[-1]) if len(self.batches) else None


def compare_tier(tier: TierSide, log: LogSide, *, compacted: bool) -> tuple[Comparison, Comparison]:
    """Compare each segment with the log.

    The two part where the first segment does. Their ancestor is the end of what the tier has of the
    log's lineage, whether the log still holds it or not.

    :param compacted: Whether cleaners may have been over either.
    :returns: The tier, seen from the log, and the log, seen from the tier.
    """
    found = [_compare_segment(side, log, compacted=compacted) for side in tier.segments]
    partings = [each.parting for each in found if each.parting is not None]
    parting = min(partings, key=lambda each: each.offset, default=None)
    ancestors = [each.ancestor for each in found if each.ancestor is not None]
    ancestor = max(ancestors, key=lambda each: each.end, default=None)
    batches = _joined([each.batches for each in found])
    distinct = _distinct(batches)
    relations = np.concatenate([np.zeros(0, np.int64), *(each.relations for each in found)])
    return (
        Comparison(
            parting=parting,
            ancestor=ancestor,
            batches=batches.select(distinct),
            relations=relations[distinct],
        ),
        Comparison(
            parting=None if parting is None else parting.reversed(),
            ancestor=ancestor,
            batches=log.batches,
            relations=_seen_from_tier(log, found, ancestor, compacted=compacted),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _SegmentComparison:
    """One segment, seen from a log."""

    batches: Batches
    parting: Parting | None
    ancestor: Ancestor | None
    relations: Int64Array
    """Of its batches."""
    window: Int64Array
    """The batches of the log that may share offsets with it, by number."""
    log_relations: Int64Array
    """Of these, seen from the segment."""


def _compare_segment(side: SegmentSide, log: LogSide, *, compacted: bool) -> _SegmentComparison:
    own = side.batches
    window = _overlapping(log.batches, own)
    near = log.batches.select(window)
    end = max(int(own.last.max()), int(near.last.max(initial=0))) + 1
    there: list[BatchDifference] = []
    if side.is_read:
        there = batch_differences(own, near, 0, end, compacted=compacted)
    back = there and batch_differences(near, own, 0, end, compacted=compacted)
    conflicts = (
        first_conflict(epoch_runs(own), log.epochs_against(int(own.epoch.max()))),
        first_conflict(log.claims, side.epochs),
        *(found[0].start for found in (there, back) if found),
    )
    offset = min((each for each in conflicts if each is not None), default=None)
    parting = opposite = None
    if offset is not None:
        # A log may know a newer epoch from before the segment on.
        offset = max(offset, int(own.base[0]))
        parting = Parting(
            offset=offset,
            epoch=_epoch_at(own, offset),
            other_epoch=log.epoch_at(offset),
            converges_at=convergence(there) if there else None,
        )
        opposite = parting.reversed()
    if not side.is_read:
        own = _cut(own, (log.start, log.end) if offset is None else (log.start, log.end, offset))
    return _SegmentComparison(
        batches=own,
        parting=parting,
        ancestor=last_batch(own, own.last < (log.end if offset is None else min(log.end, offset))),
        relations=relate(own, log.batches, there, parting, compacted=compacted),
        window=window,
        log_relations=relate(near, own, back, opposite, compacted=compacted),
    )


def _seen_from_tier(
    log: LogSide, found: Sequence[_SegmentComparison], ancestor: Ancestor | None, *, compacted: bool
) -> Int64Array:
    """The relations of a log's batches to the tier: one segment that has a batch is enough."""
    end = 0 if ancestor is None else ancestor.end
    start = min((int(each.batches.base[0]) for each in found), default=0)
    relations = np.full(len(log.batches), SAME if compacted else GAP)
    relations[log.batches.last < start] = BEFORE_START
    relations[log.batches.base >= end] = BEYOND_END
    held, other = np.zeros((2, len(log.batches)), bool)
    for each in found:
        held[each.window] |= each.log_relations == SAME
        other[each.window] |= each.log_relations == DIVERGING
    relations[other] = DIVERGING
    relations[held] = SAME
    return relations


def _cut(batches: Batches, offsets: Sequence[int]) -> Batches:
    """Batches that stand for ranges, cut at some offsets."""
    ranges = []
    columns = (batches.epoch.tolist(), batches.base.tolist(), batches.last.tolist())
    for epoch, base, last in zip(*columns, strict=True):
        edges = [base, *sorted({each for each in offsets if base < each <= last}), last + 1]
        ranges += [(epoch, start, end) for start, end in pairwise(edges)]
    return _batches_of_ranges(ranges)


def _overlapping(batches: Batches, own: Batches) -> Int64Array:
    """The batches of a log that may share offsets with a segment's, by number."""
    first = int(np.searchsorted(batches.base, own.base[0], side="right")) - 1
    behind = int(np.searchsorted(batches.base, own.last.max(), side="right"))
    return np.arange(max(first, 0), max(behind, 0))


def _epoch_at(batches: Batches, offset: int) -> int:
    """The leader epoch at an offset from the first on."""
    return int(batches.epoch[int(np.searchsorted(batches.base, offset, side="right")) - 1])


def _joined(parts: Sequence[Batches]) -> Batches:
    """The batches of all parts, in their order."""
    none = np.zeros(0, np.int64)
    return Batches(
        **{
            each.name: np.concatenate([none, *(getattr(part, each.name) for part in parts)])
            for each in fields(Batches)
        }
    )


def _distinct(batches: Batches) -> Int64Array:
    """The numbers of batches of which each is there once, by epoch and offset."""
    order = np.lexsort((batches.crc, batches.last, batches.base, batches.epoch))
    kept = batches.select(order)
    columns = (kept.epoch, kept.base, kept.last, kept.crc)
    is_new = np.zeros(len(kept), bool)
    is_new[:1] = True
    for column in columns:
        is_new[1:] |= column[1:] != column[:-1]
    return order[is_new]
