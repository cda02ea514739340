"""Logs in memory: a segment is the buffers that were appended, and where each batch ends."""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from sys import is_finalizing
from typing import Final

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.records import LOG_OVERHEAD, BatchHeader, read_header
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.key_offsets import LatestKeyOffsets
from fencepost.storage.log.leader_epoch_cache import LeaderEpochCache
from fencepost.storage.log.producer_state import ProducerStateEntry
from fencepost.storage.log.segmented_log import SegmentedLog
from fencepost.storage.log.segments import InitialLogState, LogSegment
from fencepost.storage.log.transactions import AbortedTransaction
from fencepost.storage.log_memory import BATCH_BYTES, LogMemory, MemoryBytes


class MemorySegment:
    """A `LogSegment` that knows each of its batches: three parallel arrays.

    Positions are bytes from its beginning. What lookups need down to the batch is in the arrays,
    so that nothing is looked for in the bytes.

    :ivar created_ms: When it was begun.
    :ivar last_modified_ms: When it was last appended to; stands in for the largest timestamp
        where no record has one.
    :ivar rolling_timestamp: Max timestamp of the first append; segment.ms counts from it.
    :ivar records: How many records it holds.
    :ivar is_full: Never: there is no index that could be.
    :ivar producer_snapshot: The log's producers before its first record.
    :ivar aborted: The aborted transactions whose markers it holds.
    :param memory: Counts what the segment takes, until it is freed; None counts nothing.
    """

    __slots__ = (
        "_content",
        "_ends",
        "_last_offsets",
        "_max_timestamps",
        "_memory",
        "aborted",
        "base_offset",
        "created_ms",
        "is_full",
        "last_modified_ms",
        "producer_snapshot",
        "records",
        "rolling_timestamp",
    )

    def __init__(
        self,
        base_offset: int,
        *,
        created_ms: int,
        producer_snapshot: tuple[ProducerStateEntry, ...] = (),
        memory: LogMemory | None = None,
    ) -> None:
        self.base_offset = base_offset
        self._memory = memory
        self._content = MemoryBytes(memory)
        self.created_ms = created_ms
        self.last_modified_ms = created_ms
        self.rolling_timestamp: int | None = None
        self.records = 0
        self.is_full = False
        self.producer_snapshot = producer_snapshot
        self.aborted: Sequence[AbortedTransaction] = ()
        self._last_offsets = array("q")
        self._ends = array("q")
        # The largest of this and all earlier batches: it never falls, so it can be bisected, and
        # cutting the end off leaves it right.
        self._max_timestamps = array("q")

    def __del__(self, is_finalizing: Callable[[], bool] = is_finalizing) -> None:
        """Count it no more, where its memory was not freed in steps before."""
        if self._memory is not None and not is_finalizing():  # modules are empty at the end
            self._memory.used -= BATCH_BYTES * len(self._ends)
            while self._content.free_some():
                pass

    @property
    def is_empty(self) -> bool:
        """Whether it holds no batch."""
        return not self._ends

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        ends = self._ends
        return ends[-1] if ends else 0

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp (ms), -1 without one."""
        timestamps = self._max_timestamps
        return timestamps[-1] if timestamps else -1

    @property
    def next_offset(self) -> int:
        """The offset after the last batch."""
        offsets = self._last_offsets
        return offsets[-1] + 1 if offsets else self.base_offset

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        """Add a transaction to `aborted`; its marker is the segment's last batch."""
        self.aborted = [*self.aborted, transaction]

    def append(self, buffer: Buffer, header: BatchHeader, now_ms: int) -> None:
        """Keep a buffer that is exactly one batch."""
        self.add_header(header, now_ms)
        self._content.append(buffer)

    def add_header(self, header: BatchHeader, now_ms: int) -> None:
        """Add the header of a batch whose bytes the caller passes to `append_bytes`."""
        ends, timestamps = self._ends, self._max_timestamps
        if self._memory is not None:
            self._memory.used += BATCH_BYTES
        max_timestamp = header.max_timestamp
        size = header.batch_length + LOG_OVERHEAD
        if ends:
            ends.append(ends[-1] + size)
            timestamps.append(max(timestamps[-1], max_timestamp))
        else:
            ends.append(size)
            timestamps.append(max_timestamp)
            self.rolling_timestamp = max_timestamp
        self._last_offsets.append(header.base_offset + header.last_offset_delta)
        self.records += header.record_count
        self.last_modified_ms = now_ms

    def append_bytes(self, buffer: Buffer) -> None:
        """Append one or more whole batches, whose headers `add_header` has added."""
        self._content.append(buffer)

    def read(
        self, offset: int, *, max_bytes: int, upper_bound: int, min_one_batch: bool
    ) -> list[Buffer]:
        """What `Log.read` gives out of this segment; nothing where there is nothing."""
        offsets, ends = self._last_offsets, self._ends
        first = bisect_left(offsets, offset)
        stop = len(offsets)
        if stop and offsets[-1] >= upper_bound:
            stop = bisect_left(offsets, upper_bound)
        if first >= stop:
            return []
        start = ends[first - 1] if first else 0
        end = ends[stop - 1]
        if end - start > max_bytes:
            first_end = ends[first]
            if first_end - start <= max_bytes:
                end = start + max_bytes
            elif min_one_batch:
                end = first_end
            else:
                return []
        return self._content.read(start, end)

    def size_between(self, offset: int, upper_bound: int) -> int:
        """Bytes of the batches from the one that holds `offset` to before `upper_bound`."""
        first = bisect_left(self._last_offsets, offset)
        stop = bisect_left(self._last_offsets, upper_bound)
        return self._start_of(stop) - self._start_of(first) if first < stop else 0

    def scan(
        self, *, offset: int = 0, timestamp: int | None = None
    ) -> Iterator[tuple[Buffer, BatchHeader]]:
        """Batches and their headers, from the first on that ends at or after `offset`."""
        first = bisect_left(self._last_offsets, offset)
        if timestamp is not None:  # before this batch there is none that is late enough
            first = max(first, bisect_left(self._max_timestamps, timestamp))
        return self._batches(first)

    def copy(self) -> Sequence[Buffer]:
        """All its bytes, batch after batch."""
        return self._content.read(0, self.size) if self._ends else ()

    def truncate(self, offset: int) -> None:
        """Drop the batch that holds `offset` and all after it."""
        keep = bisect_left(self._last_offsets, offset)
        if keep == len(self._ends):
            return
        self.records -= sum(header.record_count for _, header in self._batches(keep))
        self._content.truncate(self._start_of(keep))
        if self._memory is not None:
            self._memory.used -= BATCH_BYTES * (len(self._ends) - keep)
        del self._last_offsets[keep:], self._ends[keep:], self._max_timestamps[keep:]
        self.aborted = [each for each in self.aborted if each.last_offset < offset]

    def free_some(self) -> bool:
        """Free some of the memory, quickly; False when nothing is left."""
        return self._content.free_some()

    def _start_of(self, batch: int) -> int:
        return self._ends[batch - 1] if batch else 0

    def _batches(self, first: int) -> Iterator[tuple[Buffer, BatchHeader]]:
        for index in range(first, len(self._ends)):
            buffer = self._content.read(self._start_of(index), self._ends[index])[0]
            yield buffer, read_header(buffer)


class _NoKeyOffsets:
    """A `KeyOffsetStore` that stores nothing: the keys are read from the log."""

    __slots__ = ()

    def read(self, log_start_offset: int) -> None:
        """None are stored."""

    def write(
        self,
        keys: LatestKeyOffsets,
        log_start_offset: int,
        epochs: LeaderEpochCache,
        *,
        sync: bool = False,
    ) -> None:
        """Nothing."""

    def write_if_grown(
        self, keys: LatestKeyOffsets, log_start_offset: int, epochs: LeaderEpochCache
    ) -> None:
        """Nothing."""

    def discard_from(self, offset: int) -> None:
        """Nothing."""


class MemorySegmentStore:
    """A `SegmentStore` that keeps nothing: a segment that the log drops is gone.

    :param memory: Counts and limits what logs take; None counts nothing.
    :param free_later: Frees a dropped segment in steps; None leaves it to the last reference.
    :ivar keys: It stores nothing.
    """

    __slots__ = ("_free_later", "_memory", "keys")

    def __init__(
        self,
        memory: LogMemory | None = None,
        free_later: Callable[[Iterator[None]], None] | None = None,
    ) -> None:
        self._memory = memory
        self._free_later = free_later
        self.keys = _NoKeyOffsets()

    def create(
        self,
        base_offset: int,
        *,
        now_ms: int,
        producers: tuple[ProducerStateEntry, ...] | None = None,
    ) -> MemorySegment:
        """A new, empty segment."""
        return MemorySegment(
            base_offset,
            created_ms=now_ms,
            producer_snapshot=producers or (),
            memory=self._memory,
        )

    def create_cleaned(self, first: LogSegment) -> MemorySegment:
        """A new, empty segment in place of `first`."""
        return MemorySegment(
            first.base_offset,
            created_ms=first.created_ms,
            producer_snapshot=first.producer_snapshot,
            memory=self._memory,
        )

    def swap(self, cleaned: Sequence[LogSegment], replaced: Sequence[LogSegment]) -> None:
        """Nothing: segments have no places to take."""

    def discard(self, segments: Sequence[LogSegment]) -> None:
        """Free the segments later; a reader of one has its buffers in a list of its own."""
        if self._free_later is not None:
            self._free_later(_free_segments(list(segments)))

    def refusal(self, size: int, *, is_client: bool) -> str | None:
        """Why nothing may be appended now: the memory of all logs is used up."""
        if self._memory is None:
            return None
        return self._memory.refusal(size, is_client=is_client)


def _free_segments(segments: list[LogSegment]) -> Iterator[None]:
    while segments:
        while segments[-1].free_some():
            yield
        segments.pop()


def memory_log(
    name: str,
    config: LogConfig,
    *,
    now_ms: int = 0,
    start_offset: int = 0,
    store: MemorySegmentStore | None = None,
) -> SegmentedLog:
    """A new log in memory.

    :param name: Topic and partition as Kafka's messages print them: ``topic-0``.
    :param now_ms: When it is made; segment.ms may count from it.
    :param start_offset: Its log start and log end.
    :param store: Makes its segments, and may be that of other logs; None counts no memory.
    """
    store = store or _STORE
    first = store.create(start_offset, now_ms=now_ms)
    return SegmentedLog(name, config, store, InitialLogState.empty(first))


_STORE: Final = MemorySegmentStore()
