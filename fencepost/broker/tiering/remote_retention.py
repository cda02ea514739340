"""The deletion of segments from the tier: which, why and how.

Retention is of the whole log: retention.bytes counts what is in the tier and what is only in the
log, and retention.ms each segment's largest timestamp. What it takes are the oldest segments of the
leader's lineage. Others are deleted because they are no longer referenced: they lie before the log
start, or all their epochs are older than the leader's oldest. So are the
remains of copies and deletions that were not finished.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from fencepost.broker.core.async_tasks import AsyncSteps, delete, list_keys, put
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.tier.lineage import RemoteSegments, TieredRange
from fencepost.storage.tier.object_store import (
    DATA_KINDS,
    ObjectKind,
    ObjectStore,
    object_key,
    partition_prefix,
)
from fencepost.storage.tier.segment_metadata import (
    RemoteLogSegmentState,
    RemoteSegment,
    TopicIdPartition,
)

ABANDONED_AFTER_MS: Final = 10 * 60_000
"""How long a copy that another leader began is left alone. That leader may not have heard yet that
it is none any more: to delete what it is writing would leave half a segment that looks whole."""


class ExpiredSegments(NamedTuple):
    """What retention takes.

    :ivar log_start_offset: Where the log begins without them; None where nothing goes.
    """

    segments: tuple[RemoteSegment, ...]
    log_start_offset: int | None


def expired_segments(
    ranges: Sequence[TieredRange],
    config: LogConfig,
    *,
    only_local_bytes: int,
    high_watermark: int,
    now_ms: int,
) -> ExpiredSegments:
    """The segments that retention.ms and retention.bytes let go: the first ones, in order.

    As in Kafka a segment goes by size only where what is left still has retention.bytes. Leaders do
    not cut their segments at the same offsets, so that the tier may have a record twice; other than
    in Kafka it counts once, or else as many records less would be kept.

    :param ranges: Those of the leader's lineage from its log start on, by start offset.
    :param only_local_bytes: Size of what the log holds and the tier does not.
    :param high_watermark: Of the leader. The log start can't go beyond it, and a new leader's may
        lie below what is tiered for a while: what ends behind it stays.
    """
    left_bytes = _remaining_sizes(ranges)
    oldest_ms = now_ms - config.retention_ms if config.retention_ms >= 0 else -1
    doomed: list[RemoteSegment] = []
    start: int | None = None
    for _, end, segment in ranges:
        following = end + 1 if start is None else max(start, end + 1)
        by_size = 0 <= config.retention_bytes <= only_local_bytes + left_bytes(following)
        by_time = oldest_ms >= 0 and segment.max_timestamp <= oldest_ms
        if not (by_size or by_time) or end >= high_watermark:
            break
        doomed.append(segment)
        start = following
    return ExpiredSegments(tuple(doomed), start)


def _remaining_sizes(ranges: Sequence[TieredRange]) -> Callable[[int], int]:
    """Returns what the ranges that begin at or behind an offset have at least, in bytes.

    Of ranges that overlap the first one counts. A segment that belongs to the lineage in part does
    not count: how large that part is, is not known.
    """
    starts = [each.start_offset for each in ranges]
    sizes = [0] * (len(ranges) + 1)
    for index in range(len(ranges) - 1, -1, -1):
        _, end, segment = ranges[index]
        behind = sizes[bisect_left(starts, end + 1)]
        sizes[index] = behind + (segment.size_bytes if end == segment.end_offset else 0)
    return lambda offset: sizes[bisect_left(starts, offset)]


def unreferenced_segments(
    segments: Iterable[RemoteSegment], lineage: Sequence[EpochEntry], log_start_offset: int
) -> list[RemoteSegment]:
    """The segments that no reader of this leader's log, or of a later one's, can ask for.

    Those whose epochs are all older than the leader's oldest, and those that end before the log
    start and have no epoch that is newer than the one there. Segments of a branch that was
    truncated away in between stay until then: the replica that has it may yet be elected.
    """
    if not lineage:
        return []
    first = lineage[0].epoch
    return [
        segment
        for segment in segments
        if segment.is_served
        and (
            segment.last_epoch < first
            or (segment.end_offset < log_start_offset and segment.last_epoch <= first)
        )
    ]


def unfinished_segments(
    segments: Iterable[RemoteSegment], failed: Collection[UUID], now_ms: int
) -> list[RemoteSegment]:
    """What is left of deletions and copies that came to nothing.

    :param failed: The copies that are known to have failed. Others are given time: see
        `ABANDONED_AFTER_MS`.
    """
    return [
        segment
        for segment in segments
        if segment.state is RemoteLogSegmentState.DELETE_SEGMENT_STARTED
        or (
            segment.state is RemoteLogSegmentState.COPY_SEGMENT_STARTED
            and (segment.id in failed or now_ms - segment.event_ms >= ABANDONED_AFTER_MS)
        )
    ]


def delete_segment(
    store: ObjectStore,
    segments: RemoteSegments,
    segment: RemoteSegment,
    *,
    broker_id: int,
    now_ms: int,
) -> AsyncSteps[None]:
    """Delete a segment from the tier. From the first moment on it is not served any more.

    :raises TierError: When the tier does not do it; it is to be tried again then.
    """
    started = segment.with_state(
        RemoteLogSegmentState.DELETE_SEGMENT_STARTED, broker_id=broker_id, now_ms=now_ms
    )
    segments.put(started)
    metadata = object_key(started, ObjectKind.METADATA)
    yield from put(store, metadata, [started.to_json()])
    yield from delete(store, [object_key(started, part) for part in DATA_KINDS])
    yield from delete(store, [metadata])
    segments.drop(segment.id)


def delete_partition(store: ObjectStore, partition: TopicIdPartition) -> AsyncSteps[bool]:
    """Delete all that the tier has of a partition: its topic is gone, or not tiered any more.

    :returns: Whether there was anything. Then there may be more later: an object that was on its
        way when its copying ended.
    :raises TierError: When the tier does not do it; it is to be tried again then.
    """
    keys = yield from list_keys(store, partition_prefix(partition))
    data = [key for key in keys if not key.endswith(ObjectKind.METADATA)]
    for kind in (data, [key for key in keys if key.endswith(ObjectKind.METADATA)]):
        if kind:
            yield from delete(store, kind)
    return bool(keys)
