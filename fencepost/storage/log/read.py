"""Reading: the batches from an offset on."""

import struct
from typing import Final

from fencepost.storage.log.interface import OffsetMovedToTier, OffsetOutOfRange, ReadResult
from fencepost.storage.log.log_state import LogState

_BASE_OFFSET: Final = struct.Struct(">q")


def read(
    log: LogState, offset: int, *, max_bytes: int, upper_bound: int, min_one_batch: bool
) -> ReadResult:
    """The batches from the one that holds `offset` on, to the end of its segment at most.

    :raises OffsetOutOfRange: When the log has no such offset.
    :raises OffsetMovedToTier: When the tier alone has it.
    """
    if not log.start <= offset <= log.end:
        raise OffsetOutOfRange(
            f"offset {offset} of {log.name}, which holds {log.start} to {log.end}"
        )
    if offset < log.segments.first_offset:
        raise OffsetMovedToTier(
            f"offset {offset} of {log.name}, of which {log.segments.first_offset} is the "
            "first that is here"
        )
    if offset < upper_bound:
        for segment in log.segments.all[log.segments.index_of(offset) :]:
            buffers = segment.read(
                offset,
                max_bytes=max_bytes,
                upper_bound=upper_bound,
                min_one_batch=min_one_batch,
            )
            if buffers:
                (first_offset,) = _BASE_OFFSET.unpack_from(buffers[0])
                return ReadResult(tuple(buffers), sum(map(len, buffers)), first_offset)
            if segment.next_offset > offset:
                break
    return ReadResult((), 0, offset)


def size_between(log: LogState, offset: int, upper_bound: int) -> int:
    """Bytes of the batches from the one that holds `offset` to before `upper_bound`."""
    segments = log.segments.all[log.segments.index_of(offset) :]
    return sum(segment.size_between(offset, upper_bound) for segment in segments)
