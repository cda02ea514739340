"""Both sparse indexes of one segment: adding entries, checking them, and finding batches by them
and by scans of the ``.log``.

There is no entry for each batch: a lookup finds the last entry before the offset or timestamp, and
scans the ``.log`` from there. A read for a consumer includes that part and cuts it off, so that it
is one system call wherever the offset lies between two entries.

The functions change no file. A caller that finds an index wrong rebuilds it and repeats the lookup.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    peek_header,
)
from fencepost.storage.files.file_system import DamagedSegment
from fencepost.storage.formats.indexes import OFFSET_ENTRY_SIZE as OFFSET_ENTRY
from fencepost.storage.formats.indexes import TIME_ENTRY_SIZE as TIME_ENTRY
from fencepost.storage.formats.indexes import CorruptIndex, OffsetIndex, TimeIndex, TimestampOffset

Read: TypeAlias = Callable[[int, int], bytes]
"""The bytes from a position to another (exclusive)."""

_HEADERS_CHUNK: Final = 128 << 10
_BATCHES_CHUNK: Final = 1 << 20


def scan_headers(read: Read, start: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch from `start`, where one begins, to `end`.

    :raises DamagedSegment: Where a batch is none, or goes on behind `end`.
    """
    position = start
    while position < end:
        data = read(position, min(position + _HEADERS_CHUNK, end))
        at, last = 0, len(data) - HEADER_SIZE
        while at <= last:
            header = _header(data, at, position + at, end)
            yield position + at, header
            at += header.batch_length + LOG_OVERHEAD
        if not at:
            raise DamagedSegment(position, "record batch header is cut short")
        position += at


def count_records(read: Read, start: int, end: int) -> int:
    """How many records the batches from `start`, where one begins, to `end` hold.

    :raises DamagedSegment: Where a batch is none, or goes on behind `end`.
    """
    return sum(header.record_count for _, header in scan_headers(read, start, end))


def scan_batches(read: Read, start: int, end: int) -> Iterator[tuple[int, memoryview, BatchHeader]]:
    """Position, bytes and header of each batch from `start`, where one begins, to `end`.

    :raises DamagedSegment: Where a batch is none, or goes on behind `end`.
    """
    position, wanted = start, _BATCHES_CHUNK
    while position < end:
        data = memoryview(read(position, min(position + wanted, end)))
        wanted = _BATCHES_CHUNK
        at, last = 0, len(data) - HEADER_SIZE
        while at <= last:
            header = _header(data, at, position + at, end)
            size = header.batch_length + LOG_OVERHEAD
            if at + size > len(data):
                wanted = max(size, wanted)
                break
            yield position + at, data[at : at + size], header
            at += size
        if len(data) < HEADER_SIZE:
            raise DamagedSegment(position, "record batch header is cut short")
        position += at


def _header(data: bytes | memoryview, at: int, position: int, end: int) -> BatchHeader:
    try:
        header = peek_header(data, at)
    except CorruptBatch as error:
        raise DamagedSegment(position, str(error)) from error
    if position + header.batch_length + LOG_OVERHEAD > end:
        raise DamagedSegment(position, "record batch is cut short")
    return header


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

    def close(self, end: "SegmentEnd") -> None:
        """Add the time entry of the segment's end, unless it has one."""
        if end.max_timestamp > self.times.last.timestamp:
            self.times.append(end.max_timestamp, end.max_timestamp_at)


class SegmentEnd:
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

    def add_batch(
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
    def of_existing(
        cls,
        indexes: SegmentIndexes,
        headers: Iterable[tuple[int, BatchHeader]],
        *,
        base_offset: int,
        size: int,
    ) -> "SegmentEnd":
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


_FAR: Final = 256 << 10
_HEAD: Final = struct.Struct(">qi")
_DELTA: Final = struct.Struct(">i")
_DELTA_AT: Final = 23


def read_around(
    read: Read,
    offsets: OffsetIndex,
    offset: int,
    *,
    size: int,
    end: int,
    max_bytes: int,
    min_one_batch: bool,
) -> list[Buffer] | None:
    """What `LogSegment.read` gives from the first batch on that ends at or after `offset`.

    :param size: Of the file.
    :param end: Of what may be read: a batch ends there.
    :returns: None where that batch is not found in one read: entries are missing or wrong, or
        batches large, or it lies behind `end`.
    """
    begin, latest = offsets.around(offset)
    if latest is None:
        latest = size
    if latest - begin >= _FAR:
        return None
    begin = min(begin, end)
    data = memoryview(read(begin, min(end, latest + max(max_bytes, HEADER_SIZE))))
    found = _find(data, offset, is_first=not begin)
    if found is None:
        return None
    at, first_size = found
    return _cut(
        read,
        data[at:],
        begin + at,
        first_size,
        end,
        max_bytes=max_bytes,
        min_one_batch=min_one_batch,
    )


def read_at(
    read: Read, begin: int, *, end: int, max_bytes: int, min_one_batch: bool
) -> list[Buffer]:
    """What `LogSegment.read` gives from the batch on that begins at `begin`."""
    if begin >= end:
        return []
    data = memoryview(read(begin, min(end, begin + max(max_bytes, HEADER_SIZE))))
    _, length = _HEAD.unpack_from(data)
    return _cut(
        read,
        data,
        begin,
        length + LOG_OVERHEAD,
        end,
        max_bytes=max_bytes,
        min_one_batch=min_one_batch,
    )


def scan_to(read: Read, offset: int, *, begin: int, size: int) -> int:
    """Where the first batch begins that ends at or after `offset`; there is one.

    :param begin: Where an index says that a batch begins which does not end after `offset`.
    :raises DamagedSegment: Where that is not so, or batches are missing.
    """
    for position, header in scan_headers(read, begin, size):
        if header.base_offset + header.last_offset_delta >= offset:
            if position == begin and header.last_offset > offset and begin:
                raise DamagedSegment(begin, "the index says that an earlier batch begins here")
            return position
    raise DamagedSegment(size, "batches are missing")


def matches_time_entry(read: Read, position: int, entry: TimestampOffset, *, size: int) -> bool:
    """Whether the batch at `position` is the one that an entry of the time index means."""
    _, header = next(scan_headers(read, position, size), (0, None))
    return header is not None and (header.last_offset, header.max_timestamp) == (
        entry.offset,
        entry.timestamp,
    )


def check_indexes(indexes: SegmentIndexes, read: Read, *, size: int) -> None:
    """See that indexes are of this file, as far as their last entries tell.

    :raises CorruptIndex: When they are not.
    """
    last = indexes.offsets.last
    if not last.position:
        return
    if last.position >= size:
        raise CorruptIndex(f"the last entry says {last.position} of {size} bytes")
    try:
        _, header = next(scan_headers(read, last.position, size))
    except DamagedSegment as error:
        raise CorruptIndex("no batch begins where the last entry says") from error
    if header.last_offset != last.offset:
        raise CorruptIndex(f"the last entry says {last.offset}, not {header.last_offset}")
    if header.max_timestamp > indexes.times.last.timestamp:
        raise CorruptIndex("the time index does not reach as far as the offset index")


def _find(data: memoryview, offset: int, *, is_first: bool) -> tuple[int, int] | None:
    """Position and size of the first batch in `data` that ends at or after `offset`, if any.

    :param is_first: Whether the data is the segment's beginning. Otherwise an index says that its
        first batch ends at or before `offset`, and None is answered where that is not so.
    """
    at = 0
    while at + HEADER_SIZE <= len(data):
        base, length = _HEAD.unpack_from(data, at)
        (delta,) = _DELTA.unpack_from(data, at + _DELTA_AT)
        size = length + LOG_OVERHEAD
        if base + delta >= offset:
            return (at, size) if at or is_first or base + delta == offset else None
        if size < HEADER_SIZE:
            return None
        at += size
    return None


def _cut(
    read: Read,
    data: memoryview,
    start: int,
    first_size: int,
    end: int,
    *,
    max_bytes: int,
    min_one_batch: bool,
) -> list[Buffer]:
    """What of the bytes from `start` to `end` a read gives.

    :param data: As many of them as were read.
    :param first_size: Of the batch that begins there.
    """
    size = end - start
    if size <= 0:
        return []
    if size > max_bytes:
        if first_size <= max_bytes:
            size = max_bytes
        elif min_one_batch:
            size = first_size
        else:
            return []
    if len(data) == size:
        return [data]
    if len(data) < size:
        return [read(start, start + size)]
    return [data[:size]]
