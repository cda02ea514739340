"""Reads from the tier: records for consumers, the aborted transactions among them, and records by
their time (KIP-405).

Only what belongs to the replica's own lineage of leader epochs is read. A fetch is two requests at
most where the offset index is known, and mostly one: the index tells where to begin, and how far
the batch that is wanted may be from there. What comes back is what a log's own `read` gives: the
batch that holds the offset first and whole, and what follows cut at the limit.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

from fencepost.broker.core.async_tasks import AsyncSteps, AsyncTask, get
from fencepost.broker.tiering.remote_index_cache import RemoteIndexCache
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import (
    HEADER_SIZE,
    BatchHeader,
    CorruptBatch,
    InvalidRecords,
    peek_header,
)
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.log.timestamp_lookup import TimestampAndOffset, first_in
from fencepost.storage.log.transactions import AbortedTransaction
from fencepost.storage.tier.lineage import RemoteSegments, TieredRange
from fencepost.storage.tier.object_store import ObjectKind, ObjectStore, TierError, object_key
from fencepost.storage.tier.segment_metadata import RemoteSegment

if TYPE_CHECKING:
    from fencepost.broker.replication.replica import Replica


READ_AHEAD: Final = 64 << 10
"""Bytes that are read at least where a batch is looked for; twice as many each time, up to
`_MOST_AHEAD`."""
_MOST_AHEAD: Final = 4 << 20


class RemoteRecords:
    """A segment's records, as far as they have been read.

    Positions are those in its ``.log`` object, in bytes.
    """

    __slots__ = ("_ahead", "_data", "_first", "_key", "_objects", "size")

    def __init__(self, objects: ObjectStore, segment: RemoteSegment) -> None:
        self.size = segment.size_bytes
        self._objects = objects
        self._key = object_key(segment, ObjectKind.LOG)
        self._ahead = READ_AHEAD
        self._first = 0
        self._data = memoryview(b"")
        """What was read, from position `_first` on."""

    def header_at(self, position: int) -> AsyncSteps[BatchHeader | None]:
        """The header of the batch that begins there, None at the end of the segment.

        :raises TierError: When it can't be had.
        """
        if position >= self.size:
            return None
        if not self._first <= position <= self._first + len(self._data) - HEADER_SIZE:
            ahead, self._ahead = self._ahead, min(2 * self._ahead, _MOST_AHEAD)
            yield from self.between(position, position + ahead)
        data = yield from self.between(position, position + HEADER_SIZE)
        try:
            return peek_header(data)
        except CorruptBatch as error:
            raise TierError(self._key, f"{error}, at byte {position}") from error

    def between(self, start: int, end: int) -> AsyncSteps[memoryview]:
        """The bytes from `start` to `end` (exclusive), or to the end of the segment.

        What has been read and lies before `start` is let go.

        :raises TierError: When they can't be had.
        """
        end = min(end, self.size)
        known = self._first + len(self._data)
        if not self._first <= start <= known:
            self._first = known = start
            self._data = memoryview(b"")
        if end > known:
            more = yield from get(self._objects, self._key, known, end)
            if len(more) < end - known:
                raise TierError(self._key, f"it ends at byte {known + len(more)} of {self.size}")
            left = self._data[start - self._first :]
            self._data = memoryview(b"".join((left, more)) if left else more)
            self._first = start
        return self._data[start - self._first : end - self._first]


T = TypeVar("T")

Find: TypeAlias = Callable[[int], TieredRange | None]
"""The part of a segment that holds an offset, None where there is none."""
Search: TypeAlias = Callable[
    [ObjectStore, Iterable[TieredRange], int, int], AsyncSteps[TimestampAndOffset | None]
]
"""Looks for a record that is as late as a timestamp (ms), from an offset on."""


class TieredSegments(Protocol):
    """The tier, and what of it is a replica's: the remote log manager."""

    @property
    def objects(self) -> ObjectStore | None:
        """The tier; None where there is none."""
        ...

    def segments(
        self, replica: "Replica", then: Callable[[RemoteSegments | TierError], None]
    ) -> None:
        """See `RemoteLogManager.segments`."""
        ...


class RemoteReader:
    """Reads the tier for one broker.

    :param limit: The bytes that indexes may take which were read once.
    """

    def __init__(self, manager: TieredSegments, limit: Callable[[], int]) -> None:
        self._manager = manager
        self.indexes = RemoteIndexCache(limit)

    def read(
        self,
        replica: "Replica",
        offset: int,
        *,
        max_bytes: int,
        upper_bound: int,
        min_one_batch: bool,
        then: Callable[[tuple[Buffer, ...] | ErrorCode], None],
    ) -> None:
        """What `Log.read` gives, out of the tier; its parameters are that one's.

        :param then: Called now or later. OFFSET_OUT_OF_RANGE where the tier does not have the
            offset, REPLICA_NOT_AVAILABLE where it can't be told what it has, UNKNOWN_SERVER_ERROR
            where it fails: as Apache Kafka answers.
        """
        lineage = replica.log.epoch_entries()

        def steps(
            objects: ObjectStore, segments: RemoteSegments
        ) -> AsyncSteps[tuple[Buffer, ...] | None]:
            return self._read(
                objects,
                lambda at: segments.range_for(lineage, at),
                offset,
                max_bytes=max_bytes,
                upper_bound=upper_bound,
                min_one_batch=min_one_batch,
            )

        def done(found: tuple[Buffer, ...] | ErrorCode | None) -> None:
            has_gone = isinstance(found, ErrorCode) and offset < replica.log.log_start_offset
            then(ErrorCode.OFFSET_OUT_OF_RANGE if found is None or has_gone else found)

        self._run(replica, steps, done)

    def lookup(
        self,
        replica: "Replica",
        timestamp: int,
        then: Callable[[TimestampAndOffset | ErrorCode | None], None],
    ) -> None:
        """The first record in the tier, from the log start on, that is as late as `timestamp`.

        :param timestamp: In ms.
        :param then: Called now or later; None where there is no such record, errors as of `read`.
        """
        self._look_up(replica, timestamp, self._first_of, then)

    def latest(
        self,
        replica: "Replica",
        timestamp: int,
        then: Callable[[TimestampAndOffset | ErrorCode | None], None],
    ) -> None:
        """The first record in the tier with the highest timestamp, if it is `timestamp` or later.

        :param timestamp: In ms.
        :param then: Called now or later; None where there is no such record, errors as of `read`.
        """
        self._look_up(replica, timestamp, self._latest_of, then)

    def aborted_transactions(
        self,
        replica: "Replica",
        start: int,
        end: int,
        then: Callable[[tuple[AbortedTransaction, ...] | ErrorCode], None],
    ) -> None:
        """What `Log.aborted_transactions` gives, of the tier and of what is here.

        :param start: Inclusive; before the local log start.
        :param then: Called now or later; errors as of `read`, OFFSET_OUT_OF_RANGE also where the
            tier no longer has the index of a part; KAFKA_STORAGE_ERROR where the log fails.
        """
        lineage = replica.log.epoch_entries()

        def steps(
            objects: ObjectStore, segments: RemoteSegments
        ) -> AsyncSteps[tuple[AbortedTransaction, ...] | ErrorCode]:
            # At one moment: what moves from the log to the tier, or leaves it, is missed otherwise.
            log, at = replica.log, start
            while at < min(end, log.local_log_start_offset):
                tiered = segments.range_for(lineage, at)
                if tiered is None:
                    return ErrorCode.OFFSET_OUT_OF_RANGE
                at = tiered.end_offset + 1
            try:
                here = log.aborted_transactions(log.local_log_start_offset, end)
            except StorageFailure as failure:
                replica.mark_offline(replica, failure)
                return ErrorCode.KAFKA_STORAGE_ERROR
            found = yield from self._aborted(objects, segments.ranges(lineage), start, end)
            found |= {each.last_offset: each for each in here if each.last_offset >= start}
            return tuple(found[offset] for offset in sorted(found))

        self._run(replica, steps, then)

    def _aborted(
        self, objects: ObjectStore, ranges: Iterable[TieredRange], start: int, end: int
    ) -> AsyncSteps[dict[int, AbortedTransaction]]:
        """By the offsets of their markers: segments of the tier may overlap."""
        found: dict[int, AbortedTransaction] = {}
        for tiered in ranges:
            if tiered.end_offset < start:
                continue
            for each in (yield from self.indexes.transactions(objects, tiered.segment)):
                if start <= each.last_offset <= tiered.end_offset and each.first_offset < end:
                    found[each.last_offset] = each
                if each.last_stable_offset >= end:
                    return found
        return found

    def _look_up(
        self,
        replica: "Replica",
        timestamp: int,
        search: Search,
        then: Callable[[TimestampAndOffset | ErrorCode | None], None],
    ) -> None:
        lineage, start = replica.log.epoch_entries(), replica.log.log_start_offset

        def steps(
            objects: ObjectStore, segments: RemoteSegments
        ) -> AsyncSteps[TimestampAndOffset | None]:
            return search(objects, segments.ranges(lineage), timestamp, start)

        self._run(replica, steps, then)

    def _run(
        self,
        replica: "Replica",
        steps: Callable[[ObjectStore, RemoteSegments], AsyncSteps[T]],
        then: Callable[[T | ErrorCode], None],
    ) -> None:
        objects = self._manager.objects

        def done(outcome: T | TierError) -> None:
            then(ErrorCode.UNKNOWN_SERVER_ERROR if isinstance(outcome, TierError) else outcome)

        def go_on(segments: RemoteSegments | TierError) -> None:
            if isinstance(segments, TierError) or objects is None:
                then(ErrorCode.REPLICA_NOT_AVAILABLE)
            else:
                AsyncTask(steps(objects, segments), done).start()

        if objects is None:
            then(ErrorCode.REPLICA_NOT_AVAILABLE)
        else:
            self._manager.segments(replica, go_on)

    # Records by offset.

    def _read(
        self,
        objects: ObjectStore,
        find: Find,
        offset: int,
        *,
        max_bytes: int,
        upper_bound: int,
        min_one_batch: bool,
    ) -> AsyncSteps[tuple[Buffer, ...] | None]:
        """None where the tier does not have the offset."""
        tiered = find(offset)
        if tiered is None:
            return None
        while tiered is not None and offset < upper_bound:
            data = yield from self._read_range(
                objects,
                tiered,
                offset,
                max_bytes=max_bytes,
                upper_bound=upper_bound,
                min_one_batch=min_one_batch,
            )
            if data is not None:
                return (data,) if data else ()
            # Compaction may have left nothing from the offset on to the segment's end.
            offset = tiered.end_offset + 1
            tiered = find(offset)
        return ()

    def _read_range(
        self,
        objects: ObjectStore,
        tiered: TieredRange,
        offset: int,
        *,
        max_bytes: int,
        upper_bound: int,
        min_one_batch: bool,
    ) -> AsyncSteps[memoryview | None]:
        """None where no batch that may be read holds the offset or one behind it."""
        segment, bound = tiered.segment, min(upper_bound, tiered.end_offset + 1)
        index = yield from self.indexes.offsets(objects, segment)
        records = RemoteRecords(objects, segment)
        is_bounded = bound <= segment.end_offset
        end = (index.position_after(bound - 1) if is_bounded else None) or records.size
        start = index.lookup(offset)
        latest = index.position_after(offset)
        wanted = (start + READ_AHEAD if latest is None else latest) + max(max_bytes, HEADER_SIZE)
        yield from records.between(start, min(wanted, max(end, start + HEADER_SIZE)))
        position, header = start, (yield from records.header_at(start))
        while header is not None and header.last_offset < offset:
            position += header.size
            header = yield from records.header_at(position)
        if header is None or header.base_offset >= bound:
            return None
        if header.last_offset >= bound or (header.size > max_bytes and not min_one_batch):
            return memoryview(b"")
        until = position + max(max_bytes, header.size) if min_one_batch else position + max_bytes
        data = yield from records.between(position, min(until, max(end, position + header.size)))
        return _before(data, bound) if is_bounded else data

    # Records by time.

    def _first_of(
        self, objects: ObjectStore, ranges: Iterable[TieredRange], timestamp: int, start: int
    ) -> AsyncSteps[TimestampAndOffset | None]:
        for tiered in ranges:
            if tiered.segment.max_timestamp >= timestamp and tiered.end_offset >= start:
                found = yield from self._first_in(objects, tiered, timestamp, start)
                if found is not None:
                    return found
        return None

    def _first_in(
        self, objects: ObjectStore, tiered: TieredRange, timestamp: int, start: int
    ) -> AsyncSteps[TimestampAndOffset | None]:
        times = yield from self.indexes.times(objects, tiered.segment)
        offsets = yield from self.indexes.offsets(objects, tiered.segment)
        position = offsets.lookup(max(times.lookup(timestamp).offset, start))
        records = RemoteRecords(objects, tiered.segment)
        while (header := (yield from records.header_at(position))) is not None:
            if header.base_offset > tiered.end_offset:
                return None
            if header.max_timestamp >= timestamp and header.last_offset >= start:
                batch = yield from records.between(position, position + header.size)
                found = first_in(batch, header, timestamp, start)
                if found is not None:
                    return found
            position += header.size
        return None

    def _latest_of(
        self, objects: ObjectStore, ranges: Iterable[TieredRange], timestamp: int, start: int
    ) -> AsyncSteps[TimestampAndOffset | None]:
        latest: TimestampAndOffset | None = None
        for tiered in sorted(ranges, key=_latest_first):
            highest = tiered.segment.max_timestamp
            if highest < timestamp or (latest is not None and highest <= latest.timestamp):
                break
            if tiered.end_offset < start:
                continue
            found = yield from self._first_in(objects, tiered, highest, start)
            if found is None:  # what was so late lies before the log start, or in another lineage
                found = yield from self._latest_in(objects, tiered, start)
            if found is not None and found.timestamp >= timestamp:
                latest, timestamp = found, found.timestamp + 1
        return latest

    def _latest_in(
        self, objects: ObjectStore, tiered: TieredRange, start: int
    ) -> AsyncSteps[TimestampAndOffset | None]:
        """The first of the latest records from the log start to the end of a range."""
        latest: TimestampAndOffset | None = None
        offsets = yield from self.indexes.offsets(objects, tiered.segment)
        position = offsets.lookup(start)
        records = RemoteRecords(objects, tiered.segment)
        while (header := (yield from records.header_at(position))) is not None:
            if header.base_offset > tiered.end_offset:
                break
            if latest is None or header.max_timestamp > latest.timestamp:
                batch = yield from records.between(position, position + header.size)
                for found in _records_in(batch, header, start, tiered.end_offset):
                    if latest is None or found.timestamp > latest.timestamp:
                        latest = found
            position += header.size
        return latest


def _records_in(
    batch: memoryview, header: BatchHeader, start: int, end: int
) -> Iterator[TimestampAndOffset]:
    """What records of a batch lie from one offset to another (both inclusive)."""
    with suppress(InvalidRecords):
        for record in iter_records(batch):
            if start <= record.offset <= end:
                yield TimestampAndOffset(
                    record.timestamp, record.offset, header.partition_leader_epoch
                )


def _latest_first(tiered: TieredRange) -> tuple[int, int]:
    return -tiered.segment.max_timestamp, tiered.start_offset


def _before(data: memoryview, bound: int) -> memoryview:
    """Without the batches that end at or behind an offset, whole or not."""
    position = 0
    while len(data) - position >= HEADER_SIZE:
        header = peek_header(data, position)
        if header.last_offset >= bound:
            return data[:position]
        position += header.size
    return data[:position] if position <= len(data) else data
