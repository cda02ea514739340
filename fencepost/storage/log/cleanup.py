"""What ``cleanup.policy`` removes from a log: the oldest segments (delete), or of each key all
records but the last (compact). Of tiered logs, local.retention.* delete local segments.

A round of compaction looks at closed segments below the high watermark. It learns the last offset
of every key in the dirty ones, those after the last round's end, and then rewrites all of them,
clean ones too, without the records that a later one replaces. Offsets never change, and the last
record always stays readable as an offset: the last batch of a round, and the last one of each
active producer, stay as a header when all of their records go.

A record without a value (a tombstone) stays for delete.retention.ms after the round that first
kept it; the batch says until when in its base timestamp (KIP-534). Transaction markers stay.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.compression import Codec
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import (
    MAX_SEQUENCE,
    BatchHeader,
    InvalidRecords,
    Record,
    build_batch,
    read_header,
)
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.producer_state import ProducerStateManager
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


class Cleaned(NamedTuple):
    """The result of a round.

    :ivar segments: They replace the `replaced` oldest segments.
    :ivar expired: Keys of which no record is left, and the offset of the tombstone that was their
        last record.
    :ivar end: Where the round ended (exclusive).
    :ivar removed_records: How many records it dropped.
    """

    segments: list[LogSegment]
    replaced: int
    expired: dict[bytes, int]
    end: int
    removed_records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cleanable:
    """The segments of a round.

    :ivar segments: The closed segments, oldest first, up to the first that may not be cleaned.
    :ivar dirty: Index of the first that no round has cleaned.
    :ivar end: Offset after the last of them (exclusive).
    """

    segments: Sequence[LogSegment]
    dirty: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    latest: Mapping[bytes, int]
    expired: dict[bytes, int]
    keep_headers_of: Container[int]
    now_ms: int
    delete_retention_ms: int


def compact(
    segments: Sequence[LogSegment],
    config: LogConfig,
    *,
    now_ms: int,
    cleaned_until: int,
    high_watermark: int,
    at_once: bool,
    producers: ProducerStateManager,
    create: Callable[[LogSegment], LogSegment],
) -> Cleaned | None:
    """Clean the closed segments of a log; None where nothing is dirty enough.

    Nothing at or after the high watermark or the last stable offset is cleaned.

    :param segments: All of the log's, the active one last. They are not changed.
    :param cleaned_until: Where the last round ended (exclusive).
    :param at_once: Whether anything dirty is dirty enough.
    :param producers: Of each the batch with the last record stays, as a header at least.
    :param create: Makes an empty segment that begins where the given one does.
    """
    unstable = producers.first_unstable_offset
    cleanable = _find_cleanable(
        segments,
        config,
        now_ms=now_ms,
        cleaned_until=cleaned_until,
        upper_bound=high_watermark if unstable is None else min(high_watermark, unstable),
        at_once=at_once,
    )
    if cleanable is None:
        return None
    before = sum(segment.records for segment in cleanable.segments)
    expired: dict[bytes, int] = {}
    cleaned = _clean(
        cleanable,
        _Round(
            latest=_latest_offsets(cleanable.segments[cleanable.dirty :]),
            expired=expired,
            keep_headers_of={*producers.last_offsets().values(), _last_offset(cleanable.segments)},
            now_ms=now_ms,
            delete_retention_ms=config.delete_retention_ms,
        ),
        config.segment_bytes,
        create,
    )
    after = sum(segment.records for segment in cleaned)
    return Cleaned(cleaned, len(cleanable.segments), expired, cleanable.end, before - after)


def _find_cleanable(
    segments: Sequence[LogSegment],
    config: LogConfig,
    *,
    now_ms: int,
    cleaned_until: int,
    upper_bound: int,
    at_once: bool,
) -> _Cleanable | None:
    count = dirty = 0
    for segment, following in pairwise(segments):
        if following.base_offset > upper_bound:
            break
        if segment.base_offset < cleaned_until:
            dirty = count + 1
        elif _lags(segment, config.min_compaction_lag_ms, now_ms):
            break
        count += 1
    if count == dirty:
        return None
    dirty_bytes = sum(segment.size for segment in segments[dirty:count])
    all_bytes = sum(segment.size for segment in segments[:count])
    ratio = dirty_bytes / all_bytes if all_bytes else 0.0
    overdue = dirty_bytes > 0 and _is_overdue(segments[dirty], config, now_ms)
    if ratio <= config.min_cleanable_dirty_ratio and not overdue and not at_once:
        return None
    return _Cleanable(segments=segments[:count], dirty=dirty, end=segments[count].base_offset)


def _lags(segment: LogSegment, lag_ms: int, now_ms: int) -> bool:
    return lag_ms > 0 and largest_timestamp(segment) > now_ms - lag_ms


def _is_overdue(segment: LogSegment, config: LogConfig, now_ms: int) -> bool:
    first = segment.rolling_timestamp
    if first is None or first < 0:
        first = segment.created_ms
    return now_ms - first > config.max_compaction_lag_ms


def _clean(
    cleanable: _Cleanable,
    this_round: _Round,
    segment_bytes: int,
    create: Callable[[LogSegment], LogSegment],
) -> list[LogSegment]:
    cleaned = [
        _clean_group(group, this_round, create)
        for group in _groups(cleanable.segments, segment_bytes)
    ]
    # The first stays without a batch too: the log begins with it.
    return cleaned[:1] + [segment for segment in cleaned[1:] if not segment.is_empty]


def _last_offset(segments: Sequence[LogSegment]) -> int:
    return max(segment.next_offset for segment in segments) - 1


def _latest_offsets(segments: Sequence[LogSegment]) -> dict[bytes, int]:
    return {
        record.key: record.offset
        for segment in segments
        for buffer, header in segment.scan()
        if not header.is_control
        for record in _records(buffer) or ()
        if record.key is not None
    }


def _records(buffer: Buffer) -> list[Record] | None:
    """None where they do not parse: such a batch is from before the log was compacted."""
    try:
        return list(iter_records(buffer))
    except InvalidRecords:
        return None


def _groups(segments: Sequence[LogSegment], max_bytes: int) -> Iterator[list[LogSegment]]:
    """Neighbours that fit into one segment together, before they are cleaned."""
    group: list[LogSegment] = []
    size = 0
    for segment in segments:
        fits = size + segment.size <= max_bytes and (
            not group or segment.next_offset - group[0].base_offset <= MAX_SEQUENCE
        )
        if group and not fits:
            yield group
            group, size = [], 0
        group.append(segment)
        size += segment.size
    if group:
        yield group


def _clean_group(
    group: Sequence[LogSegment], this_round: _Round, create: Callable[[LogSegment], LogSegment]
) -> LogSegment:
    first, last = group[0], group[-1]
    cleaned = create(first)
    for segment in group:
        for buffer, header in segment.scan():
            kept = _clean_batch(buffer, header, this_round)
            if kept is not None:
                cleaned.append(kept, read_header(kept), last.last_modified_ms)
    cleaned.last_modified_ms = last.last_modified_ms
    return cleaned


def _clean_batch(buffer: Buffer, header: BatchHeader, this_round: _Round) -> Buffer | None:
    """The batch, what is left of it, its bare header, or nothing."""
    records = _records(buffer)
    if header.is_control or records is None:
        return buffer
    horizon = header.delete_horizon_ms
    tombstones_expired = horizon is not None and this_round.now_ms >= horizon
    kept = [r for r in records if _stays(r, this_round, tombstones_expired=tombstones_expired)]
    if not kept:
        return _rebuilt(header, ()) if header.last_offset in this_round.keep_headers_of else None
    if horizon is None and any(record.value is None for record in kept):
        horizon = this_round.now_ms + this_round.delete_retention_ms
    if len(kept) == header.record_count and horizon == header.delete_horizon_ms:
        return buffer
    return _rebuilt(header, kept, horizon)


def _stays(record: Record, this_round: _Round, *, tombstones_expired: bool) -> bool:
    if record.key is None or record.offset < this_round.latest.get(record.key, -1):
        return False
    if record.value is None and tombstones_expired:
        this_round.expired[record.key] = record.offset
        return False
    return True


def _rebuilt(
    header: BatchHeader, records: Sequence[Record], horizon: int | None = None
) -> bytearray:
    """The batch with these of its records; with none it is a bare header, which has no codec."""
    return build_batch(
        records,
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        leader_epoch=header.partition_leader_epoch,
        codec=header.codec if records else Codec.NONE,
        log_append_time_ms=header.max_timestamp if header.is_log_append_time else None,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        delete_horizon_ms=horizon,
        max_timestamp=header.max_timestamp,
    )
