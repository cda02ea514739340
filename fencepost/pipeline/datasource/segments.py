"""Which segments there are to be read, and how they are divided among tasks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.pipeline.datasource.log_directories import find_log_dirs, find_replicas
from fencepost.pipeline.datasource.schemas import Place
from fencepost.pipeline.datasource.tier import Tier
from fencepost.storage.tier.object_store import ObjectKind, object_key
from fencepost.storage.tier.segment_metadata import format_uuid

SMALL_SEGMENTS_BYTES: Final = 4 << 20
"""Bytes that are read in less time than it takes to start a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFiles:
    """A segment, by the names of its files or of its objects in the tier.

    :ivar broker: None in the tier.
    :ivar segment_id: None in a log.
    :ivar log: Path of the file, or key of the object; of the others likewise.
    :ivar offset_index: None where it is of no account: a broker would make it anew.
    :ivar size: Bytes of its records, about.
    :ivar closed: Whether nothing is appended to it any more: then its indexes must be there.
    """

    topic: str
    partition: int
    place: Place
    broker: int | None
    segment: int
    segment_id: str | None
    log: str
    offset_index: str | None
    time_index: str | None
    size: int
    closed: bool


def list_segments(
    folder: str | None, tier: Tier | None, topics: Collection[str] | None = None
) -> list[SegmentFiles]:
    """All segments of log directories and of the tier that are to be relied on.

    Of the tier these are the ones whose copy is finished and whose deletion has not begun.

    :param folder: As `find_log_dirs` takes it; None for the tier alone.
    :param topics: Only of these; None for all.
    :raises UnreadableSource: When either can't be read.
    """
    logs = [] if folder is None else _in_logs(folder, topics)
    return logs + ([] if tier is None else _in_tier(tier, topics))


def split_into_tasks(segments: Sequence[SegmentFiles]) -> list[tuple[SegmentFiles, ...]]:
    """What each task reads: a segment, or some in a row that are `SMALL_SEGMENTS_BYTES`
    together.
    """
    found: list[list[SegmentFiles]] = []
    size = 0
    for segment in segments:
        size += segment.size
        if not found or size > SMALL_SEGMENTS_BYTES:
            found.append([])
            size = segment.size
        found[-1].append(segment)
    return [tuple(share) for share in found]


def _in_logs(folder: str, topics: Collection[str] | None) -> list[SegmentFiles]:
    return [
        SegmentFiles(
            topic=replica.topic,
            partition=replica.partition,
            place=Place.LOG,
            broker=replica.broker,
            segment=segment.base_offset,
            segment_id=None,
            log=str(segment.log),
            offset_index=None if segment.swapped else str(segment.offset_index),
            time_index=None if segment.swapped else str(segment.time_index),
            size=_size(segment.log),
            closed=not segment.active,
        )
        for replica in find_replicas(find_log_dirs(folder), topics)
        for segment in replica.segments
    ]


def _in_tier(tier: Tier, topics: Collection[str] | None) -> list[SegmentFiles]:
    return [
        SegmentFiles(
            topic=segment.partition.topic,
            partition=segment.partition.index,
            place=Place.TIER,
            broker=None,
            segment=segment.start_offset,
            segment_id=format_uuid(segment.id),
            log=object_key(segment, ObjectKind.LOG),
            offset_index=object_key(segment, ObjectKind.OFFSET_INDEX),
            time_index=object_key(segment, ObjectKind.TIME_INDEX),
            size=segment.size_bytes,
            closed=True,
        )
        for segment in tier.segments(topics)
        if segment.is_served
    ]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # whoever reads it says so
