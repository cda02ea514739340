"""What ``cleanup.policy`` removes from a log: the oldest segments (delete), or of each key all
records but the last (compact). Of tiered logs, local.retention.* delete local segments.

A round of compaction looks at closed segments below the high watermark. It learns the last offset
of every key in the dirty ones, those after the last round's end, and then rewrites all of them,
clean ones too, without the records that a later one replaces. Offsets never change, and the last
record always stays readable as an offset: the last batch of a round, and the last one of each
active producer, stay as a header when all of their records go.

A record without a value (a tombstone) stays for delete.retention.ms after the round that first
kept it; the batch says until when in its base timestamp (KIP-534). So does a transaction marker
after the round in which no record of its transaction was left.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

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
from fencepost.storage.log.cleaned_transactions import CleanedTransactions
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.producer_state import LastRecord
from fencepost.storage.log.segments import LogSegment, LogSegments, largest_timestamp


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


class _Cleanable(Struct, frozen=True, kw_only=True):
    """The segments of a round.

    :ivar segments: The closed segments, oldest first, up to the first that may not be cleaned.
    :ivar dirty: Index of the first that no round has cleaned.
    :ivar end: Offset after the last of them (exclusive).
    """

    segments: Sequence[LogSegment]
    dirty: int
    end: int


class _Round(Struct, frozen=True, kw_only=True):
    """What decides over each batch.

    :ivar end: Offset after the last batch of the round, of which the header stays at least.
    """

    latest: Mapping[bytes, int]
    transactions: CleanedTransactions
    expired: dict[bytes, int]
    last_records: Mapping[int, LastRecord]
    end: int
    now_ms: int
    delete_retention_ms: int

    def keeps_header(self, header: BatchHeader) -> bool:
        """Whether a header stays without its records: offsets and producers must stay known."""
        if header.next_offset == self.end:
            return True
        last = self.last_records.get(header.producer_id)
        if last is None:
            return False
        if last.offset is None:
            return header.is_control and header.producer_epoch == last.producer_epoch
        return header.last_offset == last.offset


def compact(
    segments: LogSegments,
    config: LogConfig,
    *,
    now_ms: int,
    cleaned_until: int,
    last_stable_offset: int,
    at_once: bool,
    last_records: Mapping[int, LastRecord],
    create: Callable[[LogSegment], LogSegment],
) -> Cleaned | None:
    """Clean the closed segments of a log; None where nothing is dirty enough.

    Nothing at or after the last stable offset is cleaned.

    :param segments: All of the log's, the active one last. They are not changed.
    :param cleaned_until: Where the last round ended (exclusive).
    :param at_once: Whether anything dirty is dirty enough.
    :param last_records: By producer id; the batch of each stays, as a header at least.
    :param create: Makes an empty segment that begins where the given one does.
    """
    cleanable = _find_cleanable(
        segments.all,
        config,
        now_ms=now_ms,
        cleaned_until=cleaned_until,
        upper_bound=last_stable_offset,
        at_once=at_once,
    )
    if cleanable is None:
        return None
    before = sum(segment.records for segment in cleanable.segments)
    expired: dict[bytes, int] = {}
    dirty = cleanable.segments[cleanable.dirty :]
    in_dirty = segments.aborted_transactions(dirty[0].base_offset, cleanable.end)
    in_all = segments.aborted_transactions(cleanable.segments[0].base_offset, cleanable.end)
    cleaned = _clean(
        cleanable,
        _Round(
            latest=_latest_offsets(dirty, CleanedTransactions(in_dirty)),
            transactions=CleanedTransactions(in_all),
            expired=expired,
            last_records=last_records,
            end=max(segment.next_offset for segment in cleanable.segments),
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


def _latest_offsets(
    segments: Sequence[LogSegment], transactions: CleanedTransactions
) -> dict[bytes, int]:
    """The last offset of each key, by records that no abort has undone."""
    latest: dict[bytes, int] = {}
    for segment in segments:
        for buffer, header in segment.scan():
            if header.is_control:
                transactions.end(buffer, header)
            elif not transactions.is_aborted(header):
                records = _records(buffer) or ()
                latest |= {each.key: each.offset for each in records if each.key is not None}
    return latest


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
            if header.is_control:
                kept = _clean_marker(buffer, header, this_round, cleaned)
            else:
                kept = _clean_batch(buffer, header, this_round)
            if kept is not None:
                cleaned.append(kept, read_header(kept), last.last_modified_ms)
    cleaned.last_modified_ms = last.last_modified_ms
    return cleaned


def _clean_batch(buffer: Buffer, header: BatchHeader, this_round: _Round) -> Buffer | None:
    """The batch, what is left of it, its bare header, or nothing."""
    if this_round.transactions.is_aborted(header):
        return _rebuilt(header, ()) if this_round.keeps_header(header) else None
    records = _records(buffer)
    if records is None:
        return buffer
    horizon = header.delete_horizon_ms
    tombstones_expired = horizon is not None and this_round.now_ms >= horizon
    kept = [r for r in records if _stays(r, this_round, tombstones_expired=tombstones_expired)]
    if not kept:
        return _rebuilt(header, ()) if this_round.keeps_header(header) else None
    if horizon is None and any(record.value is None for record in kept):
        horizon = this_round.now_ms + this_round.delete_retention_ms
    if len(kept) == header.record_count and horizon == header.delete_horizon_ms:
        return buffer
    return _rebuilt(header, kept, horizon)


def _clean_marker(
    buffer: Buffer, header: BatchHeader, this_round: _Round, cleaned: LogSegment
) -> Buffer | None:
    """The control batch, with its delete horizon perhaps, its bare header, or nothing.

    :param cleaned: Keeps its transaction in the index where records of it were passed.
    """
    ended = this_round.transactions.end(buffer, header)
    if ended.aborted is not None:
        cleaned.add_aborted(ended.aborted)
    if not ended.is_gone:
        return buffer
    horizon = header.delete_horizon_ms
    if not header.record_count or (horizon is not None and horizon <= this_round.now_ms):
        return _rebuilt(header, ()) if this_round.keeps_header(header) else None
    if horizon is not None:
        return buffer
    horizon = this_round.now_ms + this_round.delete_retention_ms
    return _rebuilt(header, list(iter_records(buffer)), horizon)


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
        control=header.is_control,
        delete_horizon_ms=horizon,
        max_timestamp=header.max_timestamp,
    )
