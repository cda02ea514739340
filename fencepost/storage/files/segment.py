"""A segment in files: ``.log``, and the sparse ``.index`` and ``.timeindex`` over it.

Nothing is kept for each batch: a lookup finds the last entry of a sparse index that lies before
what is looked for, and reads on from there. A read for a consumer takes that part along and cuts
it off, so that it is one system call however the offset lies to the entries.

Reads are by pread, not from a memory map. A map saves a copy: 1 MB takes 0.15 ms to read and 0.03
ms to look at in a map, and on its way through a socket 0.3 ms against 0.2. But whoever holds a
view of a map, as the journal and slow sockets do, dies with the process when the file is cut under
it or the disk fails. What is read most, the end of the log, is not read from the file at all.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final
from weakref import finalize

from fencepost.protocol.buffers import Buffer
from fencepost.protocol.records import HEADER_SIZE, LOG_OVERHEAD, BatchHeader
from fencepost.storage.config import LogConfig
from fencepost.storage.files.failures import DamagedSegment
from fencepost.storage.files.indexes import End, SegmentIndexes
from fencepost.storage.files.io import File, FileSystem
from fencepost.storage.files.log_file import LogFile
from fencepost.storage.files.recent import Tail
from fencepost.storage.files.shared import Shared
from fencepost.storage.files.walking import batches, headers
from fencepost.storage.formats.index_file import CorruptIndex
from fencepost.storage.formats.names import FileKind, FileState, segment_file_name
from fencepost.storage.formats.offset_index import OffsetIndex
from fencepost.storage.formats.time_index import TimeIndex, TimestampOffset
from fencepost.storage.producers import ProducerView

_PENDING_BYTES: Final = 1 << 20
_COPY_BYTES: Final = 1 << 20
_FAR: Final = 256 << 10
_HEAD: Final = struct.Struct(">qi")
_DELTA: Final = struct.Struct(">i")
_DELTA_AT: Final = 23
INDEX_KINDS: Final = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)


@dataclass(slots=True, kw_only=True)
class Home:
    """What the segments of one log have in common.

    :ivar config: As of the last change; a segment takes from it when it is made.
    :ivar rebuilt: Names of files that were rebuilt because they were missing or broken.
    :ivar producers_at: Finds the producers before the segment of a base offset in their file.
    """

    files: FileSystem
    directory: PurePath
    shared: Shared
    config: LogConfig
    rebuilt: list[str]
    producers_at: Callable[[int], tuple[ProducerView, ...]]

    def path(self, offset: int, kind: FileKind, state: FileState = FileState.LIVE) -> PurePath:
        """Path of a segment's file."""
        return self.directory / segment_file_name(offset, kind, state)


class FileSegment:
    """A `LogSegment` in files; see there.

    What it knows of its batches (their end, their largest timestamp, how many records they hold)
    is found out when it is first asked for: to open it costs a look at the file's size.

    :param producers: The log's producers before its first record; None where they are in their
        file, if anywhere.
    :param size: Bytes of the ``.log``, which is there already; None makes a new one.
    """

    __slots__ = (
        "_end",
        "_home",
        "_indexes",
        "_interval",
        "_is_synced",
        "_is_written",
        "_log",
        "_max_index_bytes",
        "_pending",
        "_producers",
        "_records",
        "_rolling_timestamp",
        "_size",
        "_state",
        "_tail",
        "base_offset",
        "created_ms",
        "last_modified_ms",
    )

    def __init__(
        self,
        home: Home,
        base_offset: int,
        *,
        created_ms: int,
        last_modified_ms: int,
        producers: tuple[ProducerView, ...] | None = None,
        size: int | None = None,
        state: FileState = FileState.LIVE,
    ) -> None:
        self._home = home
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.last_modified_ms = last_modified_ms
        self._producers = producers
        self._state = state
        self._interval = home.config.index_interval_bytes
        self._max_index_bytes = home.config.segment_index_bytes
        path = home.path(base_offset, FileKind.LOG, state)
        self._log = LogFile(home.files, path, home.shared.open_files, size=size or 0)
        self._size = size or 0  # with what was noted and is still to be kept
        self._tail: Tail | None = None
        self._pending: list[Buffer] | None = None
        self._rolling_timestamp: int | None = None
        self._end: End | None = None
        self._indexes: SegmentIndexes | None = None
        self._records: int | None = None
        self._is_written = size is not None
        self._is_synced = size is not None
        if size is None:
            self._log.create()
            self.begin_anew()

    def begin_anew(self) -> None:
        """Know of no batch, so that `index` can take note of those that are in the file."""
        if self._indexes is not None:
            self._home.shared.indexes.drop(self)
        self._end = End(self.base_offset)
        self._indexes = SegmentIndexes.empty(self.base_offset)
        self._records = 0
        self._size = 0
        self._rolling_timestamp = None
        self._is_written = self._is_synced = False
        if self._state is FileState.CLEANED:
            self._pending = []

    # What it knows.

    @property
    def is_empty(self) -> bool:
        """Whether it holds no batch."""
        return not self._size

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return self._size

    @property
    def is_full(self) -> bool:
        """Whether its indexes have no place for more entries."""
        return self._loaded().is_full(self._max_index_bytes)

    @property
    def records(self) -> int:
        """How many records it holds."""
        if self._records is None:
            every = headers(self._log.read, 0, self._size)
            self._records = sum(header.record_count for _, header in every)
        return self._records

    @property
    def next_offset(self) -> int:
        """The offset after the last batch."""
        return (self._end or self._learned()).next_offset

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp (ms), -1 without one."""
        return (self._end or self._learned()).max_timestamp

    @property
    def rolling_timestamp(self) -> int | None:
        """Max timestamp of the first append (ms), None without one; segment.ms counts from it."""
        if self._rolling_timestamp is None and self._size:
            _, header = next(headers(self._log.read, 0, self._size))
            self._rolling_timestamp = header.max_timestamp
        return self._rolling_timestamp

    @property
    def producer_snapshot(self) -> tuple[ProducerView, ...]:
        """The log's producers before its first record."""
        known = self._producers
        return self._home.producers_at(self.base_offset) if known is None else known

    @property
    def used(self) -> bool:
        """For the bound: whether its indexes were used since their last turn."""
        return self._indexes is not None and self._indexes.used

    @used.setter
    def used(self, value: bool) -> None:
        if self._indexes is not None:
            self._indexes.used = value

    def release(self) -> None:
        """Let go of the indexes; they can be loaded again."""
        if self._is_written:
            self._indexes = None

    # Appending.

    def append(self, buffer: Buffer, header: BatchHeader, now_ms: int) -> None:
        """Keep a buffer that is exactly one batch."""
        self.index(header, now_ms)
        self.keep(buffer)

    def index(self, header: BatchHeader, now_ms: int) -> None:
        """Take note of a batch whose bytes the caller hands to `keep`."""
        end = self._end or self._learned()
        if self._is_written:
            self._unwrite()
        if not self._size:
            self._rolling_timestamp = header.max_timestamp
        assert self._indexes is not None, "indexes that are not written are held"
        end.take(header, self._size, self._indexes, self._interval)
        self._size += header.size
        if self._records is not None:
            self._records += header.record_count
        self.last_modified_ms = now_ms
        self._is_synced = False

    def keep(self, buffer: Buffer) -> None:
        """Keep one or more whole batches, which were noted by `index`, at the end."""
        if self._pending is not None:
            self._pending.append(buffer)
            if self._size - self._log.size > _PENDING_BYTES:
                self._write_pending()
            return
        position = self._log.size
        self._log.append((buffer,))
        if self._tail is None:
            self._tail = Tail(self._home.shared.recent)
        self._tail.keep(position, buffer)

    def _write_pending(self) -> None:
        if self._pending:
            self._log.append(self._pending)
            self._pending = []

    # Reading.

    def read(
        self, offset: int, *, max_bytes: int, upper_bound: int, min_one_batch: bool
    ) -> list[Buffer]:
        """What `Log.read` gives out of this segment; nothing where there is nothing."""
        known = self._end or self._learned()
        if offset >= known.next_offset:
            return []
        all_of_it = upper_bound >= known.next_offset
        if self._tail is not None:
            found = self._tail.read(
                offset,
                end=self._size if all_of_it else -1,
                max_bytes=max_bytes,
                upper_bound=upper_bound,
                min_one_batch=min_one_batch,
            )
            if found is not None:
                return found
        end = self._size if all_of_it else self._position_of(upper_bound)
        data, start, first_size = self._read_around(offset, end, max_bytes)
        size = end - start
        if size <= 0:
            return []
        if size > max_bytes:
            if first_size <= max_bytes:
                size = max_bytes
            elif min_one_batch:
                size = first_size
            else:
                return []
        if len(data) == size:
            return [data]
        if len(data) < size:
            return [self._log.read(start, start + size)]
        return [data[:size]]

    def _read_around(self, offset: int, end: int, max_bytes: int) -> tuple[memoryview, int, int]:
        """The first batch that ends at or after `offset`, and what follows it.

        :param end: Of what may be read: a batch ends there.
        :returns: The bytes from that batch on, `max_bytes` at least as far as they are there; its
            position, which is `end` at most; its size.
        """
        offsets = self._loaded().offsets
        begin = offsets.lookup(offset)
        latest = offsets.position_after(offset) or self._size
        wanted = max(max_bytes, HEADER_SIZE)
        if latest - begin < _FAR:
            begin = min(begin, end)
            data = memoryview(self._log.read(begin, min(end, latest + wanted)))
            found = _find(data, offset, is_first=not begin)
            if found is not None:
                return data[found[0] :], begin + found[0], found[1]
        # Entries are missing or wrong, or batches large, or it lies behind the end.
        begin = self._position_of(offset)
        if begin >= end:
            return memoryview(b""), end, 0
        data = memoryview(self._log.read(begin, min(end, begin + wanted)))
        _, length = _HEAD.unpack_from(data)
        return data, begin, length + LOG_OVERHEAD

    def size_between(self, offset: int, upper_bound: int) -> int:
        """Bytes of the batches from the one that holds `offset` to before `upper_bound`."""
        return max(self._position_of(upper_bound) - self._position_of(offset), 0)

    def _position_of(self, offset: int) -> int:
        """Where the first batch begins that ends at or after `offset`; the end where none does."""
        if offset <= self.base_offset:
            return 0
        if offset >= self.next_offset:
            return self._size
        begin = self._loaded().offsets.lookup(offset)
        try:
            return self._walk_to(offset, begin)
        except DamagedSegment:
            if not begin:
                raise
        self._rebuild()  # no batch begins where the index says, or another one
        return self._walk_to(offset, self._loaded().offsets.lookup(offset))

    def _walk_to(self, offset: int, begin: int) -> int:
        for position, header in headers(self._log.read, begin, self._size):
            if header.base_offset + header.last_offset_delta >= offset:
                if position == begin and header.last_offset > offset and begin:
                    raise DamagedSegment(begin, "the index says that an earlier batch begins here")
                return position
        raise DamagedSegment(self._size, "batches are missing")

    def scan(
        self, *, offset: int = 0, timestamp: int | None = None
    ) -> Iterator[tuple[Buffer, BatchHeader]]:
        """Batches and their headers, from the first on that ends at or after `offset`."""
        self._write_pending()
        if offset >= self.next_offset:
            return
        if timestamp is not None and timestamp > self.max_timestamp:
            return
        start = self._position_of(offset)
        if timestamp is not None:
            start = max(start, self._before(timestamp))
        is_early = timestamp is not None
        for _, batch, header in batches(self._log.read, start, self._size):
            if is_early and timestamp is not None and header.max_timestamp < timestamp:
                continue
            is_early = False
            yield batch, header

    def _before(self, timestamp: int) -> int:
        """A position before which no record is as late as `timestamp`."""
        earlier = self._loaded().times.lookup(timestamp - 1)
        if not self._says_so(earlier):
            self._rebuild()
            earlier = self._loaded().times.lookup(timestamp - 1)
        return self._position_of(earlier.offset)

    def _says_so(self, entry: TimestampOffset) -> bool:
        """Whether the batch that an entry of the time index means is as late as it says."""
        if entry.timestamp < 0:
            return True
        position = self._position_of(entry.offset)
        _, header = next(headers(self._log.read, position, self._size), (0, None))
        return header is not None and (header.last_offset, header.max_timestamp) == (
            entry.offset,
            entry.timestamp,
        )

    def copy(self) -> "SegmentBytes":
        """All its bytes, batch after batch, read as they are taken."""
        return SegmentBytes(self._home.files.open(self._log.path), self._log.size)

    # Cutting and leaving.

    def truncate(self, offset: int) -> None:
        """Drop the batch that holds `offset` and all after it."""
        position = self._position_of(offset)
        if position == self._size:
            return
        if self._records is not None:
            gone = headers(self._log.read, position, self._size)
            self._records -= sum(header.record_count for _, header in gone)
        indexes = self._loaded()
        self._unwrite()
        if self._tail is not None:
            self._tail.truncate(position)
        self._log.truncate(position)
        self._size = position
        indexes.offsets.truncate(offset)
        indexes.times.truncate(offset)
        self._end = self._walk_end(indexes)

    def shed(self) -> bool:
        """Let go of what is in memory and of the open file; False when nothing is left."""
        if self._tail is not None:
            self._tail.clear()
            self._tail = None
        self._home.shared.indexes.drop(self)
        self._log.close()
        return False

    # Files. Nobody but the log's store uses what follows.

    @property
    def name(self) -> str:
        """Name of the ``.log``."""
        return self._log.path.name

    @property
    def is_synced(self) -> bool:
        """Whether everything in it is durable."""
        return self._is_synced

    @property
    def file_size(self) -> int:
        """Bytes in the ``.log``."""
        return self._log.size

    def whole_batches(self) -> Iterator[tuple[int, memoryview, BatchHeader]]:
        """Position, bytes and header of each batch in the file, noted or not.

        :raises DamagedSegment: Where there is none.
        """
        return batches(self._log.read, 0, self._log.size)

    def cut(self) -> None:
        """Cut the ``.log`` off behind the batches that have been noted."""
        self._log.truncate(self._size)

    def finish(self) -> None:
        """Write the indexes: nothing is appended any more, or not for a long time."""
        if self._is_written:
            return
        self._write_pending()
        indexes, end = self._loaded(), self._end or self._learned()
        if end.max_timestamp > indexes.times.last.timestamp:
            indexes.times.append(end.max_timestamp, end.max_timestamp_at)
        files = self._home.files
        if self._size:
            files.write_aside(
                self._path(FileKind.OFFSET_INDEX), indexes.offsets.encode(), sync=False
            )
            files.write_aside(self._path(FileKind.TIME_INDEX), indexes.times.encode(), sync=False)
            files.set_modified_ms(self._log.path, self.last_modified_ms)
        self._is_written = True
        self._is_synced = False
        self._home.shared.indexes.hold(self, indexes.cost)
        if self._producers:
            self._producers = None  # they are in their file

    def sync(self) -> None:
        """Make everything durable but names: see `FileSegments.sync`."""
        if self._is_synced:
            return
        self._log.sync()
        if self._is_written:
            for path in self.paths()[1:]:
                self._sync_file(path)
        self._is_synced = True

    def note_synced(self) -> None:
        """Take it that everything is durable: somebody else has synced it."""
        self._is_synced = self._is_written

    def paths(self) -> list[PurePath]:
        """Its files, which need not all be there; the ``.log`` first."""
        kinds = (FileKind.LOG, *INDEX_KINDS, FileKind.PRODUCER_SNAPSHOT)
        return [self._path(kind) for kind in kinds]

    def _sync_file(self, path: PurePath) -> None:
        if self._home.files.exists(path):
            file = self._home.files.open(path)
            try:
                file.sync()
            finally:
                file.close()

    def rename(self, state: FileState) -> None:
        """Take another suffix, the ``.log`` last: it is what counts when a crash leaves some."""
        files = self._home.files
        for kind in INDEX_KINDS:
            old = self._path(kind)
            if files.exists(old):
                files.rename(old, self._home.path(self.base_offset, kind, state))
        self._log.rename(self._home.path(self.base_offset, FileKind.LOG, state))
        self._state = state
        if state is FileState.LIVE:
            self._pending = None

    def remove(self, *, with_snapshot: bool) -> None:
        """Remove its files, the ``.log`` first: indexes without one are nothing."""
        self.shed()
        files = self._home.files
        files.remove(self._log.path)
        kinds = (*INDEX_KINDS, FileKind.TRANSACTION_INDEX)
        paths = [self._path(kind) for kind in kinds]
        if with_snapshot:
            paths.append(self._home.path(self.base_offset, FileKind.PRODUCER_SNAPSHOT))
        for path in paths:
            if files.exists(path):
                files.remove(path)

    def _path(self, kind: FileKind) -> PurePath:
        return self._home.path(self.base_offset, kind, self._state)

    # Indexes.

    def _unwrite(self) -> None:
        """The files will not say any more what is in memory."""
        self._loaded()
        self._home.shared.indexes.drop(self)
        self._is_written = self._is_synced = False

    def _loaded(self) -> SegmentIndexes:
        indexes = self._indexes
        if indexes is None:
            indexes = self._load()
        indexes.used = True
        return indexes

    def _load(self) -> SegmentIndexes:
        files, base = self._home.files, self.base_offset
        if not self._size:
            indexes = SegmentIndexes.empty(base)
        else:
            try:
                indexes = SegmentIndexes(
                    OffsetIndex.decode(files.read(self._path(FileKind.OFFSET_INDEX)), base),
                    TimeIndex.decode(files.read(self._path(FileKind.TIME_INDEX)), base),
                )
                self._check(indexes)
            except (CorruptIndex, FileNotFoundError):
                return self._rebuild()
        self._indexes = indexes
        self._home.shared.indexes.hold(self, indexes.cost)
        return indexes

    def _check(self, indexes: SegmentIndexes) -> None:
        """See that the indexes are of this file, as far as their last entries tell."""
        last = indexes.offsets.last
        if not last.position:
            return
        if last.position >= self._size:
            raise CorruptIndex(f"the last entry says {last.position} of {self._size} bytes")
        try:
            _, header = next(headers(self._log.read, last.position, self._size))
        except DamagedSegment as error:
            raise CorruptIndex("no batch begins where the last entry says") from error
        if header.last_offset != last.offset:
            raise CorruptIndex(f"the last entry says {last.offset}, not {header.last_offset}")
        if header.max_timestamp > indexes.times.last.timestamp:
            raise CorruptIndex("the time index does not reach as far as the offset index")

    def _rebuild(self) -> SegmentIndexes:
        """Make the indexes from the batches, and write them."""
        size, modified = self._size, self.last_modified_ms
        self.begin_anew()
        for _, header in headers(self._log.read, 0, size):
            self.index(header, modified)
        indexes = self._indexes
        assert indexes is not None, "they were begun anew"
        self.finish()
        self._home.rebuilt += [self._path(kind).name for kind in INDEX_KINDS]
        self._indexes = indexes
        return indexes

    def _learned(self) -> End:
        indexes = self._loaded()
        if self._end is None:
            self._end = self._walk_end(indexes)
            if not self._says_so(indexes.times.last):
                self._rebuild()
        return self._end

    def _walk_end(self, indexes: SegmentIndexes) -> End:
        tail = headers(self._log.read, indexes.offsets.last.position, self._size)
        return End.found(indexes, tail, base_offset=self.base_offset, size=self._size)


def _find(data: memoryview, offset: int, *, is_first: bool) -> tuple[int, int] | None:
    """Position and size of the first batch in `data` that ends at or after `offset`, if any.

    :param is_first: Whether the data is the segment's beginning. Otherwise an index says that its
        first batch ends at or before `offset`, and None is answered where that is not so.
    """
    at = 0
    while at + HEADER_SIZE <= len(data):
        base, length = _HEAD.unpack_from(data, at)
        (delta,) = _DELTA.unpack_from(data, at + _DELTA_AT)
        size = length + LOG_OVERHEAD
        if base + delta >= offset:
            return (at, size) if at or is_first or base + delta == offset else None
        if size < HEADER_SIZE:
            return None
        at += size
    return None


class SegmentBytes:
    """What `LogSegment.copy` gives: the segment may be gone meanwhile, its file stays open."""

    __slots__ = ("__weakref__", "_file", "_size")

    def __init__(self, file: File, size: int) -> None:
        self._file = file
        self._size = size
        finalize(self, file.close)

    def __iter__(self) -> Iterator[Buffer]:
        for start in range(0, self._size, _COPY_BYTES):
            yield self._file.read(start, min(start + _COPY_BYTES, self._size))
