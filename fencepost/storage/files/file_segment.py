"""A segment in files: ``.log``, and the sparse ``.index`` and ``.timeindex`` over it.

Its last buffers are in the tail cache, so that reads at the end of the log need no file.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.records import BatchHeader
from fencepost.storage.files.file_system import DamagedSegment
from fencepost.storage.files.index_lookup import (
    SegmentEnd,
    SegmentIndexes,
    check_indexes,
    count_records,
    matches_time_entry,
    read_around,
    read_at,
    scan_batches,
    scan_headers,
    scan_to,
)
from fencepost.storage.files.inventory import head_checksum
from fencepost.storage.files.process_limits import SegmentTail
from fencepost.storage.files.segment_files import LogDirectory, SegmentBytes, SegmentFiles
from fencepost.storage.files.transaction_index_file import TransactionIndexFile
from fencepost.storage.formats.file_names import FileKind, FileState
from fencepost.storage.formats.indexes import CorruptIndex, TimestampOffset
from fencepost.storage.log.producer_state import ProducerStateEntry, ProducerStateManager
from fencepost.storage.log.transactions import AbortedTransaction

_PENDING_BYTES: Final = 1 << 20


class FileSegment:
    """A `LogSegment` in files; see there.

    The end of its batches, their largest timestamp and the number of records are computed on first
    use: to open it only the file's size is read.

    :ivar files: Where it is; only for the log's store.
    :ivar is_synced: Whether everything in it is durable.
    :param producers: The log's producers before its first record; None where they are in their
        file, if anywhere.
    :param size: Bytes of the ``.log``, which is there already; None makes a new one.
    """

    __slots__ = (
        "_end",
        "_home",
        "_indexes",
        "_interval",
        "_is_written",
        "_log",
        "_max_index_bytes",
        "_pending",
        "_producers",
        "_records",
        "_rolling_timestamp",
        "_size",
        "_tail",
        "_transactions",
        "base_offset",
        "created_ms",
        "files",
        "is_synced",
        "last_modified_ms",
    )

    def __init__(
        self,
        home: LogDirectory,
        base_offset: int,
        *,
        created_ms: int,
        last_modified_ms: int,
        producers: tuple[ProducerStateEntry, ...] | None = None,
        size: int | None = None,
        state: FileState = FileState.LIVE,
        head: int | None = None,
    ) -> None:
        self._home = home
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.last_modified_ms = last_modified_ms
        self._producers = producers
        self._interval = home.config.index_interval_bytes
        self._max_index_bytes = home.config.segment_index_bytes
        self.files = SegmentFiles(home, base_offset, state, size=size or 0, head=head)
        self._log = self.files.log
        self._size = size or 0  # including headers whose bytes are not appended yet
        self._tail: SegmentTail | None = None
        self._transactions = TransactionIndexFile(
            home.files,
            lambda: self.files.path(FileKind.TRANSACTION_INDEX),
            home.checksums,
            home.rebuilt,
        )
        self._pending: list[Buffer] | None = None
        self._rolling_timestamp: int | None = None
        self._end: SegmentEnd | None = None
        self._indexes: SegmentIndexes | None = None
        self._records: int | None = None
        self._is_written = size is not None
        self.is_synced = size is not None
        if size is None:
            self._log.create()
            self.reset()
            self._transactions.clear()

    def reset(self) -> None:
        """Forget all batches, so that `add_header` can add those of the file again."""
        if self._indexes is not None:
            self._home.shared.indexes.remove(self)
        self._end = SegmentEnd(self.base_offset)
        self._indexes = SegmentIndexes.empty(self.base_offset)
        self._records = 0
        self._size = 0
        self._rolling_timestamp = None
        self._is_written = self.is_synced = False
        if self.files.state is FileState.CLEANED:
            self._pending = []

    # Its state.

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
        return self._load_indexes().is_full(self._max_index_bytes)

    @property
    def records(self) -> int:
        """How many records it holds."""
        if self._records is None:
            self._records = count_records(self._log.read, 0, self._size)
        return self._records

    @property
    def next_offset(self) -> int:
        """The offset after the last batch."""
        return (self._end or self._load_end()).next_offset

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp (ms), -1 without one."""
        return (self._end or self._load_end()).max_timestamp

    @property
    def rolling_timestamp(self) -> int | None:
        """Max timestamp of the first append (ms), None without one; segment.ms counts from it."""
        if self._rolling_timestamp is None and self._size:
            _, header = next(scan_headers(self._log.read, 0, self._size))
            self._rolling_timestamp = header.max_timestamp
        return self._rolling_timestamp

    @property
    def producer_snapshot(self) -> tuple[ProducerStateEntry, ...]:
        """The log's producers before its first record."""
        known = self._producers
        return self._home.producers_at(self.base_offset) if known is None else known

    @property
    def aborted(self) -> Sequence[AbortedTransaction]:
        """The aborted transactions whose markers it holds, in order of the markers."""
        return self._transactions.entries(self.base_offset, self._find_aborted)

    def _find_aborted(self) -> list[AbortedTransaction]:
        producers = ProducerStateManager()
        producers.restore(self.producer_snapshot)
        return producers.replay(self.scan())

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

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        """Add a transaction to `aborted`; its marker is the segment's last batch."""
        self._transactions.entries(self.base_offset, self._find_aborted)
        self._transactions.append(transaction)

    def append(self, buffer: Buffer, header: BatchHeader, now_ms: int) -> None:
        """Keep a buffer that is exactly one batch."""
        self.add_header(header, now_ms)
        self.append_bytes(buffer)

    def add_header(self, header: BatchHeader, now_ms: int) -> None:
        """Add the header of a batch whose bytes the caller passes to `append_bytes`."""
        end = self._end or self._load_end()
        if self._is_written:
            self._mark_indexes_unwritten()
        if not self._size:
            self._rolling_timestamp = header.max_timestamp
        assert self._indexes is not None, "unwritten indexes are in memory"
        end.add_batch(header, self._size, self._indexes, self._interval)
        self._size += header.size
        if self._records is not None:
            self._records += header.record_count
        self.last_modified_ms = now_ms
        self.is_synced = False

    def append_bytes(self, buffer: Buffer) -> None:
        """Append one or more whole batches, whose headers `add_header` has added."""
        if self._pending is not None:
            if self.files.head is None:
                self.files.head = head_checksum(buffer)
            self._pending.append(buffer)
            if self._size - self._log.size > _PENDING_BYTES:
                self._write_pending()
            return
        position = self._log.size
        self._log.append((buffer,))
        if not position:
            self.files.head = head_checksum(buffer)
            self._home.on_new_segment()
        if self._tail is None:
            self._tail = SegmentTail(self._home.shared.tail_cache)
        self._tail.append(position, buffer)

    def _write_pending(self) -> None:
        if self._pending:
            self._log.append(self._pending)
            self._pending = []

    # Reading.

    def read(
        self, offset: int, *, max_bytes: int, upper_bound: int, min_one_batch: bool
    ) -> list[Buffer]:
        """What `Log.read` gives out of this segment; nothing where there is nothing."""
        known = self._end or self._load_end()
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
        found = read_around(
            self._log.read,
            self._load_indexes().offsets,
            offset,
            size=self._size,
            end=end,
            max_bytes=max_bytes,
            min_one_batch=min_one_batch,
        )
        if found is not None:
            return found
        return read_at(
            self._log.read,
            self._position_of(offset),
            end=end,
            max_bytes=max_bytes,
            min_one_batch=min_one_batch,
        )

    def size_between(self, offset: int, upper_bound: int) -> int:
        """Bytes of the batches from the one that holds `offset` to before `upper_bound`."""
        return max(self._position_of(upper_bound) - self._position_of(offset), 0)

    def _position_of(self, offset: int) -> int:
        """Where the first batch begins that ends at or after `offset`; the end where none does."""
        if offset <= self.base_offset:
            return 0
        if offset >= self.next_offset:
            return self._size
        begin = self._load_indexes().offsets.lookup(offset)
        try:
            return scan_to(self._log.read, offset, begin=begin, size=self._size)
        except DamagedSegment:
            if not begin:
                raise
        # No batch begins where the index says, or another one.
        begin = self._rebuild().offsets.lookup(offset)
        return scan_to(self._log.read, offset, begin=begin, size=self._size)

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
        for _, batch, header in scan_batches(self._log.read, start, self._size):
            if is_early and timestamp is not None and header.max_timestamp < timestamp:
                continue
            is_early = False
            yield batch, header

    def _before(self, timestamp: int) -> int:
        """A position before which no record is as late as `timestamp`."""
        earlier = self._load_indexes().times.lookup(timestamp - 1)
        if not self._is_time_entry_right(earlier):
            self._rebuild()
            earlier = self._load_indexes().times.lookup(timestamp - 1)
        return self._position_of(earlier.offset)

    def _is_time_entry_right(self, entry: TimestampOffset) -> bool:
        """Whether the batch that an entry of the time index means is as late as it says."""
        if entry.timestamp < 0:
            return True
        position = self._position_of(entry.offset)
        return matches_time_entry(self._log.read, position, entry, size=self._size)

    def copy(self) -> SegmentBytes:
        """All its bytes, batch after batch, read as they are taken."""
        return self.files.copy()

    # Cutting and leaving.

    def truncate(self, offset: int) -> None:
        """Drop the batch that holds `offset` and all after it."""
        position = self._position_of(offset)
        if position == self._size:
            return
        self._home.before_loss((self.base_offset,))
        if self._records is not None:
            self._records -= count_records(self._log.read, position, self._size)
        indexes = self._load_indexes()
        self._mark_indexes_unwritten()
        if self._tail is not None:
            self._tail.truncate(position)
        self._log.truncate(position)
        self._size = position
        self._transactions.entries(self.base_offset, self._find_aborted)
        self._transactions.truncate(offset)
        indexes.offsets.truncate(offset)
        indexes.times.truncate(offset)
        self._end = self._walk_end(indexes)
        if not position:  # of an empty segment none are written, which would replace them
            self.files.remove_indexes()

    def free_some(self) -> bool:
        """Let go of what is in memory and of the open file; False when nothing is left."""
        if self._tail is not None:
            self._tail.clear()
            self._tail = None
        self._home.shared.indexes.remove(self)
        self._log.close()
        return False

    # Only the log's store uses the following methods, and `files`.

    def finish(self) -> None:
        """Write the indexes: nothing is appended any more, or not for a long time."""
        if self._is_written:
            return
        self._write_pending()
        indexes, end = self._load_indexes(), self._end or self._load_end()
        indexes.close(end)
        if self._size:
            self.files.write_indexes(indexes, modified_ms=self.last_modified_ms)
        self._is_written = True
        self.is_synced = False
        self._home.shared.indexes.add(self, indexes.cost)
        if self._producers:
            self._producers = None  # they are in their file

    def sync(self) -> None:
        """Make everything durable but names: see `FileSegments.sync`."""
        if self.is_synced:
            return
        self.files.sync(log_only=not self._is_written)
        self.is_synced = True

    def mark_synced(self) -> None:
        """Record that everything is durable: another thread has synced it."""
        self.is_synced = self._is_written

    def rename(self, state: FileState) -> None:
        """Take another suffix: see `SegmentFiles.rename`."""
        self.files.rename(state)
        if state is FileState.LIVE:
            self._pending = None

    def remove(self, *, with_snapshot: bool) -> None:
        """Remove its files: see `SegmentFiles.remove`."""
        self.free_some()
        self.files.remove(with_snapshot=with_snapshot)

    def forget_aborted(self) -> None:
        """Forget the aborted transactions, so that `add_aborted` can add them again."""
        self._transactions.clear()

    # Indexes.

    def _mark_indexes_unwritten(self) -> None:
        """The files will not say any more what is in memory."""
        self._load_indexes()
        self._home.shared.indexes.remove(self)
        self._is_written = self.is_synced = False

    def _load_indexes(self) -> SegmentIndexes:
        indexes = self._indexes
        if indexes is None:
            indexes = self._load()
        indexes.used = True
        return indexes

    def _load(self) -> SegmentIndexes:
        self.files.check_head()
        if not self._size:
            indexes = SegmentIndexes.empty(self.base_offset)
        else:
            try:
                indexes = self.files.read_indexes()
                check_indexes(indexes, self._log.read, size=self._size)
            except (CorruptIndex, FileNotFoundError):
                return self._rebuild()
        self._indexes = indexes
        self._home.shared.indexes.add(self, indexes.cost)
        return indexes

    def _rebuild(self) -> SegmentIndexes:
        """Make the indexes from the batches, and write them."""
        size, modified = self._size, self.last_modified_ms
        self.reset()
        for _, header in scan_headers(self._log.read, 0, size):
            self.add_header(header, modified)
        indexes = self._indexes
        assert indexes is not None, "`reset` makes empty ones"
        self.finish()
        self._home.rebuilt += self.files.index_names
        self._indexes = indexes
        return indexes

    def _load_end(self) -> SegmentEnd:
        indexes = self._load_indexes()
        if self._end is None:
            self._end = self._walk_end(indexes)
            if not self._is_time_entry_right(indexes.times.last):
                self._rebuild()
        return self._end

    def _walk_end(self, indexes: SegmentIndexes) -> SegmentEnd:
        tail = scan_headers(self._log.read, indexes.offsets.last.position, self._size)
        return SegmentEnd.of_existing(indexes, tail, base_offset=self.base_offset, size=self._size)
