"""Where batches are in a segment's ``.log``, by its sparse indexes; and whether these are right.

Nothing is kept for each batch: a lookup finds the last entry of an index that lies before what is
looked for, and goes on from there. A read for a consumer takes that part along and cuts it off, so
that it is one system call however the offset lies to the entries.

Nothing is changed here. Whoever learns that an index is wrong makes it anew and asks again.
"""

import struct
from typing import Final

from fencepost.protocol.buffers import Buffer
from fencepost.protocol.records import HEADER_SIZE, LOG_OVERHEAD
from fencepost.storage.files.failures import DamagedSegment
from fencepost.storage.files.indexes import SegmentIndexes
from fencepost.storage.files.walking import Read, headers
from fencepost.storage.formats.index_file import CorruptIndex
from fencepost.storage.formats.offset_index import OffsetIndex
from fencepost.storage.formats.time_index import TimestampOffset

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


def walk_to(read: Read, offset: int, *, begin: int, size: int) -> int:
    """Where the first batch begins that ends at or after `offset`; there is one.

    :param begin: Where an index says that a batch begins which does not end after `offset`.
    :raises DamagedSegment: Where that is not so, or batches are missing.
    """
    for position, header in headers(read, begin, size):
        if header.base_offset + header.last_offset_delta >= offset:
            if position == begin and header.last_offset > offset and begin:
                raise DamagedSegment(begin, "the index says that an earlier batch begins here")
            return position
    raise DamagedSegment(size, "batches are missing")


def is_as_late(read: Read, position: int, entry: TimestampOffset, *, size: int) -> bool:
    """Whether the batch at `position` is the one that an entry of the time index means."""
    _, header = next(headers(read, position, size), (0, None))
    return header is not None and (header.last_offset, header.max_timestamp) == (
        entry.offset,
        entry.timestamp,
    )


def check(indexes: SegmentIndexes, read: Read, *, size: int) -> None:
    """See that indexes are of this file, as far as their last entries tell.

    :raises CorruptIndex: When they are not.
    """
    last = indexes.offsets.last
    if not last.position:
        return
    if last.position >= size:
        raise CorruptIndex(f"the last entry says {last.position} of {size} bytes")
    try:
        _, header = next(headers(read, last.position, size))
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
