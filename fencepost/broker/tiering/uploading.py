"""One segment's way up to the tier.

Its metadata go first, as COPY_SEGMENT_STARTED, so that whatever comes after is known to be there;
then its records and what goes with them; and last its metadata again, as COPY_SEGMENT_FINISHED.
Only then is it served. What fails on the way leaves a segment that is not, and `expiry` deletes it.
"""

from collections.abc import Callable
from uuid import UUID

from fencepost.broker.tiering.steps import Steps, put
from fencepost.storage.log import SegmentCopy
from fencepost.storage.tier.copies import IndexedRecords, epochs_within, small_objects
from fencepost.storage.tier.lineage import RemoteSegments
from fencepost.storage.tier.objects import ObjectStore, Part, key_of
from fencepost.storage.tier.segments import RemoteSegment, RemoteState, TieredPartition


def begin(
    copy: SegmentCopy,
    partition: TieredPartition,
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
        state=RemoteState.COPY_SEGMENT_STARTED,
    )


def upload(
    store: ObjectStore,
    segments: RemoteSegments,
    started: RemoteSegment,
    copy: SegmentCopy,
    *,
    index_interval_bytes: int,
    now_ms: Callable[[], int],
) -> Steps[RemoteSegment]:
    """Copy a segment; it is known among `segments` in each of its states.

    :param started: What `begin` made of it.
    :raises TierError: When an object can't be written. The segment is not served then.
    """
    segments.put(started)
    metadata = key_of(started, Part.METADATA)
    yield from put(store, metadata, [started.to_json()])
    records = IndexedRecords(copy, index_interval_bytes)
    yield from put(store, key_of(started, Part.LOG), records)
    for part, data in small_objects(copy, records).items():
        yield from put(store, key_of(started, part), [data])
    finished = started.become(
        RemoteState.COPY_SEGMENT_FINISHED, broker_id=started.broker_id, now_ms=now_ms()
    )
    yield from put(store, metadata, [finished.to_json()])
    segments.put(finished)
    return finished
