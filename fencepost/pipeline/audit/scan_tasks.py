"""How the segments of a cluster are read: those of all copies of a partition are planned together.

Windows of a partition are cut at the same offsets in all copies (`condensed.window_rows`), which
are found by several tasks. So what these find comes together by partition, and is divided into
shares, each of which one task scans.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

import pyarrow as pa

from fencepost.pipeline.audit.condensed.window_rows import PlannedSegment, plan_windows
from fencepost.pipeline.audit.condensed.window_scan import scan_small_windows, scan_windows
from fencepost.pipeline.audit.metadata_rows import FoundSegments, MetadataRow, ScanShare
from fencepost.pipeline.audit.rule import TopicPartition
from fencepost.pipeline.datasource.schemas import Place
from fencepost.pipeline.datasource.segment_scan import Checks
from fencepost.pipeline.datasource.segments import SegmentFiles, split_into_tasks
from fencepost.pipeline.datasource.tier import Tier


def found_segments(segments: Iterable[SegmentFiles]) -> Iterator[MetadataRow]:
    """The segments that a task has found, for those that plan partitions."""
    partitions: dict[TopicPartition, list[SegmentFiles]] = defaultdict(list)
    for each in segments:
        partitions[each.topic, each.partition].append(each)
    for (topic, partition), own in partitions.items():
        yield MetadataRow(value=FoundSegments(segments=tuple(own)), key=f"{topic}-{partition}")


def plan_scan(rows: Iterable[MetadataRow]) -> Iterator[MetadataRow]:
    """Segments as shares for tasks, in an order that does not depend on that of the rows.

    :param rows: Those with `FoundSegments` of some keys, all that there are of these.
    """
    segments: list[SegmentFiles] = []
    for row in rows:
        assert isinstance(row.value, FoundSegments), "no others are asked for"
        segments += row.value.segments
    segments.sort(key=lambda each: (each.topic, each.partition, each.log))
    plans = iter(plan_windows(segments))
    for share in split_into_tasks(segments):
        planned = tuple((files, next(plans)) for files in share)
        yield MetadataRow(value=ScanShare(segments=planned), key=share[0].log)


def scan_share(
    segments: tuple[PlannedSegment, ...], remote: str | None, checks: Checks
) -> Iterator[pa.RecordBatch]:
    """The rows of `WINDOWS` of some segments.

    :param remote: The URL of the tier; None where none of them is there.
    """
    plans = {files.log: plan for files, plan in segments}
    rows, others = scan_small_windows([files for files, _ in segments], checks)
    yield from rows
    in_tier = any(files.place is Place.TIER for files in others)
    tier = Tier.open(remote) if in_tier and remote is not None else None
    for files in others:
        yield from scan_windows(files, plans[files.log], tier, checks=checks)
