"""Finds records by timestamp (KIP-33, KIP-734)."""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import BatchHeader, InvalidRecords
from fencepost.storage.log.segments import LogSegment


class TimestampAndOffset(NamedTuple):
    """A record's timestamp (ms), offset and leader epoch (-1: unknown)."""

    timestamp: int
    offset: int
    epoch: int


def first_at_or_after(
    segments: Sequence[LogSegment], timestamp: int, start_offset: int
) -> TimestampAndOffset | None:
    """The first record from `start_offset` on whose timestamp is at least `timestamp`."""
    for segment in segments:
        if segment.max_timestamp < timestamp:
            continue
        for buffer, header in segment.scan(offset=start_offset, timestamp=timestamp):
            if header.max_timestamp < timestamp:
                continue
            found = first_in(buffer, header, timestamp, start_offset)
            if found is not None:
                return found
    return None


def first_of_max_timestamp(segments: Sequence[LogSegment]) -> TimestampAndOffset | None:
    """The first record with the highest timestamp of all segments."""
    segment = max(segments, key=lambda each: each.max_timestamp)
    if segment.is_empty:
        return None
    buffer, header = next(segment.scan(timestamp=segment.max_timestamp))
    return first_in(buffer, header, header.max_timestamp, header.base_offset)


def first_in(
    buffer: Buffer, header: BatchHeader, timestamp: int, start_offset: int
) -> TimestampAndOffset | None:
    """The first record of a batch, from `start_offset` on, that is as late as `timestamp`."""
    # What a client wrote was not parsed when it was appended, and need not parse now.
    with suppress(InvalidRecords):
        for record in iter_records(buffer):
            if record.timestamp >= timestamp and record.offset >= start_offset:
                return TimestampAndOffset(
                    record.timestamp, record.offset, header.partition_leader_epoch
                )
    return None
