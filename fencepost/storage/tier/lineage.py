"""Which of a partition's segments in the tier belong to a replica's log, and where it ends there.

A replica's leader epochs are its lineage: each epoch with the offset where it begins. A record is
known by its epoch and its offset; two logs that agree on one agree on all before it (KIP-101). So
of a segment in the tier the records that belong to a lineage are its first ones, perhaps all,
perhaps none: up to where the last epoch that both know ends in either of them. What lies behind
was truncated away where this lineage holds, and is never served; the segment stays, because
another replica, elected uncleanly, may know better.

    lineage:                       epoch 1 from 0, epoch 3 from 40
    segment 0 to 29, epoch 1:      all of it
    segment 30 to 49, epoch 1:     30 to 39
    segment 50 to 59, epoch 1:     nothing
    segment 30 to 59, epochs 1, 2: 30 to 39, if its epoch 2 begins at 40 or later
"""

from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.tier.segment_metadata import RemoteSegment

NOTHING_TIERED: Final = -1
"""The highest tiered offset of a log of which the tier has nothing."""


class TieredRange(NamedTuple):
    """The part of a segment that belongs to a lineage; both offsets are inclusive."""

    start_offset: int
    end_offset: int
    segment: RemoteSegment


class HasEpochs(Protocol):
    """A segment, as far as its lineage goes."""

    @property
    def end_offset(self) -> int:
        """Inclusive."""

    @property
    def epochs(self) -> Sequence[tuple[int, int]]:
        """Leader epochs and where they begin in it, oldest first."""


def valid_end(segment: HasEpochs, lineage: Sequence[EpochEntry]) -> int | None:
    """The last offset (inclusive) of a segment that belongs to a lineage; None where none does.

    :param lineage: Oldest first. It may begin later than the segment: what is before the log
        start is not known any more, and is taken to belong.
    """
    starts = {entry.epoch: index for index, entry in enumerate(lineage)}
    end = segment.end_offset
    for epoch, first in reversed(segment.epochs):
        index = starts.get(epoch)
        if index is not None:
            if index + 1 < len(lineage):
                end = min(end, lineage[index + 1].start_offset - 1)
            if end >= first:
                return end
            return None
        end = first - 1
    return None


class RemoteSegments:
    """The segments of one partition in the tier, in whatever state, as far as they are known."""

    __slots__ = ("_by_id", "_ranges", "_ranges_of", "_sorted")

    def __init__(self) -> None:
        self._by_id: dict[bytes, RemoteSegment] = {}
        """By the bytes of its id."""
        self._sorted: list[tuple[int, bytes]] = []
        self._ranges: tuple[TieredRange, ...] = ()
        self._ranges_of: tuple[EpochEntry, ...] | None = None
        """The lineage that `_ranges` are of; None: they must be computed again."""

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[RemoteSegment]:
        """All, in order of their start offsets."""
        return (self._by_id[key] for _, key in self._sorted)

    def get(self, segment_id: UUID) -> RemoteSegment | None:
        """One by its id."""
        return self._by_id.get(segment_id.bytes)

    def put(self, segment: RemoteSegment) -> None:
        """Add a segment, or replace it in its new state."""
        key = segment.id.bytes
        if key not in self._by_id:
            insort(self._sorted, (segment.start_offset, key))
        self._by_id[key] = segment
        self._ranges_of = None

    def drop(self, segment_id: UUID) -> None:
        """Remove a segment; it may not be known."""
        key = segment_id.bytes
        segment = self._by_id.pop(key, None)
        if segment is not None:
            self._sorted.remove((segment.start_offset, key))
            self._ranges_of = None

    def ranges(self, lineage: tuple[EpochEntry, ...]) -> tuple[TieredRange, ...]:
        """What is served of all segments that belong to a lineage, by start offset.

        They may overlap: leaders do not cut their segments at the same offsets.
        """
        if self._ranges_of != lineage:
            found = []
            for segment in self:
                end = valid_end(segment, lineage) if segment.is_served else None
                if end is not None:
                    found.append(TieredRange(segment.start_offset, end, segment))
            self._ranges, self._ranges_of = tuple(found), lineage
        return self._ranges

    def range_for(self, lineage: tuple[EpochEntry, ...], offset: int) -> TieredRange | None:
        """The range that holds an offset: of several the one that begins last."""
        ranges = self.ranges(lineage)
        for index in range(bisect_right(ranges, offset, key=_start) - 1, -1, -1):
            if ranges[index].end_offset >= offset:
                return ranges[index]
        return None

    def segment_for(self, epoch: int, offset: int) -> RemoteSegment | None:
        """The segment that is served and has the record of this epoch and offset (KIP-405).

        For a caller that knows no lineage: the epochs of the segment itself decide.
        """
        found = None
        for segment in self:
            if segment.is_served and segment.start_offset <= offset <= segment.end_offset:
                index = bisect_right(segment.epochs, offset, key=_epoch_start) - 1
                if segment.epochs[index].epoch == epoch:
                    found = segment
        return found

    def highest_offset(self, epoch: int) -> int | None:
        """The highest offset (inclusive) of an epoch that is served, None without one."""
        ends = [
            following - 1
            for segment in self
            if segment.is_served
            for entry, following in zip(segment.epochs, _ends(segment), strict=True)
            if entry.epoch == epoch
        ]
        return max(ends, default=None)

    def highest_tiered(self, lineage: tuple[EpochEntry, ...], log_end_offset: int) -> int:
        """The last offset (inclusive) of a log that the tier has, -1 where it has none.

        :param log_end_offset: Of that log; the tier may be ahead of a follower's.
        """
        last = log_end_offset - 1
        ends = (min(end, last) for start, end, _ in self.ranges(lineage) if start <= last)
        return max(ends, default=NOTHING_TIERED)

    def first_offset(self, lineage: tuple[EpochEntry, ...], log_start_offset: int) -> int | None:
        """The first offset of a log, from its start on, that the tier has; None without one."""
        for start, end, _ in self.ranges(lineage):
            if end >= log_start_offset:
                return max(start, log_start_offset)
        return None


def _start(tiered: TieredRange) -> int:
    return tiered.start_offset


def _epoch_start(entry: EpochEntry) -> int:
    return entry.start_offset


def _ends(segment: RemoteSegment) -> list[int]:
    """Where each of a segment's epochs ends in it (exclusive)."""
    return [entry.start_offset for entry in segment.epochs[1:]] + [segment.end_offset + 1]
