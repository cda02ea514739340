"""The segments of a partition in the tier: copied there, listed, and read for a follower's start.

Of a copy the metadata go first, as COPY_SEGMENT_STARTED, so that whatever comes after is known to
be there; then the records and what goes with them; and last the metadata again, as
COPY_SEGMENT_FINISHED. Only then is the segment served. A copy that fails on the way leaves one that
is not, and `remote_retention` deletes it.

A listing reads the metadata that are new. Metadata that tell of a finished copy never change but to
tell of its deletion, and go with it; so as long as one leads, what it knows of such a copy is not
read again. A new leader reads all: another may have begun a deletion that it did not live to
finish.

A finished copy whose records are not there is lost: the tier may have lost them while the copy was
made, and then got the metadata that tell of its end.

A follower that starts at an offset has nothing of what comes before, and yet must know it as if it
had (KIP-405): the leader epochs, to agree with others on where logs part, and the producers, to
recognize what they send again when it leads. Both are in the tier, beside each segment, as they
were at that segment's end. The follower rarely knows more of the records before its start than the
leader epoch of the last one. Two logs that agree on the epoch of an offset agree on all before it,
so the segment that has this record in this epoch tells the whole lineage; segments of a truncated
branch are not of it.
"""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Final
from uuid import UUID

from fencepost.broker.core.async_tasks import AsyncSteps, get, get_each, list_keys, put
from fencepost.broker.replication.follower.start_offset import AuxiliaryState
from fencepost.protocol.byte_utils import parse_uuid
from fencepost.protocol.records import iter_headers
from fencepost.storage.log.interface import SegmentCopy
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.log.producer_state import ProducerStateEntry, ProducerStateManager
from fencepost.storage.tier.lineage import RemoteSegments, TieredRange
from fencepost.storage.tier.object_store import (
    ObjectKind,
    ObjectStore,
    TierError,
    object_key,
    partition_prefix,
)
from fencepost.storage.tier.segment_metadata import (
    CorruptMetadata,
    RemoteLogSegmentState,
    RemoteSegment,
    TopicIdPartition,
)
from fencepost.storage.tier.segment_objects import (
    CORRUPT,
    IndexedRecords,
    auxiliary_objects,
    epochs_within,
    read_epochs,
    read_producers,
)

_NAME: Final = re.compile(r"[0-9]{20}-([A-Za-z0-9_-]{22})(\.[a-z-]+)", re.ASCII)


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


def list_metadata(
    store: ObjectStore,
    partition: TopicIdPartition,
    segments: RemoteSegments,
    *,
    reread: bool = False,
    corrupt: Callable[[str, CorruptMetadata], None] | None = None,
) -> AsyncSteps[frozenset[str]]:
    """Update the metadata of a partition's segments from the tier.

    :param segments: The metadata so far; updated.
    :param reread: Whether metadata of finished copies are read again.
    :param corrupt: Told of metadata that can't be read, by key: their segments count for nothing.
    :returns: The keys of objects that have no metadata beside them. Where they have none the next
        time either, none will ever be written.
    :raises TierError: When the tier does not tell; what was known stays.
    """
    keys = yield from list_keys(store, partition_prefix(partition))
    metadata, others = _split_keys(keys)
    wanted = [
        key for segment_id, key in metadata.items() if reread or not _is_final(segments, segment_id)
    ]
    found = yield from get_each(store, wanted)
    with_records = {segment_id for segment_id, key in others if key.endswith(ObjectKind.LOG)}
    for known in list(segments):
        if known.id not in metadata or _is_lost(known, with_records):
            segments.drop(known.id)
    for key, data in zip(wanted, found, strict=True):
        if data is None:
            continue
        try:
            segment = RemoteSegment.from_json(data)
        except CorruptMetadata as error:
            if corrupt is not None:
                corrupt(key, error)
            continue
        # One that was finished since the keys were listed is not lost, but known the next time.
        if not _is_lost(segment, with_records):
            segments.put(segment)
    return frozenset(key for segment_id, key in others if segment_id not in metadata)


def _split_keys(keys: list[str]) -> tuple[dict[UUID, str], list[tuple[UUID, str]]]:
    """The keys of metadata by the segment's id, and all others; what has no such name is left."""
    metadata: dict[UUID, str] = {}
    others: list[tuple[UUID, str]] = []
    for key in keys:
        name = _NAME.fullmatch(key.rpartition("/")[2])
        if name is None:
            continue
        segment_id = parse_uuid(name[1])
        if name[2] == ObjectKind.METADATA:
            metadata[segment_id] = key
        else:
            others.append((segment_id, key))
    return metadata, others


def _is_final(segments: RemoteSegments, segment_id: UUID) -> bool:
    segment = segments.get(segment_id)
    return segment is not None and segment.is_served


def _is_lost(segment: RemoteSegment, with_records: Collection[UUID]) -> bool:
    return segment.is_served and segment.id not in with_records


def build_auxiliary_state(
    store: ObjectStore, partition: TopicIdPartition, *, epoch: int, offset: int
) -> AsyncSteps[AuxiliaryState]:
    """The auxiliary state of a log as it is before `offset`, from the tier.

    :param epoch: The leader epoch of the record before `offset`.
    :raises TierError: When the tier does not answer, or lacks that record.
    """
    segments = RemoteSegments()
    yield from list_metadata(store, partition, segments)
    last = segments.segment_for(epoch, offset - 1)
    if last is None:
        raise TierError(
            partition_prefix(partition),
            f"no segment has offset {offset - 1} of leader epoch {epoch}",
            missing=True,
        )
    data = yield from get(store, object_key(last, ObjectKind.LEADER_EPOCHS))
    epochs = tuple(entry for entry in _epochs(last, data) if entry.start_offset < offset)
    producers = yield from _producers(store, segments.ranges(epochs), offset)
    return AuxiliaryState(epochs=epochs, producers=producers.snapshot())


def _producers(
    store: ObjectStore, ranges: Sequence[TieredRange], offset: int
) -> AsyncSteps[ProducerStateManager]:
    """The producers behind the records before an offset.

    Where a segment ends there they are in its snapshot. Leaders do not cut their segments at the
    same offsets, though: else they are those before the segment that holds the offset, and what
    its records tell of them up to there.
    """
    found = ProducerStateManager()
    holder: RemoteSegment | None = None
    for start, end, segment in ranges:
        if end == segment.end_offset == offset - 1:
            data = yield from get(store, object_key(segment, ObjectKind.PRODUCER_SNAPSHOT))
            found.restore(_snapshot(segment, data))
            return found
        if start < offset <= end + 1:
            holder = segment
    if holder is None:  # the tier begins here
        return found
    found = yield from _producers(store, ranges, holder.start_offset)
    data = yield from get(store, object_key(holder, ObjectKind.LOG))
    for _, header in iter_headers(data):
        if header.base_offset >= offset:
            break
        if header.has_producer_id:
            found.update(header)
    return found


def _epochs(segment: RemoteSegment, data: bytes) -> tuple[EpochEntry, ...]:
    try:
        return read_epochs(data)
    except CORRUPT as error:
        raise TierError(object_key(segment, ObjectKind.LEADER_EPOCHS), str(error)) from error


def _snapshot(segment: RemoteSegment, data: bytes) -> tuple[ProducerStateEntry, ...]:
    try:
        return read_producers(data)
    except CORRUPT as error:
        raise TierError(object_key(segment, ObjectKind.PRODUCER_SNAPSHOT), str(error)) from error
