"""The segments of one log, oldest first, found by offset."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Protocol

from fencepost.storage.producers import ProducerView
from fencepost.storage.segment import LogSegment


class SegmentStore(Protocol):
    """Where the segments of one log live."""

    def create(
        self, base_offset: int, *, now_ms: int, producers: tuple[ProducerView, ...] | None = None
    ) -> LogSegment:
        """A new, empty segment.

        :param producers: The log's producers before its first record; None where the log begins
            with it, and nothing was before.
        """

    def create_cleaned(self, first: LogSegment) -> LogSegment:
        """A new, empty segment that compaction fills; it begins where `first` does.

        Until it is swapped in, an end of the process leaves nothing of it.
        """

    def swap(self, cleaned: Sequence[LogSegment], replaced: Sequence[LogSegment]) -> None:
        """Let cleaned segments take the place of others: all of them or, after a crash, none."""

    def discard(self, segments: Sequence[LogSegment]) -> None:
        """Lose segments that the log has let go of."""


class Segments:
    """One segment at least; the last is the active one.

    :param store: Where they live, and new ones come from.
    """

    __slots__ = ("_bases", "_segments", "_store", "active")

    def __init__(self, store: SegmentStore, segments: Sequence[LogSegment]) -> None:
        self._store = store
        self._hold(list(segments))

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._segments)

    def reset(
        self, offset: int, now_ms: int, producers: tuple[ProducerView, ...] | None = None
    ) -> None:
        """Lose all and begin with an empty segment at `offset`.

        :param producers: As for `SegmentStore.create`.
        """
        self._store.discard(self._segments)
        self._hold([self._store.create(offset, now_ms=now_ms, producers=producers)])

    def swap(self, cleaned: Sequence[LogSegment], count: int) -> None:
        """Hold cleaned segments instead of the `count` oldest."""
        replaced = self._segments[:count]
        self._store.swap(cleaned, replaced)
        self._hold([*cleaned, *self._segments[count:]])

    def _hold(self, segments: list[LogSegment]) -> None:
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]

    @property
    def all(self) -> Sequence[LogSegment]:
        """The segments themselves, oldest first."""
        return self._segments

    @property
    def first_offset(self) -> int:
        """Base offset of the oldest."""
        return self._bases[0]

    @property
    def size_bytes(self) -> int:
        """Bytes of all."""
        return sum(segment.size for segment in self._segments)

    def index_of(self, offset: int) -> int:
        """Index of the segment in whose range `offset` lies; the first for what lies before."""
        if len(self._bases) == 1:
            return 0
        return max(bisect_right(self._bases, offset) - 1, 0)

    def roll(
        self, base_offset: int, now_ms: int, producers: tuple[ProducerView, ...]
    ) -> LogSegment:
        """Begin a new active segment; one that is empty still is replaced."""
        if self.active.is_empty:
            self._drop_from(len(self._segments) - 1)
        segment = self._store.create(base_offset, now_ms=now_ms, producers=producers)
        self._segments.append(segment)
        self._bases.append(base_offset)
        self.active = segment
        return segment

    def truncate(self, offset: int) -> None:
        """Drop everything from `offset` on; the segment that it lies in becomes the active one."""
        keep = self.index_of(offset)
        self._drop_from(keep + 1)
        self.active = self._segments[keep]
        self.active.truncate(offset)

    def drop_before(self, offset: int) -> int:
        """Lose the segments that end at or before `offset`; never the active one.

        :returns: How many.
        """
        index = self.index_of(offset)
        if index:
            gone = self._segments[:index]
            del self._segments[:index], self._bases[:index]
            self._store.discard(gone)
        return index

    def _drop_from(self, index: int) -> None:
        gone = self._segments[index:]
        if gone:
            del self._segments[index:], self._bases[index:]
            self._store.discard(gone)
