"""Scans the batches of a file, in large reads."""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from fencepost.protocol.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    BatchHeader,
    CorruptBatch,
    peek_header,
)
from fencepost.storage.files.file_system import DamagedSegment

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
