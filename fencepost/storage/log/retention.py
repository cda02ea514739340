"""Which of the oldest segments retention.* and, of tiered logs, local.retention.* delete."""

from collections.abc import Sequence

from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.segments import LogSegment, largest_timestamp


def expired_segments(
    segments: Sequence[LogSegment],
    config: LogConfig,
    *,
    now_ms: int,
    high_watermark: int,
    log_end_offset: int,
) -> int:
    """How many segments, from the oldest on, may be dropped.

    As in Kafka size goes first and time judges what is left. A segment that reaches to the high
    watermark or beyond stays, and so does an active one that is empty. Of a tiered log none: the
    tier deletes them.
    """
    if config.is_copied or not config.is_deleted:
        return 0
    deletable = 0
    for index, segment in enumerate(segments):
        is_active = index == len(segments) - 1
        end = log_end_offset if is_active else segments[index + 1].base_offset
        if high_watermark < end or (is_active and segment.is_empty):
            break
        deletable += 1
    by_size = _over_size(segments, config.retention_bytes, deletable)
    return _over_age(segments, config.retention_ms, now_ms, by_size, deletable)


def tiered_segments(segments: Sequence[LogSegment], tiered_until: int) -> int:
    """How many segments, from the oldest on, the tier has whole; never the active one.

    :param tiered_until: Exclusive end of what the tier has.
    """
    count = 0
    while count + 1 < len(segments) and segments[count + 1].base_offset <= tiered_until:
        count += 1
    return count


def local_expired_segments(
    segments: Sequence[LogSegment], config: LogConfig, tiered_until: int, now_ms: int | None
) -> int:
    """How many segments, from the oldest on, the tier has whole and local.retention.* lets go.

    :param tiered_until: As for `tiered_segments`.
    :param now_ms: None drops whatever the tier has.
    """
    deletable = tiered_segments(segments, tiered_until)
    if now_ms is None:
        return deletable
    by_size = _over_size(segments, config.effective_local_retention_bytes, deletable)
    return _over_age(segments, config.effective_local_retention_ms, now_ms, by_size, deletable)


def _over_size(segments: Sequence[LogSegment], retention_bytes: int, deletable: int) -> int:
    if retention_bytes < 0:
        return 0
    excess = sum(segment.size for segment in segments) - retention_bytes
    count = 0
    while count < deletable and excess - segments[count].size >= 0:
        excess -= segments[count].size
        count += 1
    return count


def _over_age(
    segments: Sequence[LogSegment], retention_ms: int, now_ms: int, count: int, deletable: int
) -> int:
    if retention_ms < 0:
        return count
    while count < deletable and now_ms - largest_timestamp(segments[count]) > retention_ms:
        count += 1
    return count
