"""Reads the records of a batch, and limits what a request unpacks to.

A batch of 10 kB can unpack to a million records. `iter_records` makes an object for each of them;
`RecordScan` checks them and makes one only for a record that may be at fault. `ReadBudget` is
shared by the batches of a request, so that many of them unpack to no more than one may.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from fencepost.protocol.byte_utils import Buffer, MalformedField, read_field, read_varint
from fencepost.protocol.compression import (
    MAX_DECOMPRESSED_BYTES,
    Codec,
    CompressionError,
    TooLargeUnpacked,
    decompress,
)
from fencepost.protocol.records import (
    HEADER_SIZE,
    MAX_RECORDS,
    MAX_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    InvalidRecords,
    Record,
    TooLargeToRead,
    read_header,
)

_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1


def unpack_records(
    buf: Buffer,
    pos: int = 0,
    *,
    limit: int = MAX_DECOMPRESSED_BYTES,
    max_records: int = MAX_RECORDS,
) -> tuple[BatchHeader, bytes]:
    """The header of the batch at `pos`, and its records in one piece, decompressed and not parsed.

    :param limit: How many bytes the records may have after decompression.
    :param max_records: How many records the header may count.
    :raises CorruptBatch: When no whole batch begins there.
    :raises InvalidRecords: When the records do not decompress.
    :raises TooLargeToRead: When they exceed a limit.
    """
    header = read_header(buf, pos)
    if header.record_count > max_records:
        raise TooLargeToRead(f"a batch of {header.record_count} records; {max_records} are allowed")
    body = memoryview(buf)[pos + HEADER_SIZE : pos + header.size]
    if header.record_count == 0:
        return header, b""
    try:
        return header, bytes(decompress(header.codec, body, limit=limit))
    except TooLargeUnpacked as error:
        raise TooLargeToRead(str(error)) from error
    except CompressionError as error:
        raise InvalidRecords(str(error)) from error


def iter_records(
    buf: Buffer,
    pos: int = 0,
    *,
    limit: int = MAX_DECOMPRESSED_BYTES,
    max_records: int = MAX_RECORDS,
) -> Iterator[Record]:
    """The records of the batch at `pos`, decompressed as they are first asked for.

    With LogAppendTime every record carries the batch's max timestamp.

    :param limit: How many bytes the records may have after decompression.
    :param max_records: How many records the header may count.
    :raises CorruptBatch: When no whole batch begins there.
    :raises InvalidRecords: When the records do not decompress or parse, or are more or fewer
        than the header says.
    :raises TooLargeToRead: When they exceed a limit.
    """
    yield from parse_records(*unpack_records(buf, pos, limit=limit, max_records=max_records))


def parse_records(header: BatchHeader, data: bytes) -> Iterator[Record]:
    """The records of a batch that `unpack_records` returned.

    :raises InvalidRecords: As `iter_records`.
    """
    append_time = header.max_timestamp if header.is_log_append_time else None
    at = 0
    try:
        for _ in range(header.record_count):
            at, record = _read_record(data, at, header, append_time)
            yield record
    except IndexError as error:
        raise InvalidRecords("records are cut short") from error
    except MalformedField as error:
        raise InvalidRecords(str(error)) from error
    if at != len(data):
        raise InvalidRecords("records remain after the last one that the header counts")


def _read_record(
    data: bytes, at: int, header: BatchHeader, append_time: int | None
) -> tuple[int, Record]:
    size, at = read_varint(data, at)
    end = at + size
    if size < 0 or end > len(data):
        raise InvalidRecords(f"record of {size} bytes where {len(data) - at} are left")
    delta, at = read_varint(data, at + 1)
    timestamp = header.base_timestamp + delta if append_time is None else append_time
    if not _INT64_MIN <= timestamp <= _INT64_MAX:
        raise InvalidRecords("timestamp of more than 64 bits")
    delta, at = read_varint(data, at)
    if not -MAX_SEQUENCE <= delta <= MAX_SEQUENCE:
        raise InvalidRecords(f"offset delta {delta}")
    key, at = read_field(data, at, end)
    value, at = read_field(data, at, end)
    count, at = read_varint(data, at)
    headers: tuple[tuple[str, bytes | None], ...] = ()
    if count:
        headers, at = _read_headers(data, at, end, count)
    if at != end:
        raise InvalidRecords("record has another size than its fields")
    return at, Record(header.base_offset + delta, timestamp, key, value, headers)


def _read_headers(
    data: bytes, at: int, end: int, count: int
) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    if not 0 < count <= end - at:
        raise InvalidRecords(f"invalid number of record headers {count}")
    headers = []
    for _ in range(count):
        name, at = read_field(data, at, end)
        if name is None:
            raise InvalidRecords("record header without a name")
        value, at = read_field(data, at, end)
        headers.append((name.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), at


class ReadBudget:
    """What the batches of one request may still unpack to.

    Bytes that were sent uncompressed are not counted: their request has a limit of its own.
    """

    __slots__ = ("max_bytes", "max_records")

    def __init__(self, times: int = 1) -> None:
        """A budget.

        :param times: How often each batch may be read. No batch has more than its single share.
        """
        self.max_bytes = times * MAX_DECOMPRESSED_BYTES
        self.max_records = times * MAX_RECORDS

    def unpack(self, batch: Buffer) -> tuple[BatchHeader, bytes]:
        """The header of a batch, and its records in one piece.

        A batch that can't be unpacked uses up all bytes: how far it got is not known.

        :raises InvalidRecords: When the records do not decompress.
        :raises TooLargeToRead: When more would come out than is left.
        """
        left, self.max_bytes = self.max_bytes, 0
        header, data = unpack_records(
            batch,
            limit=min(left, MAX_DECOMPRESSED_BYTES),
            max_records=min(self.max_records, MAX_RECORDS),
        )
        self.max_bytes = left if header.codec == Codec.NONE else left - len(data)
        self.max_records -= header.record_count
        return header, data

    def read(self, batch: Buffer) -> Iterator[Record]:
        """The records of a batch.

        :raises InvalidRecords: As `iter_records`.
        :raises TooLargeToRead: When more would come out than is left.
        """
        header, data = self.unpack(batch)
        return parse_records(header, data)


class RecordOutline(NamedTuple):
    """A record without its content; a size is -1 for null."""

    offset: int
    timestamp: int
    key_size: int
    value_size: int


class RecordScan:
    """The result of a scan of a batch, complete once `suspects` is exhausted."""

    __slots__ = ("is_sequential", "latest_timestamp")

    def __init__(self) -> None:
        self.latest_timestamp = NO_TIMESTAMP
        """The highest timestamp of a record."""
        self.is_sequential = True
        """Whether the offset deltas count from 0."""

    def suspects(
        self, header: BatchHeader, data: bytes, *, earliest: int, latest: int, needs_key: bool
    ) -> Iterator[tuple[int, RecordOutline]]:
        """Parse all records; yields index and outline of each that the bounds do not clear.

        With LogAppendTime every record has the batch's max timestamp.

        :param data: All the records, decompressed.
        :param earliest: The least timestamp that clears a record, `latest` the highest
            (inclusive).
        :param needs_key: Whether a null key makes a record suspect.
        :raises InvalidRecords: When the records do not parse, or are more or fewer than the header
            says.
        """
        try:
            yield from self._suspects(header, data, earliest, latest, needs_key)
        except IndexError as error:
            raise InvalidRecords("records are cut short") from error
        except MalformedField as error:
            raise InvalidRecords(str(error)) from error

    def _suspects(  # noqa: C901, PLR0912, PLR0915  # a call for each field would double its time
        self, header: BatchHeader, data: bytes, earliest: int, latest: int, needs_key: bool
    ) -> Iterator[tuple[int, RecordOutline]]:
        size, base, at = len(data), header.base_timestamp, 0
        append_time = header.max_timestamp if header.is_log_append_time else None
        highest, sequential = _INT64_MIN, True
        for index in range(header.record_count):
            raw = data[at]
            at += 1
            if raw > 127:
                length, at = read_varint(data, at - 1)
                end = at + length
            else:
                length = -1 if raw & 1 else raw >> 1
                end = at + length
            if length < 0 or end > size:
                raise InvalidRecords(f"record of {length} bytes where {size - at} are left")
            raw = data[at + 1]
            at += 2
            if raw > 127:
                delta, at = read_varint(data, at - 1)
                timestamp = base + delta
            else:
                timestamp = base + (-(raw >> 1) - 1 if raw & 1 else raw >> 1)
            if append_time is not None:
                timestamp = append_time
            delta = data[at]
            at += 1
            if delta > 127:
                delta, at = read_varint(data, at - 1)
            else:
                delta = -(delta >> 1) - 1 if delta & 1 else delta >> 1
            if delta != index:
                sequential = False
                if not -MAX_SEQUENCE <= delta <= MAX_SEQUENCE:
                    raise InvalidRecords(f"offset delta {delta}")
            raw = data[at]
            at += 1
            if raw > 127:
                key_size, at = read_varint(data, at - 1)
            else:
                key_size = -1 if raw & 1 else raw >> 1
            if key_size > 0:
                at += key_size
                if at > end:
                    raise InvalidRecords("field reaches beyond its record")
            raw = data[at]
            at += 1
            if raw > 127:
                value_size, at = read_varint(data, at - 1)
            else:
                value_size = -1 if raw & 1 else raw >> 1
            if value_size > 0:
                at += value_size
                if at > end:
                    raise InvalidRecords("field reaches beyond its record")
            raw = data[at]
            at += 1
            if raw:
                at = _skip_headers(data, at - 1, end)
            if at != end:
                raise InvalidRecords("record has another size than its fields")
            highest = max(highest, timestamp)
            if not earliest <= timestamp <= latest or (needs_key and key_size < 0):
                if not _INT64_MIN <= timestamp <= _INT64_MAX:
                    raise InvalidRecords("timestamp of more than 64 bits")
                outline = RecordOutline(
                    header.base_offset + delta, timestamp, max(key_size, -1), max(value_size, -1)
                )
                yield index, outline
        if at != size:
            raise InvalidRecords("records remain after the last one that the header counts")
        if header.record_count:
            self.latest_timestamp = highest
        self.is_sequential = sequential


def _skip_headers(data: bytes, at: int, end: int) -> int:
    """Where a record's headers end, whose number stands at a position."""
    count, at = read_varint(data, at)
    if not 0 < count <= end - at:
        raise InvalidRecords(f"invalid number of record headers {count}")
    for _ in range(count):
        name, at = read_field(data, at, end)
        if name is None:
            raise InvalidRecords("record header without a name")
        _, at = read_field(data, at, end)
    return at
