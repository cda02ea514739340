"""One segment of a log: where each batch ends, and what lookups need of it.

A segment knows its batches as three parallel arrays and never looks into the bytes for an
offset or a time down to the batch. Where the bytes lie is behind `SegmentBytes`: a list of
buffers in memory, a file on a disk. Positions are bytes from the segment's beginning.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from fencepost.protocol.buffers import Buffer
from fencepost.protocol.records import BatchHeader, read_header
from fencepost.storage.log import SegmentView
from fencepost.storage.producers import ProducerView


class SegmentBytes(Protocol):
    """The bytes of one segment, batch after batch."""

    def append(self, buffer: Buffer) -> None:
        """Keep one or more whole batches at the end."""

    def read(self, start: int, end: int) -> list[Buffer]:
        """The bytes from `start` (where a batch begins) to `end`; every buffer begins with a batch.

        The bytes of one batch lie in one buffer.
        """

    def truncate(self, size: int) -> None:
        """Keep the first `size` bytes, which end with a batch."""

    def shed(self) -> bool:
        """Free some of what is held, quickly; False when nothing is left.

        For a segment that nobody reads any more.
        """


class Slice(NamedTuple):
    """Bytes of a segment, from `start` to `end`."""

    start: int
    end: int


class Segment:
    """Batches from `base_offset` on, in the order of their offsets.

    :ivar created_ms: When it was begun.
    :ivar last_modified_ms: When it was last appended to; stands in for the largest timestamp
        where no record has one.
    :ivar rolling_timestamp: Max timestamp of the first append; segment.ms counts from it.
    :ivar records: How many records it holds.
    :ivar producer_snapshot: The log's producers before its first record.
    """

    __slots__ = (
        "_ends",
        "_last_offsets",
        "_max_timestamps",
        "base_offset",
        "content",
        "created_ms",
        "last_modified_ms",
        "producer_snapshot",
        "records",
        "rolling_timestamp",
    )

    def __init__(
        self,
        base_offset: int,
        content: SegmentBytes,
        *,
        created_ms: int,
        producer_snapshot: tuple[ProducerView, ...] = (),
    ) -> None:
        self.base_offset = base_offset
        self.content = content
        self.created_ms = created_ms
        self.last_modified_ms = created_ms
        self.rolling_timestamp: int | None = None
        self.records = 0
        self.producer_snapshot = producer_snapshot
        self._last_offsets = array("q")
        self._ends = array("q")
        # The largest of this and all earlier batches: it never falls, so it can be bisected, and
        # cutting the end off leaves it right.
        self._max_timestamps = array("q")

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        ends = self._ends
        return ends[-1] if ends else 0

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp (ms), -1 without one."""
        timestamps = self._max_timestamps
        return timestamps[-1] if timestamps else -1

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp (ms), or the time of the last append where no record has one."""
        largest = self.max_timestamp
        return largest if largest >= 0 else self.last_modified_ms

    @property
    def next_offset(self) -> int:
        """The offset after the last batch."""
        offsets = self._last_offsets
        return offsets[-1] + 1 if offsets else self.base_offset

    def append(self, buffer: Buffer, header: BatchHeader, now_ms: int) -> None:
        """Keep a buffer that is exactly one batch."""
        self.index(header, now_ms)
        self.content.append(buffer)

    def index(self, header: BatchHeader, now_ms: int) -> None:
        """Take note of a batch whose bytes the caller hands to `content`."""
        ends, timestamps = self._ends, self._max_timestamps
        max_timestamp = header.max_timestamp
        if ends:
            ends.append(ends[-1] + header.size)
            timestamps.append(max(timestamps[-1], max_timestamp))
        else:
            ends.append(header.size)
            timestamps.append(max_timestamp)
            self.rolling_timestamp = max_timestamp
        self._last_offsets.append(header.base_offset + header.last_offset_delta)
        self.records += header.record_count
        self.last_modified_ms = now_ms

    def batch_holding(self, offset: int) -> int:
        """Index of the first batch that ends at or after `offset`; their number without one."""
        return bisect_left(self._last_offsets, offset)

    def batch_reaching(self, timestamp: int) -> int:
        """Index of the first batch with a record of at least `timestamp`; their number without."""
        return bisect_left(self._max_timestamps, timestamp)

    def start_of(self, batch: int) -> int:
        """Where a batch begins."""
        return self._ends[batch - 1] if batch else 0

    def locate(
        self, offset: int, *, max_bytes: int, upper_bound: int, min_one_batch: bool
    ) -> Slice | None:
        """Which bytes `Log.read` gives out of this segment; None where there are none."""
        offsets, ends = self._last_offsets, self._ends
        first = bisect_left(offsets, offset)
        stop = len(offsets)
        if stop and offsets[-1] >= upper_bound:
            stop = bisect_left(offsets, upper_bound)
        if first >= stop:
            return None
        start = ends[first - 1] if first else 0
        end = ends[stop - 1]
        if end - start > max_bytes:
            first_end = ends[first]
            if first_end - start <= max_bytes:
                end = start + max_bytes
            elif min_one_batch:
                end = first_end
            else:
                return None
        return Slice(start, end)

    def size_between(self, offset: int, upper_bound: int) -> int:
        """Bytes of the batches from the one that holds `offset` to before `upper_bound`."""
        first, stop = self.batch_holding(offset), self.batch_holding(upper_bound)
        return self.start_of(stop) - self.start_of(first) if first < stop else 0

    def batch(self, index: int) -> Buffer:
        """The bytes of one batch."""
        return self.content.read(self.start_of(index), self._ends[index])[0]

    def batches(self, first: int = 0) -> Iterator[tuple[Buffer, BatchHeader]]:
        """Batches and their headers, from the one at index `first` on."""
        for index in range(first, len(self._ends)):
            buffer = self.batch(index)
            yield buffer, read_header(buffer)

    def truncate(self, offset: int) -> None:
        """Drop the batch that holds `offset` and all after it."""
        keep = self.batch_holding(offset)
        if keep == len(self._ends):
            return
        self.records -= sum(header.record_count for _, header in self.batches(keep))
        self.content.truncate(self.start_of(keep))
        del self._last_offsets[keep:], self._ends[keep:], self._max_timestamps[keep:]

    def should_roll(
        self, *, size: int, max_timestamp: int, now_ms: int, segment_bytes: int, segment_ms: int
    ) -> bool:
        """Whether a batch of `size` bytes and `max_timestamp` needs a new segment.

        segment.ms counts in the records' time, from the first batch to this one; where the first
        has no timestamp, in the broker's time from the segment's creation.
        """
        own = self.size
        if own > segment_bytes - size:
            return True
        if not own:
            return False
        first = self.rolling_timestamp
        if first is not None and first >= 0:
            return max_timestamp - first > segment_ms
        return now_ms - self.created_ms > segment_ms

    def view(self) -> SegmentView:
        """As others may see it."""
        return SegmentView(
            self.base_offset,
            self.next_offset,
            self.size,
            self.records,
            self.max_timestamp,
            self.created_ms,
            self.last_modified_ms,
        )
