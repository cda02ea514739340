"""The batches of an append, before they are in the log.

A leader checks a produced batch and converts it where a config asks for it; the result is ready to
be stamped. A follower appends whole buffers, cut only where a segment ends.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.compression import CODECS_BY_NAME, Codec
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.record_reader import ReadBudget
from fencepost.protocol.records import (
    LOG_APPEND_TIME_FLAG,
    NO_TIMESTAMP,
    BatchHeader,
    build_batch,
    in_writable,
    iter_headers,
    read_header,
    stamp_timestamps,
)
from fencepost.storage.log.append_result import AppendOrigin, AppendRejected
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.segments import LogSegment
from fencepost.storage.log.validation import (
    check_client_batch,
    check_records,
    check_size_and_crc,
    must_read_records,
    open_batch,
    read_records,
)

_CLIENT: Final = AppendOrigin.CLIENT
_COORDINATOR: Final = AppendOrigin.COORDINATOR
_new_tuple: Final = tuple.__new__


class PreparedBatch(NamedTuple):
    """A batch that may be appended, and its header."""

    records: bytearray | memoryview
    header: BatchHeader


def prepare_batch(
    records: Buffer,
    config: LogConfig,
    *,
    name: str,
    now_ms: int,
    origin: AppendOrigin,
    allow_zstd: bool,
    log_start_offset: int,
    budget: ReadBudget | None = None,
) -> PreparedBatch | AppendRejected:
    """Check the one batch of a request against a log's config, and make it what the log keeps.

    A coordinator's batch was built here: it is whole, the only one and undamaged.

    :param name: Topic and partition, for messages.
    :param log_start_offset: For the answers that state it.
    :param budget: What the request may still unpack to; None where it has nothing else.
    """
    if origin is _COORDINATOR:
        if len(records) > config.max_message_bytes:
            return AppendRejected(error=ErrorCode.MESSAGE_TOO_LARGE)
        batch, header = records, read_header(records)
    else:
        opened = open_batch(records, allow_zstd=allow_zstd)
        if isinstance(opened, AppendRejected):
            return opened
        batch, header = opened
        rejected = check_size_and_crc(batch, header, config, log_start_offset)
        if rejected is not None:
            return rejected
    return prepare_checked_batch(
        batch,
        header,
        config,
        name=name,
        now_ms=now_ms,
        origin=origin,
        log_start_offset=log_start_offset,
        budget=budget,
    )


def prepare_checked_batch(
    batch: Buffer,
    header: BatchHeader,
    config: LogConfig,
    *,
    name: str,
    now_ms: int,
    origin: AppendOrigin,
    log_start_offset: int,
    budget: ReadBudget | None = None,
) -> PreparedBatch | AppendRejected:
    """What `prepare_batch` does with a batch that is whole, small enough and undamaged."""
    latest = (
        _check_records(batch, header, config, name, now_ms, log_start_offset, budget)
        if origin is _CLIENT
        else None
    )
    if isinstance(latest, AppendRejected):
        return latest
    codec = _target_codec(config, header)
    kept = in_writable(batch)
    if codec != header.codec:
        # What was checked has been counted.
        uncounted = budget if latest is None else None
        converted = _convert(kept, header, config, codec, now_ms, log_start_offset, uncounted)
        if isinstance(converted, AppendRejected):
            return converted
        kept, header = converted
    elif _needs_timestamps(header, config, latest):
        header = _restamp(kept, header, config, latest, now_ms)
    if len(kept) > config.segment_bytes:
        return AppendRejected(error=ErrorCode.RECORD_LIST_TOO_LARGE)
    return _new_tuple(PreparedBatch, (kept, header))


def _check_records(
    batch: Buffer,
    header: BatchHeader,
    config: LogConfig,
    name: str,
    now_ms: int,
    log_start_offset: int,
    budget: ReadBudget | None,
) -> int | AppendRejected | None:
    """The latest timestamp of a client's records; None where the header was enough to read."""
    rejected = check_client_batch(header, log_start_offset)
    if rejected is not None:
        return rejected
    if not must_read_records(header, config, now_ms):
        return None
    return check_records(
        batch,
        config,
        name=name,
        now_ms=now_ms,
        log_start_offset=log_start_offset,
        budget=budget or ReadBudget(),
    )


def _target_codec(config: LogConfig, header: BatchHeader) -> int:
    # Transaction markers are kept as the coordinator wrote them.
    if config.compression_type == "producer" or header.is_control:
        return header.codec
    return CODECS_BY_NAME[config.compression_type]


def _convert(
    batch: bytearray | memoryview,
    header: BatchHeader,
    config: LogConfig,
    codec: int,
    now_ms: int,
    log_start_offset: int,
    budget: ReadBudget | None,
) -> PreparedBatch | AppendRejected:
    """The batch, compressed again with the codec that ``compression.type`` asks for."""
    parsed = read_records(batch, log_start_offset, budget)
    if isinstance(parsed, AppendRejected):
        return parsed
    if not parsed:
        return PreparedBatch(batch, header)
    # The records count from 0 again, whatever deltas the producer gave them.
    renumbered = [record._replace(offset=index) for index, record in enumerate(parsed)]
    rewritten = build_batch(
        renumbered,
        codec=codec,
        level=_level(config, codec),
        log_append_time_ms=now_ms if config.is_log_append_time else None,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
    )
    if len(rewritten) > config.max_message_bytes:
        return AppendRejected(error=ErrorCode.MESSAGE_TOO_LARGE)
    return PreparedBatch(rewritten, read_header(rewritten))


def _level(config: LogConfig, codec: int) -> int | None:
    match codec:
        case Codec.GZIP:
            return config.compression_gzip_level
        case Codec.LZ4:
            return config.compression_lz4_level
        case Codec.ZSTD:
            return config.compression_zstd_level
        case _:
            return None


def _needs_timestamps(header: BatchHeader, config: LogConfig, latest: int | None) -> bool:
    if config.is_log_append_time or header.attributes & LOG_APPEND_TIME_FLAG:
        return True
    return latest is not None and header.max_timestamp != latest


def _restamp(
    batch: bytearray | memoryview,
    header: BatchHeader,
    config: LogConfig,
    latest: int | None,
    now_ms: int,
) -> BatchHeader:
    """Timestamp type and max timestamp as the topic's config and the records say.

    :param latest: The latest timestamp of the records, None where they were not read.
    """
    if config.is_log_append_time:
        latest = now_ms
    elif latest is None:
        latest = header.max_timestamp
    stamp_timestamps(
        batch, 0, header, log_append_time=config.is_log_append_time, max_timestamp=latest
    )
    return read_header(batch)


_Add: TypeAlias = Callable[[Buffer, int, BatchHeader], LogSegment]


def append_replicated(records: Sequence[Buffer], add: _Add) -> tuple[int, int]:
    """Append the batches of a leader; returns how many records and their largest timestamp.

    :param add: Checks the batch at a position of a buffer and adds its header to a segment, which
        it returns. This function then appends the bytes.
    """
    count, max_timestamp = 0, NO_TIMESTAMP
    for buffer in records:
        for header in _append_buffer(buffer, add):
            count += header.record_count
            max_timestamp = max(max_timestamp, header.max_timestamp)
    return count, max_timestamp


def _append_buffer(buffer: Buffer, add: _Add) -> list[BatchHeader]:
    """Append one buffer whole where its batches go to one segment, and cut it where not."""
    added: list[BatchHeader] = []
    start = end = 0
    segment: LogSegment | None = None
    try:
        for position, header in iter_headers(buffer):
            target = add(buffer, position, header)
            if segment is not None and target is not segment:
                segment.append_bytes(_part(buffer, start, end))
                start = position
            segment = target
            end = position + header.size
            added.append(header)
    finally:
        # Also when a later batch is broken: a header that was added must get its bytes.
        if segment is not None:
            segment.append_bytes(_part(buffer, start, end))
    return added


def _part(buffer: Buffer, start: int, end: int) -> Buffer:
    """The bytes from `start` to `end`: the buffer itself where that is all of it."""
    if start == 0 and end == len(buffer):
        return buffer
    return memoryview(buffer)[start:end]
