"""Segments in the tier that the tests make."""

from uuid import UUID

from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.tier.segment_metadata import (
    RemoteLogSegmentState,
    RemoteSegment,
    TopicIdPartition,
)

PARTITION = TopicIdPartition(topic="t", topic_id=UUID(int=7), index=0)
Epochs = tuple[tuple[int, int], ...]


def lineage(*epochs: tuple[int, int]) -> tuple[EpochEntry, ...]:
    return tuple(EpochEntry(*entry) for entry in epochs)


def segment(
    start: int,
    end: int,
    *epochs: tuple[int, int],
    number: int = 0,
    size: int = 100,
    max_timestamp: int = 1000,
    event_ms: int = 0,
    state: RemoteLogSegmentState = RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
) -> RemoteSegment:
    """From `start` to `end`, both inclusive; of epoch 0 where none are given."""
    return RemoteSegment(
        partition=PARTITION,
        id=UUID(int=number or start * 1000 + end + 1),
        start_offset=start,
        end_offset=end,
        epochs=lineage(*(epochs or ((0, start),))),
        size_bytes=size,
        max_timestamp=max_timestamp,
        broker_id=1,
        event_ms=event_ms,
        state=state,
    )
