"""Closed segments of a partition as the audit's listing finds them, without any files."""

from __future__ import annotations

from fencepost.pipeline.datasource.schemas import Place
from fencepost.pipeline.datasource.segment_stamps import SegmentStamp
from fencepost.pipeline.datasource.segments import SegmentFiles
from tests.pipeline.audit.condensed.partitions import TOPIC


def stamp(content: object = "") -> SegmentStamp:
    return SegmentStamp(digest=str(content), files=3, bytes=1000)


def segment(
    base: int,
    broker: int | None = 1,
    *,
    partition: int = 0,
    size: int = 1000,
    closed: bool = True,
    content: object = "",
) -> SegmentFiles:
    """:param broker: None for the tier."""
    return SegmentFiles(
        topic=TOPIC,
        partition=partition,
        place=Place.TIER if broker is None else Place.LOG,
        broker=broker,
        segment=base,
        segment_id=f"id-{base}" if broker is None else None,
        log=f"{broker}/{TOPIC}-{partition}/{base:020d}.log",
        offset_index=None,
        time_index=None,
        size=size,
        closed=closed,
        stamp=stamp(content),
    )
