"""Appending as follower: batches are kept as their leader sent them."""

from collections.abc import Sequence

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.records import NO_TIMESTAMP, BatchHeader, CorruptBatch, crc_ok
from fencepost.storage.log.append import append_replicated
from fencepost.storage.log.append_result import AppendResult
from fencepost.storage.log.interface import UnexpectedAppendOffset
from fencepost.storage.log.log_state import LogState
from fencepost.storage.log.segments import LogSegment
from fencepost.storage.log.truncation import truncate_fully_and_start_at


def append_as_follower(
    log: LogState, records: Sequence[Buffer], *, now_ms: int, high_watermark: int
) -> AppendResult:
    """Append batches; a partial one at an end is left out. See `Log.append_as_follower`."""
    first_offset = log.end

    def add(buffer: Buffer, position: int, header: BatchHeader) -> LogSegment:
        _check(log, buffer, position, header, now_ms)
        return log.add_header(header, now_ms, buffer, position)

    count, max_timestamp = append_replicated(records, add)
    if log.producers.has_completed_transactions:
        log.producers.first_unstable_offset(high_watermark)
    return AppendResult(
        first_offset, log.end - 1, NO_TIMESTAMP, log.start, False, count, max_timestamp
    )


def _check(log: LogState, buffer: Buffer, position: int, header: BatchHeader, now_ms: int) -> None:
    """Check a batch of a leader, which may have the first offset that this log is to have.

    :raises CorruptBatch: When it fails its checksum.
    :raises UnexpectedAppendOffset: When it does not follow on the log.
    """
    if not crc_ok(buffer, position, header):
        raise CorruptBatch(f"record batch at offset {header.base_offset} fails its checksum")
    base = header.base_offset
    if base >= log.end:
        return
    if log.start == log.end <= header.last_offset:
        # The leader's log start lies within this batch: it comes whole.
        truncate_fully_and_start_at(log, base, now_ms=now_ms, log_start_offset=log.start)
        return
    raise UnexpectedAppendOffset(
        f"record batch from offset {base} where {log.name} goes on at {log.end}"
    )
