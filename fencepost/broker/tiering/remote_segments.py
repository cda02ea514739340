"""The segments of a partition in the tier: copied there, listed, and read for a follower's start.

Of a copy the metadata go first, as COPY_SEGMENT_STARTED, so that whatever comes after is known to
be there; then the records and what goes with them; and last the metadata again, as
COPY_SEGMENT_FINISHED. Only then is the segment served. A copy that fails on the way leaves one that
is not, and `remote_retention` deletes it. The objects have the formats of Kafka's files of the same
suffixes. The indexes are made while the records are iterated, so that an upload reads each byte
once.

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
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final
from uuid import UUID

from fencepost.broker.core.async_tasks import AsyncSteps, get, get_each, list_keys, put
from fencepost.broker.replication.follower.start_offset import AuxiliaryState
from fencepost.protocol.byte_utils import Buffer, parse_uuid
from fencepost.protocol.records import NO_TIMESTAMP, iter_headers
from fencepost.storage.formats.checkpoints import (
    CorruptCheckpoint,
    CorruptSnapshot,
    decode_epochs,
    decode_snapshot,
    encode_epochs,
    encode_snapshot,
)
from fencepost.storage.formats.indexes import (
    MAX_RELATIVE,
    OffsetIndex,
    TimeIndex,
    encode_transactions,
)
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

_NAME: Final = re.compile(r"[0-9]{20}-([A-Za-z0-9_-]{22})(\.[a-z-]+)", re.ASCII)


class IndexedRecords:
    """The records of a segment, indexed as they are iterated. Each iteration indexes them again.

    :ivar offset_index: Complete when all records have been taken.
    :ivar time_index: Likewise.
    """

    __slots__ = (
        "_copy",
        "_interval",
        "_largest",
        "_latest",
        "_since",
        "offset_index",
        "time_index",
    )

    def __init__(self, copy: SegmentCopy, index_interval_bytes: int) -> None:
        self._copy = copy
        self._interval = index_interval_bytes
        self._begin()

    def _begin(self) -> None:
        self.offset_index = OffsetIndex(self._copy.base_offset)
        self.time_index = TimeIndex(self._copy.base_offset)
        self._since = 0
        """Bytes since the last entry."""
        self._largest = NO_TIMESTAMP
        self._latest = self._copy.base_offset
        """Last offset of the batch that has the largest timestamp."""

    def __iter__(self) -> Iterator[Buffer]:
        """The buffers, in order; each begins with a batch and ends with one."""
        self._begin()
        position = 0
        for buffer in self._copy.records:
            self._index(buffer, position)
            position += len(buffer)
            yield buffer
        self._note_time()

    def _index(self, buffer: Buffer, position: int) -> None:
        for within, header in iter_headers(buffer):
            if header.max_timestamp > self._largest:
                self._largest, self._latest = header.max_timestamp, header.last_offset
            reach = max(position + within, header.last_offset - self._copy.base_offset)
            if self._since > self._interval and reach <= MAX_RELATIVE:
                self.offset_index.append(header.last_offset, position + within)
                self._note_time()
                self._since = 0
            self._since += header.size

    def _note_time(self) -> None:
        reach = self._latest - self._copy.base_offset
        if self._largest > self.time_index.last.timestamp and reach <= MAX_RELATIVE:
            self.time_index.append(self._largest, self._latest)


def auxiliary_objects(copy: SegmentCopy, records: IndexedRecords) -> dict[ObjectKind, bytes]:
    """All objects of a segment but its records and its metadata, in the order of their upload.

    :param records: Its records, which have all been taken.
    """
    found = {
        ObjectKind.OFFSET_INDEX: records.offset_index.encode(),
        ObjectKind.TIME_INDEX: records.time_index.encode(),
        ObjectKind.TRANSACTION_INDEX: encode_transactions(copy.aborted),
        ObjectKind.PRODUCER_SNAPSHOT: encode_snapshot(copy.producers),
        ObjectKind.LEADER_EPOCHS: encode_epochs(copy.epochs),
    }
    if not copy.aborted:
        del found[ObjectKind.TRANSACTION_INDEX]
    return found


def epochs_within(copy: SegmentCopy) -> tuple[EpochEntry, ...]:
    """The leader epochs of a segment's own records; the first begins where the segment does.

    Where the log start lies within the segment, those before it are taken for the epoch there.
    """
    within: list[EpochEntry] = []
    for entry in copy.epochs:
        if not within or entry.start_offset <= copy.base_offset:
            within = [EpochEntry(entry.epoch, copy.base_offset)]
        else:
            within.append(entry)
    return tuple(within)


def start_copy(
    copy: SegmentCopy,
    partition: TopicIdPartition,
    *,
    segment_id: UUID,
    broker_id: int,
    leader_epoch: int,
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
        txn_index_empty=not copy.aborted,
        leader_epoch=leader_epoch,
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
    for position, header in iter_headers(data):
        if header.base_offset >= offset:
            break
        if header.has_producer_id:
            found.apply(data, position, header)
    return found


def _epochs(segment: RemoteSegment, data: bytes) -> tuple[EpochEntry, ...]:
    try:
        return decode_epochs(data)
    except CorruptCheckpoint as error:
        raise TierError(object_key(segment, ObjectKind.LEADER_EPOCHS), str(error)) from error


def _snapshot(segment: RemoteSegment, data: bytes) -> tuple[ProducerStateEntry, ...]:
    try:
        return decode_snapshot(data)
    except CorruptSnapshot as error:
        raise TierError(object_key(segment, ObjectKind.PRODUCER_SNAPSHOT), str(error)) from error
