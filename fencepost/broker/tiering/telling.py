"""Segments of the tier as events tell of them."""

from collections.abc import Mapping

from fencepost.storage.tier.segments import RemoteSegment, uuid_text


def segment_told(segment: RemoteSegment) -> Mapping[str, object]:
    """What a segment is: ``id``, ``start_offset``, ``end_offset``, ``epochs`` and ``bytes``."""
    return {
        "id": uuid_text(segment.id),
        "start_offset": segment.start_offset,
        "end_offset": segment.end_offset,
        "epochs": [
            {"epoch": entry.epoch, "start_offset": entry.start_offset} for entry in segment.epochs
        ],
        "bytes": segment.size_bytes,
    }
