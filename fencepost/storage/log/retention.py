"""The beginning of a log: it moves forward by retention, by request, and behind what is tiered.

Which segments go is decided in `cleanup`.
"""

from fencepost.storage.log import cleanup
from fencepost.storage.log.interface import OffsetOutOfRange, SegmentCopy
from fencepost.storage.log.log_state import LogState


def advance_log_start(log: LogState, offset: int) -> bool:
    """Move the log start forward, and drop the segments that lie before it.

    :returns: Whether it was before `offset`.
    :raises OffsetOutOfRange: When the log ends before `offset`.
    """
    if offset > log.end:
        raise OffsetOutOfRange(f"log start {offset} of {log.name}, which ends at {log.end}")
    if offset <= log.start:
        return False
    log.start = offset
    log.epochs.truncate_from_start(offset)
    log.segments.drop_before(offset)
    log.keys.drop_before(offset)
    return True


def delete_expired(log: LogState, now_ms: int, high_watermark: int) -> int:
    """Drop the oldest segments by retention.ms and retention.bytes; how many went."""
    log.keys.drop_unless(used=log.config.checks_keys)
    log.producers.first_unstable_offset(high_watermark)
    dropped = log.segments.drop_before(log.start)
    count = cleanup.expired_segments(
        log.segments.all,
        log.config,
        now_ms=now_ms,
        high_watermark=high_watermark,
        log_end_offset=log.end,
    )
    if count:
        if count == len(log.segments):
            log.roll(now_ms, log.end)
        advance_log_start(log, log.segments.all[count].base_offset)
        # The log start may have been there before, at the end of what was the active one.
        log.segments.drop_before(log.start)
    return dropped + count


def compact(log: LogState, now_ms: int, high_watermark: int, *, at_once: bool) -> int:
    """Clean the closed segments below the high watermark; how many records went."""
    if not log.config.is_compacted:
        return 0
    cleaned = cleanup.compact(
        log.segments,
        log.config,
        now_ms=now_ms,
        cleaned_until=log.cleaned_until,
        last_stable_offset=log.last_stable_offset(high_watermark),
        at_once=at_once,
        last_records=log.producers.last_records(),
        create=log.store.create_cleaned,
    )
    if cleaned is None:
        return 0
    log.keys.before_swap(cleaned.expired)
    log.segments.swap(cleaned.segments, cleaned.replaced)
    log.cleaned_until = cleaned.end
    return cleaned.removed_records


def segment_to_upload(log: LogState, offset: int, upper_bound: int) -> SegmentCopy | None:
    """The closed segment that holds `offset`, to be copied to the tier; None where it may not."""
    segments, index = log.segments.all, log.segments.index_of(offset)
    if offset < log.segments.first_offset or index + 1 >= len(segments):
        return None
    segment, following = segments[index], segments[index + 1]
    if following.base_offset > upper_bound:
        return None
    return SegmentCopy.of(segment, following, log.epochs.entries())


def delete_local(log: LogState, tiered_until: int, now_ms: int | None) -> int:
    """Drop segments of which the tier has everything; the log start stays. How many went."""
    segments = log.segments.all
    count = cleanup.local_expired_segments(segments, log.config, tiered_until, now_ms)
    return log.segments.drop_before(segments[count].base_offset)
