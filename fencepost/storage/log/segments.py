"""The segments of a log: the protocols of a segment and of the store that makes them, and a list
of them by offset.

`InitialLogState` is everything that a log consists of when it is opened.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Protocol, Self

from msgspec import Struct

from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.records import LOG_OVERHEAD, MAX_SEQUENCE, BatchHeader
from fencepost.storage.log.key_offsets import KeyOffsetStore
from fencepost.storage.log.leader_epoch_cache import LeaderEpochCache
from fencepost.storage.log.producer_state import ProducerStateEntry, ProducerStateManager
from fencepost.storage.log.transactions import AbortedTransaction


class LogSegment(Protocol):
    """Batches from `base_offset` on, in the order of their offsets.

    :ivar created_ms: When it was begun.
    :ivar last_modified_ms: When it was last appended to; stands in for the largest timestamp
        where no record has one.
    """

    base_offset: int
    created_ms: int
    last_modified_ms: int

    @property
    def is_empty(self) -> bool:
        """Whether it holds no batch."""

    @property
    def size(self) -> int:
        """Bytes of all batches."""

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be appended, however little is in it."""

    @property
    def records(self) -> int:
        """How many records it holds."""

    @property
    def next_offset(self) -> int:
        """The offset after the last batch."""

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp (ms), -1 without one."""

    @property
    def rolling_timestamp(self) -> int | None:
        """Max timestamp of the first append (ms), None without one; segment.ms counts from it."""

    @property
    def producer_snapshot(self) -> tuple[ProducerStateEntry, ...]:
        """The log's producers before its first record."""

    @property
    def aborted(self) -> Sequence[AbortedTransaction]:
        """The aborted transactions whose markers it holds, in order of the markers."""

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        """Add a transaction to `aborted`; its marker is the segment's last batch."""

    def append(self, buffer: Buffer, header: BatchHeader, now_ms: int) -> None:
        """Keep a buffer that is exactly one batch."""

    def add_header(self, header: BatchHeader, now_ms: int) -> None:
        """Add the header of a batch whose bytes the caller passes to `append_bytes`."""

    def append_bytes(self, buffer: Buffer) -> None:
        """Append one or more whole batches, whose headers `add_header` has added."""

    def read(
        self, offset: int, *, max_bytes: int, upper_bound: int, min_one_batch: bool
    ) -> list[Buffer]:
        """What `Log.read` gives out of this segment; nothing where there is nothing.

        Every buffer begins with a batch, and the bytes of one batch lie in one buffer.
        """

    def size_between(self, offset: int, upper_bound: int) -> int:
        """Bytes of the batches from the one that holds `offset` to before `upper_bound`."""

    def scan(
        self, *, offset: int = 0, timestamp: int | None = None
    ) -> Iterator[tuple[Buffer, BatchHeader]]:
        """Batches and their headers, from the first on that ends at or after `offset`.

        :param timestamp: None of those left out at the beginning has a record of that time (ms)
            or a later one.
        """

    def copy(self) -> Iterable[Buffer]:
        """All its bytes, batch after batch, read as they are taken.

        It may be discarded meanwhile, and another thread may take them.
        """

    def truncate(self, offset: int) -> None:
        """Drop the batch that holds `offset` and all after it."""

    def free_some(self) -> bool:
        """Free some of the memory, quickly; False when nothing is left.

        Only for a segment that is not read any more.
        """


def largest_timestamp(segment: LogSegment) -> int:
    """The largest timestamp (ms), or the time of the last append where no record has one."""
    largest = segment.max_timestamp
    return largest if largest >= 0 else segment.last_modified_ms


def should_roll(
    segment: LogSegment,
    header: BatchHeader,
    last_offset: int,
    now_ms: int,
    segment_bytes: int,
    segment_ms: int,
) -> bool:
    """Whether the batch with a header, and with `last_offset`, needs a new segment.

    One segment's offsets differ by less than 2^31, because its indexes say them in 32 bits.
    segment.ms counts in the records' time, from the first batch to this one; where the first
    has no timestamp, in the broker's time from the segment's creation.
    """
    own = segment.size
    if (
        own > segment_bytes - LOG_OVERHEAD - header.batch_length
        or last_offset - segment.base_offset > MAX_SEQUENCE
    ):
        return True
    if not own:
        return False
    if segment.is_full:
        return True
    first = segment.rolling_timestamp
    if first is not None and first >= 0:
        return header.max_timestamp - first > segment_ms
    return now_ms - segment.created_ms > segment_ms


class SegmentInfo:
    """One segment as others may see it, at the time that they look.

    :param ask: Finds out a number that may have to be read from a file.
    """

    __slots__ = ("_ask", "_segment")

    def __init__(self, segment: LogSegment, ask: Callable[[Callable[[], int]], int]) -> None:
        self._segment = segment
        self._ask = ask

    @property
    def base_offset(self) -> int:
        """Where its offsets begin."""
        return self._segment.base_offset

    @property
    def size_bytes(self) -> int:
        """Bytes of all batches."""
        return self._segment.size

    @property
    def created_ms(self) -> int:
        """When it was begun."""
        return self._segment.created_ms

    @property
    def last_modified_ms(self) -> int:
        """When it was last appended to."""
        return self._segment.last_modified_ms

    @property
    def next_offset(self) -> int:
        """The offset after the last batch."""
        return self._ask(lambda: self._segment.next_offset)

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp (ms), -1 without one."""
        return self._ask(lambda: self._segment.max_timestamp)

    @property
    def records(self) -> int:
        """How many records it holds; in a file all headers may have to be read for that."""
        return self._ask(lambda: self._segment.records)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same segment."""
        return isinstance(other, SegmentInfo) and self._segment is other._segment

    def __hash__(self) -> int:
        return hash(self._segment)

    def __repr__(self) -> str:
        size = self.size_bytes
        return f"SegmentInfo({self.base_offset} to {self.next_offset}, {size} bytes)"


def call_directly(number: Callable[[], int]) -> int:
    """What `SegmentInfo` asks where nothing can fail."""
    return number()


class SegmentStore(Protocol):
    """Where the segments of one log live, and the offsets of its keys."""

    @property
    def keys(self) -> KeyOffsetStore:
        """Where the last offsets of the log's keys outlive the process."""

    def create(
        self,
        base_offset: int,
        *,
        now_ms: int,
        producers: tuple[ProducerStateEntry, ...] | None = None,
    ) -> LogSegment:
        """A new, empty segment.

        :param producers: The log's producers before its first record; None where the log begins
            with it, and nothing was before.
        """

    def create_cleaned(self, first: LogSegment) -> LogSegment:
        """A new, empty segment that compaction fills; it begins where `first` does.

        Until it is swapped in, an end of the process leaves nothing of it.
        """

    def swap(self, cleaned: Sequence[LogSegment], replaced: Sequence[LogSegment]) -> None:
        """Let cleaned segments take the place of others: all of them or, after a crash, none."""

    def discard(self, segments: Sequence[LogSegment]) -> None:
        """Lose segments that the log has let go of."""

    def refusal(self, size: int, *, is_client: bool) -> str | None:
        """Why no batches of `size` bytes may be appended as leader now; None if they may.

        :param is_client: Whether a client appends, and not a coordinator.
        """


class LogSegments:
    """One segment at least; the last is the active one.

    :param store: Where they live, and new ones come from.
    """

    __slots__ = ("_aborting", "_bases", "_segments", "_store", "active")

    def __init__(self, store: SegmentStore, segments: Sequence[LogSegment]) -> None:
        self._store = store
        self._hold(list(segments))

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._segments)

    def reset(
        self, offset: int, now_ms: int, producers: tuple[ProducerStateEntry, ...] | None = None
    ) -> None:
        """Lose all and begin with an empty segment at `offset`.

        :param producers: As for `SegmentStore.create`.
        """
        self._store.discard(self._segments)
        self._hold([self._store.create(offset, now_ms=now_ms, producers=producers)])

    def swap(self, cleaned: Sequence[LogSegment], count: int) -> None:
        """Hold cleaned segments instead of the `count` oldest."""
        replaced = self._segments[:count]
        self._store.swap(cleaned, replaced)
        self._hold([*cleaned, *self._segments[count:]])

    def _hold(self, segments: list[LogSegment]) -> None:
        self._segments = segments
        self._aborting: list[LogSegment] | None = None
        """The segments with aborted transactions; None where that must be looked up again."""
        self._bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]

    @property
    def all(self) -> Sequence[LogSegment]:
        """The segments themselves, oldest first."""
        return self._segments

    @property
    def first_offset(self) -> int:
        """Base offset of the oldest."""
        return self._bases[0]

    @property
    def size_bytes(self) -> int:
        """Bytes of all."""
        return sum(segment.size for segment in self._segments)

    def index_of(self, offset: int) -> int:
        """Index of the segment in whose range `offset` lies; the first for what lies before."""
        if len(self._bases) == 1:
            return 0
        return max(bisect_right(self._bases, offset) - 1, 0)

    def add_aborted(self, segment: LogSegment, transaction: AbortedTransaction) -> None:
        """Add an aborted transaction to the segment that gets its marker, the active one."""
        if self._aborting is not None and segment not in self._aborting[-1:]:
            self._aborting.append(segment)
        segment.add_aborted(transaction)

    def aborted_transactions(self, start: int, end: int) -> tuple[AbortedTransaction, ...]:
        """See `Log.aborted_transactions`."""
        if self._aborting is None:
            self._aborting = [segment for segment in self._segments if segment.aborted]
        found: list[AbortedTransaction] = []
        for segment in self._aborting:
            aborted = segment.aborted
            for each in aborted[bisect_left(aborted, start, key=_marker_offset) :]:
                if each.first_offset < end:
                    found.append(each)
                if each.last_stable_offset >= end:
                    return tuple(found)
        return tuple(found)

    def scan(self, offset: int) -> Iterator[tuple[Buffer, BatchHeader]]:
        """Batches and their headers, from the first on that ends at or after `offset`."""
        start = self.index_of(offset)
        return chain.from_iterable(each.scan(offset=offset) for each in self._segments[start:])

    def roll(
        self, base_offset: int, now_ms: int, producers: tuple[ProducerStateEntry, ...]
    ) -> LogSegment:
        """Begin a new active segment; one that is empty still is replaced."""
        if self.active.is_empty:
            self._drop_from(len(self._segments) - 1)
        segment = self._store.create(base_offset, now_ms=now_ms, producers=producers)
        self._segments.append(segment)
        self._bases.append(base_offset)
        self.active = segment
        return segment

    def truncate(self, offset: int) -> None:
        """Drop everything from `offset` on; the segment that it lies in becomes the active one."""
        keep = self.index_of(offset)
        self._drop_from(keep + 1)
        self.active = self._segments[keep]
        self.active.truncate(offset)

    def drop_before(self, offset: int) -> int:
        """Lose the segments that end at or before `offset`; never the active one.

        :returns: How many.
        """
        index = self.index_of(offset)
        if index:
            gone = self._segments[:index]
            del self._segments[:index], self._bases[:index]
            self._aborting = None
            self._store.discard(gone)
        return index

    def _drop_from(self, index: int) -> None:
        gone = self._segments[index:]
        if gone:
            del self._segments[index:], self._bases[index:]
            self._aborting = None
            self._store.discard(gone)


def _marker_offset(transaction: AbortedTransaction) -> int:
    return transaction.last_offset


class InitialLogState(Struct, kw_only=True):
    """What there is in a log when it is opened. Offsets are as in `Log`."""

    segments: Sequence[LogSegment]
    """One at least."""
    epochs: LeaderEpochCache
    producers: ProducerStateManager
    log_start_offset: int
    log_end_offset: int
    cleaned_until: int
    """Compaction has been over everything before this offset."""

    @classmethod
    def empty(cls, segment: LogSegment) -> Self:
        """Those of a log that begins with this empty segment."""
        offset = segment.base_offset
        return cls(
            segments=[segment],
            epochs=LeaderEpochCache(),
            producers=ProducerStateManager(),
            log_start_offset=offset,
            log_end_offset=offset,
            cleaned_until=offset,
        )
