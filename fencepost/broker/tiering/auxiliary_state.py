"""What a follower needs to know of the records that it leaves to the tier (KIP-405).

A replica that starts at an offset has nothing of what comes before, and yet must know it as if it
had: the leader epochs, to agree with others on where logs part, and the producers, to recognize
what they send again when it leads. Both are in the tier, beside each segment, as they were at that
segment's end.

A follower rarely knows more of the records before its start than the leader epoch of the last one.
Two logs that agree on the epoch of an offset agree on all before it, so the segment that has this
record in this epoch tells the whole lineage; segments of a truncated branch are not of it.
"""

from collections.abc import Sequence

from fencepost.broker.core.async_tasks import AsyncSteps, get
from fencepost.broker.replication.follower.start_offset import AuxiliaryState
from fencepost.broker.tiering.remote_segments import list_metadata
from fencepost.protocol.records import iter_headers
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
from fencepost.storage.tier.segment_metadata import RemoteSegment, TopicIdPartition
from fencepost.storage.tier.segment_objects import CORRUPT, read_epochs, read_producers


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
