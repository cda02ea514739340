"""Which of the oldest segments retention.ms and retention.bytes let go."""

from collections.abc import Sequence

from fencepost.storage.config import LogConfig
from fencepost.storage.segment import Segment


def expired_segments(
    segments: Sequence[Segment],
    config: LogConfig,
    *,
    now_ms: int,
    high_watermark: int,
    log_end_offset: int,
) -> int:
    """How many segments, from the oldest on, may be dropped.

    As in Kafka size goes first and time judges what is left. A segment that reaches to the high
    watermark or beyond stays, and so does an active one that is empty.
    """
    deletable = 0
    for index, segment in enumerate(segments):
        is_active = index == len(segments) - 1
        end = log_end_offset if is_active else segments[index + 1].base_offset
        if high_watermark < end or (is_active and not len(segment)):
            break
        deletable += 1
    by_size = _over_size(segments, config.retention_bytes, deletable)
    return _over_age(segments, config.retention_ms, now_ms, by_size, deletable)


def _over_size(segments: Sequence[Segment], retention_bytes: int, deletable: int) -> int:
    if retention_bytes < 0:
        return 0
    excess = sum(segment.size for segment in segments) - retention_bytes
    count = 0
    while count < deletable and excess - segments[count].size >= 0:
        excess -= segments[count].size
        count += 1
    return count


def _over_age(
    segments: Sequence[Segment], retention_ms: int, now_ms: int, count: int, deletable: int
) -> int:
    if retention_ms < 0:
        return count
    while count < deletable and now_ms - segments[count].largest_timestamp > retention_ms:
        count += 1
    return count
