"""What tasks read of the tier: its metadata by URL, or a real Kafka's topic of them.

It is read after the log directories: a segment that has left a log since it was listed is in the
tier by then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from fencepost.pipeline.audit.metadata_rows import (
    MetadataRow,
    RemoteLogFacts,
    TierKeys,
    TierPart,
)
from fencepost.pipeline.audit.remote_log_metadata import read_remote_log_metadata
from fencepost.pipeline.audit.rule import TierSegment, TopicPartition
from fencepost.pipeline.audit.scan_tasks import found_segments
from fencepost.pipeline.datasource.log_directories import Replica
from fencepost.pipeline.datasource.segment_stamps import SegmentStamp
from fencepost.pipeline.datasource.segments import tier_segment_files
from fencepost.pipeline.datasource.tier import Tier, partition_of_key
from fencepost.protocol.byte_utils import format_uuid
from fencepost.storage.tier.object_store import ObjectKind, object_key
from fencepost.storage.tier.segment_metadata import RemoteSegment

_KEYS: Final = 500
"""Objects that one task reads, several at a time."""


def list_tier(remote: str, topics: Collection[str] | None) -> Iterator[MetadataRow]:
    """The keys of the tier's metadata, divided among tasks.

    :param remote: Its URL, as ``serve --remote`` takes it.
    :param topics: Only of these; None for all.
    :raises UnreadableSource: When there is no tier, or it does not answer.
    """
    stamps = iter(Tier.open(remote).stamps(topics).items())
    while some := dict(islice(stamps, _KEYS)):
        yield MetadataRow(value=TierKeys(stamps=some), key=next(iter(some)))


def read_tier(remote: str, stamps: Mapping[str, SegmentStamp]) -> Iterator[MetadataRow]:
    """The segments of which some keys are the metadata.

    :param stamps: By key, as `Tier.stamps` gives them.
    :raises UnreadableSource: When the tier does not answer.
    """
    tier = Tier.open(remote)
    segments = tier.read_segments(tuple(stamps))
    found: dict[TopicPartition, list[TierSegment]] = defaultdict(list)
    for each in segments:
        found[each.partition.topic, each.partition.index].append(_tier_segment(each))
    unreadable: dict[TopicPartition, list[str]] = defaultdict(list)
    for name, why in tier.unreadable:
        unreadable[partition_of_key(name)].append(f"{name}: {why}")
    for key in sorted({*found, *unreadable}):
        part = TierPart(segments=tuple(found[key]), unreadable=tuple(unreadable[key]))
        yield MetadataRow(value=part, partition=key)
    yield from found_segments(
        tier_segment_files(each, stamps.get(object_key(each, ObjectKind.METADATA)))
        for each in segments
        if each.is_served
    )


def read_remote_log(
    replicas: Iterable[Replica], expected: int | None, topics: Collection[str] | None
) -> Iterator[MetadataRow]:
    """The segments of which a real Kafka's topic tells.

    The arguments are those of `read_remote_log_metadata`.
    """
    listed = read_remote_log_metadata(replicas, expected, topics)
    yield MetadataRow(
        value=RemoteLogFacts(
            text=listed.text, problems=listed.problems, is_complete=listed.is_complete
        )
    )
    for key, segments in listed.segments.items():
        yield MetadataRow(value=TierPart(segments=segments), partition=key)


def _tier_segment(segment: RemoteSegment) -> TierSegment:
    return TierSegment(
        id=format_uuid(segment.id),
        topic_id=format_uuid(segment.partition.topic_id),
        start_offset=segment.start_offset,
        end_offset=segment.end_offset,
        epochs=tuple((each.epoch, each.start_offset) for each in segment.epochs),
        bytes=segment.size_bytes,
        finished=segment.is_served,
    )
