"""Both indexes of one segment, and when a batch gets an entry in them."""

from collections.abc import Iterable
from typing import Final

from fencepost.protocol.records import NO_TIMESTAMP, BatchHeader
from fencepost.storage.formats.offset_index import ENTRY_SIZE as OFFSET_ENTRY
from fencepost.storage.formats.offset_index import OffsetIndex
from fencepost.storage.formats.time_index import ENTRY_SIZE as TIME_ENTRY
from fencepost.storage.formats.time_index import TimeIndex

_OVERHEAD: Final = 1024


class SegmentIndexes:
    """The sparse indexes of a segment, by Kafka's rules.

    :ivar offsets: Where some of the batches begin.
    :ivar times: How late the records up to some of them are.
    :ivar used: For the bound: whether they were used since their last turn.
    """

    __slots__ = ("offsets", "times", "used")

    def __init__(self, offsets: OffsetIndex, times: TimeIndex) -> None:
        self.offsets = offsets
        self.times = times
        self.used = True

    @classmethod
    def empty(cls, base_offset: int) -> "SegmentIndexes":
        """Those of an empty segment."""
        return cls(OffsetIndex(base_offset), TimeIndex(base_offset))

    @property
    def cost(self) -> int:
        """Bytes of memory, about."""
        return _OVERHEAD + len(self.offsets) * OFFSET_ENTRY + len(self.times) * TIME_ENTRY

    def is_full(self, max_bytes: int) -> bool:
        """Whether no entry may follow in files of `max_bytes`.

        The last place in the time index is for the entry that is made when the segment is closed.
        """
        return (
            len(self.offsets) >= max_bytes // OFFSET_ENTRY
            or len(self.times) >= max_bytes // TIME_ENTRY - 1
        )

    def close(self, end: "End") -> None:
        """Add the time entry of the segment's end, unless it has one."""
        if end.max_timestamp > self.times.last.timestamp:
            self.times.append(end.max_timestamp, end.max_timestamp_at)


class End:
    """What a segment knows of its batches without looking at them.

    :ivar next_offset: The offset after the last batch.
    :ivar max_timestamp: The largest timestamp (ms), -1 without one.
    :ivar max_timestamp_at: Last offset of the first batch that has it.
    :ivar since_entry: Bytes from the last entry of the offset index to the end.
    """

    __slots__ = ("max_timestamp", "max_timestamp_at", "next_offset", "since_entry")

    def __init__(self, base_offset: int) -> None:
        self.next_offset = base_offset
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_at = base_offset
        self.since_entry = 0

    def take(
        self, header: BatchHeader, position: int, indexes: SegmentIndexes, interval: int
    ) -> None:
        """Take note of the batch that begins at `position`, the end so far.

        :param interval: More than so many bytes lie between entries (index.interval.bytes).
        """
        last_offset = header.base_offset + header.last_offset_delta
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp = header.max_timestamp
            self.max_timestamp_at = last_offset
        if self.since_entry > interval:
            indexes.offsets.append(last_offset, position)
            if self.max_timestamp > indexes.times.last.timestamp:
                indexes.times.append(self.max_timestamp, self.max_timestamp_at)
            self.since_entry = 0
        self.since_entry += header.size
        self.next_offset = last_offset + 1

    @classmethod
    def found(
        cls,
        indexes: SegmentIndexes,
        headers: Iterable[tuple[int, BatchHeader]],
        *,
        base_offset: int,
        size: int,
    ) -> "End":
        """The end of a segment that was written before.

        :param headers: Of the batches from the last entry of the offset index on.
        """
        end = cls(base_offset)
        end.max_timestamp, end.max_timestamp_at = indexes.times.last
        end.since_entry = size - indexes.offsets.last.position
        for _, header in headers:
            end.next_offset = header.last_offset + 1
            if header.max_timestamp > end.max_timestamp:
                end.max_timestamp = header.max_timestamp
                end.max_timestamp_at = header.last_offset
        return end
