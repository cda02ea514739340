"""The segments of one log, oldest first, found by offset."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from fencepost.storage.producers import ProducerView
from fencepost.storage.segment import Segment, SegmentBytes


class Segments:
    """One segment at least; the last is the active one.

    :param new_content: Makes the place for a segment's bytes, given its base offset.
    """

    __slots__ = ("_bases", "_new_content", "_segments", "active")

    def __init__(
        self, new_content: Callable[[int], SegmentBytes], *, start_offset: int, now_ms: int
    ) -> None:
        self._new_content = new_content
        self.reset(start_offset, now_ms)

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def reset(self, offset: int, now_ms: int) -> None:
        """Forget all and begin with an empty segment at `offset`."""
        self.replace([Segment(offset, self._new_content(offset), created_ms=now_ms)])

    def replace(self, segments: list[Segment]) -> None:
        """Hold these instead."""
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]

    @property
    def all(self) -> Sequence[Segment]:
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

    @property
    def records(self) -> int:
        """Records of all."""
        return sum(segment.records for segment in self._segments)

    def content_at(self, base_offset: int) -> SegmentBytes:
        """A new place for the bytes of a segment."""
        return self._new_content(base_offset)

    def index_of(self, offset: int) -> int:
        """Index of the segment in whose range `offset` lies; the first for what lies before."""
        if len(self._bases) == 1:
            return 0
        return max(bisect_right(self._bases, offset) - 1, 0)

    def roll(self, base_offset: int, now_ms: int, producers: tuple[ProducerView, ...]) -> Segment:
        """Begin a new active segment; one that is empty still is replaced."""
        segment = Segment(
            base_offset,
            self._new_content(base_offset),
            created_ms=now_ms,
            producer_snapshot=producers,
        )
        if not len(self.active):
            self.drop_from(len(self._segments) - 1)
        self._segments.append(segment)
        self._bases.append(base_offset)
        self.active = segment
        return segment

    def truncate(self, offset: int) -> None:
        """Drop everything from `offset` on; the segment that it lies in becomes the active one."""
        keep = self.index_of(offset)
        self.drop_from(keep + 1)
        self.active = self._segments[keep]
        self.active.truncate(offset)

    def drop_from(self, index: int) -> None:
        """Forget the segments from `index` on."""
        del self._segments[index:], self._bases[index:]

    def drop_before(self, offset: int) -> int:
        """Forget the segments that end at or before `offset`; never the active one.

        :returns: How many.
        """
        index = self.index_of(offset)
        if index:
            del self._segments[:index], self._bases[:index]
        return index
