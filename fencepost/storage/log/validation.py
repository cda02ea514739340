"""A leader's validation of batches, in Kafka's order and with Kafka's errors.

The checks in order: is it one whole batch; is it small enough and undamaged; may a client write
such a batch; are its records acceptable. The header decides nearly all of it. Records are parsed
only where one of them may be at fault: keys on a compacted topic, timestamps out of bounds, or
`LogConfig.validate_records`.

What may be read is limited (`ReadBudget`). A batch beyond is MESSAGE_TOO_LARGE, after which Kafka's
producer splits it and sends its parts.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.compression import Codec, CompressionError
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.record_reader import ReadBudget, RecordOutline, RecordScan
from fencepost.protocol.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAX_RECORDS,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    InvalidRecords,
    Record,
    TooLargeToRead,
    batch_size,
    crc_ok,
    read_header,
)
from fencepost.storage.log.append_result import AppendRejected
from fencepost.storage.log.config import MAX_LONG, LogConfig

MAX_RECORD_ERRORS: Final = 10_000
"""Records at fault that one partition's answer names; the others are counted."""
_SHOWN: Final = 3

_Fault: TypeAlias = tuple[ErrorCode, str]


OpenedBatch: TypeAlias = tuple[Buffer, BatchHeader]
"""A batch that is whole, and its header."""


def open_batch(records: Buffer, *, allow_zstd: bool) -> OpenedBatch | AppendRejected:
    """The one batch that a request holds for a partition, and its header.

    Bytes behind it that begin no further batch are cut off, as Kafka does.
    """
    try:
        header = read_header(records)
    except CorruptBatch:
        return _refuse_first(records)
    size = header.batch_length + LOG_OVERHEAD
    if not allow_zstd and header.codec == Codec.ZSTD:
        return AppendRejected(error=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if size == len(records):
        return records, header
    try:
        more = batch_size(records, size)
    except CorruptBatch:
        return AppendRejected(error=ErrorCode.CORRUPT_MESSAGE)
    if more:
        return AppendRejected(error=ErrorCode.INVALID_RECORD)
    return memoryview(records)[:size], header


def open_batches(records: Buffer, *, allow_zstd: bool) -> list[OpenedBatch] | AppendRejected:
    """All batches that a request holds for a partition, one at least, and nothing else (KIP-27)."""
    found: list[OpenedBatch] = []
    at = 0
    view = memoryview(records)
    while True:
        try:
            header = read_header(view, at)
        except CorruptBatch:
            return _refuse_first(view[at:])
        if not allow_zstd and header.codec == Codec.ZSTD:
            return AppendRejected(error=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if header.size == len(records):
            return [(records, header)]
        found.append((view[at : at + header.size], header))
        at += header.size
        if at == len(records):
            return found


def _refuse_first(records: Buffer) -> AppendRejected:
    """Why the bytes do not begin with a batch of format v2."""
    try:
        size = batch_size(records)
    except CorruptBatch:  # Kafka says why only where it looks for transactions before
        return AppendRejected(error=ErrorCode.CORRUPT_MESSAGE)
    if not size or records[16] != MAGIC:
        # Nothing, a part of a batch, or one of an older format.
        return AppendRejected(error=ErrorCode.INVALID_RECORD)
    assert size < HEADER_SIZE, "a whole batch of format v2 has a readable header"
    return AppendRejected(error=ErrorCode.CORRUPT_MESSAGE)


def check_size_and_crc(
    records: Buffer, header: BatchHeader, config: LogConfig, log_start_offset: int
) -> AppendRejected | None:
    """The checks that come before the log is looked at."""
    if header.base_offset != 0 and config.refuses_base_offsets:
        return _invalid(log_start_offset)
    if header.batch_length + LOG_OVERHEAD > config.max_message_bytes:
        return AppendRejected(error=ErrorCode.MESSAGE_TOO_LARGE)
    if not crc_ok(records, 0, header):
        return AppendRejected(error=ErrorCode.CORRUPT_MESSAGE)
    return None


def check_client_batch(header: BatchHeader, log_start_offset: int) -> AppendRejected | None:
    """What only brokers may write, and headers that contradict themselves."""
    count = header.record_count
    if count <= 0 or header.last_offset_delta != count - 1 or header.is_control:
        return _invalid(log_start_offset)
    if count > MAX_RECORDS:
        return _too_large(f"The batch has {count} records, of at most {MAX_RECORDS}.")
    if header.has_producer_id and header.base_sequence < 0:
        return _invalid(log_start_offset)
    if header.codec > Codec.ZSTD:
        return _unreadable(log_start_offset)
    return None


def must_read_records(header: BatchHeader, config: LogConfig, now_ms: int) -> bool:
    """Whether a record may be at fault although the header is not."""
    if config.validate_records or config.is_compacted:
        return True
    if config.is_log_append_time:
        return header.is_log_append_time
    # One that claims a later time than allowed is read to say which; how early the others are,
    # the header does not tell.
    latest = now_ms + config.message_timestamp_after_max_ms
    if max(header.max_timestamp, header.base_timestamp) > latest:
        return True
    return config.message_timestamp_before_max_ms != MAX_LONG


def check_records(
    records: Buffer,
    config: LogConfig,
    *,
    name: str,
    now_ms: int,
    log_start_offset: int,
    budget: ReadBudget,
) -> int | AppendRejected:
    """The latest timestamp of the batch's records, if every one of them is acceptable.

    :param budget: What the request may still unpack to.
    """
    scan = RecordScan()
    earliest, latest = _accepted_timestamps(config, now_ms)
    errors: list[tuple[int, _Fault]] = []
    count = 0
    try:
        header, data = budget.unpack(records)
        if header.is_log_append_time:
            latest = NO_TIMESTAMP  # every record is judged
        for index, outline in scan.suspects(
            header, data, earliest=earliest, latest=latest, needs_key=config.is_compacted
        ):
            fault = _fault_of(outline, header, config, name, now_ms)
            if fault is not None:
                count += 1
                if count <= MAX_RECORD_ERRORS:
                    errors.append((index, fault))
    except InvalidRecords as error:
        return _refuse_unread(error, log_start_offset)
    return _rejected_records(errors, count, log_start_offset) if errors else scan.latest_timestamp


def _accepted_timestamps(config: LogConfig, now_ms: int) -> tuple[int, int]:
    """The least and the highest timestamp that clear a record (inclusive)."""
    if config.is_log_append_time:
        return NO_TIMESTAMP, MAX_LONG
    earliest = max(now_ms - config.message_timestamp_before_max_ms, NO_TIMESTAMP + 1)
    return earliest, now_ms + config.message_timestamp_after_max_ms


def read_records(
    records: Buffer, log_start_offset: int, budget: ReadBudget | None = None
) -> list[Record] | AppendRejected:
    """The records of a batch, or Kafka's answer where they cannot be read.

    :param budget: What the request may still unpack to; None where it has nothing else.
    """
    limits = ReadBudget() if budget is None else budget
    try:
        return list(limits.read(records))
    except InvalidRecords as error:
        return _refuse_unread(error, log_start_offset)


def _refuse_unread(error: InvalidRecords, log_start_offset: int) -> AppendRejected:
    if isinstance(error, TooLargeToRead):
        return _too_large(f"The records can't be read: {error}.")
    if isinstance(error.__cause__, CompressionError):
        return _unreadable(log_start_offset)
    return _invalid(log_start_offset)


def _fault_of(
    record: RecordOutline, header: BatchHeader, config: LogConfig, name: str, now_ms: int
) -> _Fault | None:
    if config.is_compacted and record.key_size < 0:
        return (
            ErrorCode.INVALID_RECORD,
            f"Compacted topic cannot accept message without key in topic partition {name}",
        )
    if not config.is_log_append_time and record.timestamp != NO_TIMESTAMP:
        earliest = now_ms - config.message_timestamp_before_max_ms
        latest = now_ms + config.message_timestamp_after_max_ms
        if earliest <= record.timestamp <= latest:
            return None
        return (
            ErrorCode.INVALID_TIMESTAMP,
            (
                f"Timestamp {record.timestamp} of message with offset {record.offset} is out of "
                f"range. The timestamp should be within [{earliest}, {latest}]"
            ),
        )
    if header.is_log_append_time:
        return (
            ErrorCode.INVALID_TIMESTAMP,
            (
                f"Invalid timestamp type in message DefaultRecord(offset={record.offset}, "
                f"timestamp={record.timestamp}, key={max(record.key_size, 0)} bytes, "
                f"value={max(record.value_size, 0)} bytes). Producer should not set timestamp type "
                "to LogAppendTime."
            ),
        )
    return None


def _rejected_records(
    errors: list[tuple[int, _Fault]], count: int, log_start_offset: int
) -> AppendRejected:
    record_errors = [(index, text) for index, (_, text) in errors]
    if any(code is ErrorCode.INVALID_TIMESTAMP for _, (code, _) in errors):
        return AppendRejected(
            error=ErrorCode.INVALID_TIMESTAMP,
            message="One or more records have been rejected due to invalid timestamp",
            record_errors=tuple(record_errors),
            log_start_offset=log_start_offset,
        )
    return invalid_records(record_errors, log_start_offset, count)


def invalid_records(
    errors: Sequence[tuple[int, str]], log_start_offset: int, count: int | None = None
) -> AppendRejected:
    """Kafka's answer where records are at fault: their indexes, and why.

    :param count: How many are at fault, where not all are among the errors.
    """
    count = len(errors) if count is None else count
    shown = ", ".join(
        f"RecordError(batchIndex={index}, message='{text}')" for index, text in errors[:_SHOWN]
    )
    return AppendRejected(
        error=ErrorCode.INVALID_RECORD,
        message=f"One or more records have been rejected due to {count} record errors in "
        f"total, and only showing the first three errors at most: [{shown}]",
        record_errors=tuple(errors),
        log_start_offset=log_start_offset,
    )


def _too_large(message: str) -> AppendRejected:
    return AppendRejected(error=ErrorCode.MESSAGE_TOO_LARGE, message=message)


def _invalid(log_start_offset: int) -> AppendRejected:
    return AppendRejected(error=ErrorCode.INVALID_RECORD, log_start_offset=log_start_offset)


def _unreadable(log_start_offset: int) -> AppendRejected:
    """What Kafka answers where a codec is unknown or decompression fails."""
    return AppendRejected(error=ErrorCode.UNKNOWN_SERVER_ERROR, log_start_offset=log_start_offset)
