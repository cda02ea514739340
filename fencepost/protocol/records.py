"""Record batches (message format v2) as views on the bytes that carry them.

A batch is 61 bytes of header and then its records, which may be compressed as one block. Produce
and fetch read the header alone; `record_reader` parses records where their content is needed.

The checksum covers everything from the attributes on. Base offset and leader epoch lie before
them: a leader stamps both in place without touching the checksum.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from fencepost.protocol.byte_utils import Buffer, crc32c, write_field, write_varint
from fencepost.protocol.compression import Codec, compress

MAGIC: Final = 2
HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
"""Bytes of base offset and batch length, which the batch length does not count."""

MAX_RECORDS: Final = 1_000_000
"""Default limit of the records that are read of one batch."""

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1
MAX_SEQUENCE: Final = 2**31 - 1

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_STAMP: Final = struct.Struct(">qii")
_CRC: Final = struct.Struct(">I")
_ATTRIBUTES: Final = struct.Struct(">h")
_MAX_TIMESTAMP: Final = struct.Struct(">q")
_LENGTH_AT: Final = 8
_CRC_AT: Final = 17
_CHECKSUMMED_AT: Final = 21
_MAX_TIMESTAMP_AT: Final = 35
_MAGIC_AT: Final = 16
_MIN_RECORD_SIZE: Final = 14
_LENGTH_AND_MAGIC: Final = struct.Struct(">i4xb")
_INT32: Final = struct.Struct(">i")
_new_tuple: Final = tuple.__new__


class CorruptBatch(ValueError):
    """The bytes are no record batch: cut short, of an impossible size, or of another magic."""


class InvalidRecords(CorruptBatch):
    """The batch's header is sound, but the records behind it do not parse as it says."""


class TooLargeToRead(InvalidRecords):
    """The records are more, or unpack to more bytes, than may be read."""


class BatchHeader(NamedTuple):
    """The 61 bytes before the records, in their order on the wire.

    Offsets are inclusive, timestamps are ms since the epoch. A tuple and no dataclass, because
    one is made for every batch appended.
    """

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        """Offset of the last record (inclusive), also where compaction has removed it."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the last one."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record; it wraps to 0 after 2^31-1. -1 without one."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def codec(self) -> int:
        """Number of the compression codec; 5 to 7 are no codec."""
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Whether every record's timestamp is the batch's max timestamp."""
        return self.attributes & LOG_APPEND_TIME_FLAG != 0

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        """Whether the batch holds control records (transaction markers)."""
        return self.attributes & CONTROL_FLAG != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop the batch's tombstones (KIP-534), if it has set that."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None

    @property
    def has_producer_id(self) -> bool:
        """Whether an idempotent or transactional producer wrote it."""
        return self.producer_id > NO_PRODUCER_ID

    def stamped(self, base_offset: int, leader_epoch: int) -> "BatchHeader":
        """The header as `stamp` leaves it; `_replace` would take three times as long."""
        return _new_tuple(BatchHeader, (base_offset, self[1], leader_epoch, *self[3:]))


class Record(NamedTuple):
    """One record. Header names are UTF-8, with surrogates where a client sent other bytes."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def increment_sequence(sequence: int, increment: int) -> int:
    """`sequence` + `increment`, wrapping to 0 after 2^31-1."""
    return (sequence + increment) & MAX_SEQUENCE


def decrement_sequence(sequence: int, decrement: int) -> int:
    """`sequence` - `decrement`, wrapping to 2^31-1 before 0."""
    return (sequence - decrement) & MAX_SEQUENCE


def batch_size(buf: Buffer, pos: int = 0) -> int:
    """Bytes of the batch at `pos`, or 0 where the buffer ends before it is complete.

    :raises CorruptBatch: When the size is impossible or no message format has that magic. Older
        formats (magic 0 and 1) are measured too, so that a caller can say what it refuses.
    """
    left = len(buf) - pos
    if left < LOG_OVERHEAD:
        return 0
    if left > _MAGIC_AT:
        length, magic = _LENGTH_AND_MAGIC.unpack_from(buf, pos + _LENGTH_AT)
    else:
        (length,), magic = _INT32.unpack_from(buf, pos + _LENGTH_AT), None
    if length < _MIN_RECORD_SIZE:
        raise CorruptBatch(
            f"Record size {length} is less than the minimum record overhead ({_MIN_RECORD_SIZE})"
        )
    if magic is None:
        return 0
    if not 0 <= magic <= MAGIC:
        raise CorruptBatch(f"Invalid magic found in record: {magic}")
    size: int = length + LOG_OVERHEAD
    return size if size <= left else 0


def peek_header(buf: Buffer, pos: int = 0) -> BatchHeader:
    """The header of the batch that begins at `pos`, whether or not the buffer has all of it.

    :raises CorruptBatch: When no header of format v2 stands there.
    """
    try:
        header = _new_tuple(BatchHeader, _HEADER.unpack_from(buf, pos))
    except struct.error as error:
        raise CorruptBatch("record batch header is cut short") from error
    if header.magic != MAGIC:
        raise CorruptBatch(f"Invalid magic found in record: {header.magic}")
    size = header.batch_length + LOG_OVERHEAD
    if size < HEADER_SIZE:
        raise CorruptBatch(f"Record batch is corrupt (the size {size} is smaller than its header)")
    return header


def read_header(buf: Buffer, pos: int = 0) -> BatchHeader:
    """The header of the complete batch that begins at `pos`.

    :raises CorruptBatch: When no whole batch of format v2 begins there.
    """
    header = peek_header(buf, pos)
    if pos + header.batch_length + LOG_OVERHEAD > len(buf):
        raise CorruptBatch("record batch is cut short")
    return header


def iter_headers(buf: Buffer, pos: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch; a partial one at the end is left out.

    :raises CorruptBatch: At the first batch that is broken rather than incomplete.
    """
    end = len(buf)
    while size := batch_size(buf, pos):
        yield pos, peek_header(buf, pos)
        pos += size
        if pos == end:
            return


def checksum(buf: Buffer, pos: int, header: BatchHeader) -> int:
    """CRC-32C of the batch at `pos`, computed from its bytes."""
    return crc32c(memoryview(buf)[pos + _CHECKSUMMED_AT : pos + header.size])


def crc_ok(buf: Buffer, pos: int, header: BatchHeader) -> bool:
    """Whether the batch's bytes still have the checksum that its header states."""
    return checksum(buf, pos, header) == header.crc


def stamp(
    buf: bytearray | memoryview,
    pos: int,
    header: BatchHeader,
    *,
    base_offset: int,
    leader_epoch: int,
) -> None:
    """Write base offset and leader epoch into the batch at `pos` (outside of the checksum)."""
    _STAMP.pack_into(buf, pos, base_offset, header.batch_length, leader_epoch)


def stamp_timestamps(
    buf: bytearray | memoryview,
    pos: int,
    header: BatchHeader,
    *,
    log_append_time: bool,
    max_timestamp: int,
) -> None:
    """Write the timestamp type and the max timestamp into the batch, and its new checksum."""
    attributes = header.attributes & ~LOG_APPEND_TIME_FLAG
    if log_append_time:
        attributes |= LOG_APPEND_TIME_FLAG
    _ATTRIBUTES.pack_into(buf, pos + _CHECKSUMMED_AT, attributes)
    _MAX_TIMESTAMP.pack_into(buf, pos + _MAX_TIMESTAMP_AT, max_timestamp)
    _CRC.pack_into(buf, pos + _CRC_AT, checksum(buf, pos, header))


def in_writable(buf: Buffer) -> bytearray | memoryview:
    """`buf` itself where it can be written to, otherwise a copy that can."""
    if isinstance(buf, bytes) or (isinstance(buf, memoryview) and buf.readonly):
        return bytearray(buf)
    return buf


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    last_offset: int | None = None,
    leader_epoch: int = NO_LEADER_EPOCH,
    codec: int = Codec.NONE,
    level: int | None = None,
    log_append_time_ms: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    delete_horizon_ms: int | None = None,
    max_timestamp: int = NO_TIMESTAMP,
) -> bytearray:
    """A whole batch with its checksum, in a buffer that can be stamped.

    :param records: In the order of their offsets, all of them from `base_offset` on. A producer
        numbers its records from 0.
    :param last_offset: Inclusive; None is that of the last record. Compaction states it where
        it has removed the last one.
    :param log_append_time_ms: Makes the batch LogAppendTime with this as its max timestamp, which
        readers take for every record's; the records' own stay beneath, as Kafka leaves them.
    :param max_timestamp: Of a batch without records only; otherwise it is the records' own.
    """
    attributes = codec
    max_timestamp = max((record.timestamp for record in records), default=max_timestamp)
    if log_append_time_ms is not None:
        attributes |= LOG_APPEND_TIME_FLAG
        max_timestamp = log_append_time_ms
    attributes |= TRANSACTIONAL_FLAG * transactional | CONTROL_FLAG * control
    base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_FLAG
        base_timestamp = delete_horizon_ms
    body = bytearray()
    for record in records:
        _write_record(body, record, base_offset, record.timestamp - base_timestamp)
    packed = compress(codec, body, level=level) if records else b""
    if last_offset is None:
        last_offset = records[-1].offset if records else base_offset
    batch = bytearray(HEADER_SIZE)
    _HEADER.pack_into(
        batch,
        0,
        base_offset,
        HEADER_SIZE - LOG_OVERHEAD + len(packed),
        leader_epoch,
        MAGIC,
        0,
        attributes,
        last_offset - base_offset,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    batch += packed
    write_checksum(batch)
    return batch


def write_checksum(batch: bytearray) -> None:
    """Write the checksum of a whole batch into its header."""
    _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[_CHECKSUMMED_AT:]))


def build_header(
    packed: Buffer, *, count: int, base_timestamp: int, max_timestamp: int, codec: int = Codec.NONE
) -> bytearray:
    """The header, at base offset 0, of records that are encoded already, in a producer's batch.

    :param packed: All the records, as `codec` has compressed them.
    :param base_timestamp: What the records' timestamps are deltas of.
    """
    header = bytearray(HEADER_SIZE)
    _HEADER.pack_into(
        header,
        0,
        0,
        HEADER_SIZE - LOG_OVERHEAD + len(packed),
        NO_LEADER_EPOCH,
        MAGIC,
        0,
        codec,
        count - 1,
        base_timestamp,
        max_timestamp,
        NO_PRODUCER_ID,
        NO_PRODUCER_EPOCH,
        NO_SEQUENCE,
        count,
    )
    crc = crc32c(packed, crc32c(memoryview(header)[_CHECKSUMMED_AT:]))
    _CRC.pack_into(header, _CRC_AT, crc)
    return header


def _write_record(out: bytearray, record: Record, base_offset: int, timestamp_delta: int) -> None:
    body = bytearray(1)
    write_varint(body, timestamp_delta)
    write_varint(body, record.offset - base_offset)
    write_field(body, record.key)
    write_field(body, record.value)
    write_varint(body, len(record.headers))
    for name, value in record.headers:
        write_field(body, name.encode("utf-8", "surrogateescape"))
        write_field(body, value)
    write_varint(out, len(body))
    out += body
