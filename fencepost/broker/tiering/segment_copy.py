"""One segment's way up to the tier.

Its metadata go first, as COPY_SEGMENT_STARTED, so that whatever comes after is known to be there;
then its records and what goes with them; and last its metadata again, as COPY_SEGMENT_FINISHED.
Only then is it served. What fails on the way leaves a segment that is not, and `expiry` deletes it.
"""

from collections.abc import Callable
from uuid import UUID

from fencepost.broker.core.async_tasks import AsyncSteps, put
from fencepost.storage.log.interface import SegmentCopy
from fencepost.storage.tier.lineage import RemoteSegments
from fencepost.storage.tier.object_store import ObjectKind, ObjectStore, object_key
from fencepost.storage.tier.segment_metadata import (
    RemoteLogSegmentState,
    RemoteSegment,
    TopicIdPartition,
)
from fencepost.storage.tier.segment_objects import IndexedRecords, auxiliary_objects, epochs_within


def start_copy(
    copy: SegmentCopy,
    partition: TopicIdPartition,
    *,
    segment_id: UUID,
    broker_id: int,
    now_ms: int,
) -> RemoteSegment:
    """What a segment is when its way up begins.

    Where no record has a timestamp, now stands in for the largest, as the time of the last append
    does in a log: retention.ms counts from it.
    """
    return RemoteSegment(
        partition=partition,
        id=segment_id,
        start_offset=copy.base_offset,
        end_offset=copy.end_offset,
        epochs=epochs_within(copy),
        size_bytes=copy.size_bytes,
        max_timestamp=copy.max_timestamp if copy.max_timestamp >= 0 else now_ms,
        broker_id=broker_id,
        event_ms=now_ms,
        state=RemoteLogSegmentState.COPY_SEGMENT_STARTED,
    )


def copy_segment(
    store: ObjectStore,
    segments: RemoteSegments,
    started: RemoteSegment,
    copy: SegmentCopy,
    *,
    index_interval_bytes: int,
    now_ms: Callable[[], int],
) -> AsyncSteps[RemoteSegment]:
    """Copy a segment; it is known among `segments` in each of its states.

    :param started: What `start_copy` made of it.
    :raises TierError: When an object can't be written. The segment is not served then.
    """
    segments.put(started)
    metadata = object_key(started, ObjectKind.METADATA)
    yield from put(store, metadata, [started.to_json()])
    records = IndexedRecords(copy, index_interval_bytes)
    yield from put(store, object_key(started, ObjectKind.LOG), records)
    for part, data in auxiliary_objects(copy, records).items():
        yield from put(store, object_key(started, part), [data])
    finished = started.with_state(
        RemoteLogSegmentState.COPY_SEGMENT_FINISHED, broker_id=started.broker_id, now_ms=now_ms()
    )
    yield from put(store, metadata, [finished.to_json()])
    segments.put(finished)
    return finished
