"""How the segments of a cluster are read: those of all copies of a partition are planned together.

Windows of a partition are cut at the same offsets in all copies (`condensed.window_rows`), which
are found by several tasks. So what these find comes together by partition, and is divided into
shares, each of which one task scans.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import pyarrow as pa

from fencepost.pipeline.audit.condensed.window_rows import PlannedSegment, plan_windows
from fencepost.pipeline.audit.condensed.window_scan import scan_small_windows, scan_windows
from fencepost.pipeline.audit.metadata_rows import (
    FoundSegments,
    KeptPart,
    KeyShare,
    MetadataRow,
    ScanShare,
    ScanTotals,
    TrustedSegments,
)
from fencepost.pipeline.audit.rule import TopicPartition
from fencepost.pipeline.audit.state.kept_segments import (
    KeptSegment,
    Trust,
    choose_segments,
    keep_rows,
    keep_small_rows,
)
from fencepost.pipeline.datasource.schemas import Place
from fencepost.pipeline.datasource.segment_scan import Checks
from fencepost.pipeline.datasource.segments import SegmentFiles, split_into_tasks
from fencepost.pipeline.datasource.small_segments import MAX_BYTES
from fencepost.pipeline.datasource.tier import Tier

SHARE_BYTES: Final = 128 << 20
"""What a task scans at most, where that is not one segment: some 50 ms, beside the 10 that a task
takes however little it has to do. It is so much as Spark has of files in a task."""
_SMALL_BYTES: Final = 64 << 10
_LARGE_BYTES: Final = 4 << 20
"""What could be scanned in the time that it takes to open a segment, of `MAX_BYTES` or larger."""
_PART_BYTES: Final = 16 << 20
"""Bytes of all replicas for which there is one part of the keys: some 100,000 records."""


def found_segments(
    segments: Iterable[SegmentFiles], *, is_compacted: bool = False
) -> Iterator[MetadataRow]:
    """The segments that a task has found, for those that plan partitions.

    :param is_compacted: As `FoundSegments` has it.
    """
    partitions: dict[TopicPartition, list[SegmentFiles]] = defaultdict(list)
    for each in segments:
        partitions[each.topic, each.partition].append(each)
    for (topic, partition), own in partitions.items():
        value = FoundSegments(segments=tuple(own), is_compacted=is_compacted)
        yield MetadataRow(value=value, key=f"{topic}-{partition}")


def plan_scan(rows: Iterable[MetadataRow], trust: Trust | None = None) -> Iterator[MetadataRow]:
    """Segments as shares for tasks, in an order that does not depend on that of the rows.

    :param rows: Those with `FoundSegments` and `KeptPart` of some keys, all that there are of
        these.
    :param trust: Which of the kept segments are not read; None: all are.
    """
    segments: list[SegmentFiles] = []
    compacted: set[TopicPartition] = set()
    kept: dict[str, KeptSegment] = {}
    for row in rows:
        match row.value:
            case FoundSegments(segments=found):
                segments += found
                if row.value.is_compacted:
                    compacted |= {(each.topic, each.partition) for each in found}
            case KeptPart(segment=segment):
                kept[segment.key] = segment
    segments.sort(key=lambda each: (each.topic, each.partition, each.log))
    yield from plan_keys(each for each in segments if (each.topic, each.partition) in compacted)
    planned = list(zip(segments, plan_windows(segments), strict=True))
    if trust is not None:
        choice = choose_segments(planned, kept, trust)
        yield MetadataRow(value=ScanTotals(extent=choice.extent))
        for logs in choice.trusted.values():
            yield MetadataRow(value=TrustedSegments(logs=logs))
        planned = choice.read
    left = iter(planned)
    for share in split_into_tasks([files for files, _ in planned], SHARE_BYTES, _cost):
        own = tuple(islice(left, len(share)))
        yield MetadataRow(value=ScanShare(segments=own), key=share[0].log)


def plan_keys(segments: Iterable[SegmentFiles]) -> Iterator[MetadataRow]:
    """The segments of replicas that are compared by keys, as shares for tasks.

    :param segments: Of compacted partitions, of each all that there are.
    """
    partitions: dict[TopicPartition, list[SegmentFiles]] = defaultdict(list)
    for each in segments:
        if each.place is Place.LOG:
            partitions[each.topic, each.partition].append(each)
    for own in partitions.values():
        if len({each.broker for each in own if each.size}) < 2:
            continue
        parts = max(-(-sum(each.size for each in own) // _PART_BYTES), 1)
        for share in split_into_tasks(own, SHARE_BYTES, _cost):
            yield MetadataRow(value=KeyShare(segments=share, parts=parts), key=share[0].log)


def _cost(files: SegmentFiles) -> int:
    """What could be scanned in the time that a segment takes, in bytes."""
    return files.size + (_SMALL_BYTES if files.size <= MAX_BYTES else _LARGE_BYTES)


def scan_share(
    segments: tuple[PlannedSegment, ...], remote: str | None, checks: Checks, *, keep: bool = False
) -> Iterator[pa.RecordBatch]:
    """The rows of `WINDOWS` of some segments.

    :param remote: The URL of the tier; None where none of them is there.
    :param keep: Whether they are kept for the next audit: then they are `KEPT`.
    """
    plans = {files.log: plan for files, plan in segments}
    small, others = scan_small_windows([files for files, _ in segments], checks)
    if keep:
        left = {files.log for files in others}
        sound = [each for each in segments if each[0].log not in left]
        yield from keep_small_rows(sound, checks, small)
    else:
        yield from small
    in_tier = any(files.place is Place.TIER for files in others)
    tier = Tier.open(remote) if in_tier and remote is not None else None
    for files in others:
        rows = scan_windows(files, plans[files.log], tier, checks=checks)
        yield from keep_rows(files, plans[files.log], checks, rows) if keep else rows
