"""One segment of a log: what every segment can do, wherever its bytes lie."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from fencepost.protocol.buffers import Buffer
from fencepost.protocol.records import MAX_SEQUENCE, BatchHeader
from fencepost.storage.producers import ProducerView


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
    def producer_snapshot(self) -> tuple[ProducerView, ...]:
        """The log's producers before its first record."""

    def append(self, buffer: Buffer, header: BatchHeader, now_ms: int) -> None:
        """Keep a buffer that is exactly one batch."""

    def index(self, header: BatchHeader, now_ms: int) -> None:
        """Take note of a batch whose bytes the caller hands to `keep`."""

    def keep(self, buffer: Buffer) -> None:
        """Keep one or more whole batches, which were noted by `index`, at the end."""

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

    def shed(self) -> bool:
        """Free some of what is held, quickly; False when nothing is left.

        For a segment that nobody reads any more.
        """


def largest_timestamp(segment: LogSegment) -> int:
    """The largest timestamp (ms), or the time of the last append where no record has one."""
    largest = segment.max_timestamp
    return largest if largest >= 0 else segment.last_modified_ms


def should_roll(
    segment: LogSegment,
    *,
    size: int,
    last_offset: int,
    max_timestamp: int,
    now_ms: int,
    segment_bytes: int,
    segment_ms: int,
) -> bool:
    """Whether a batch of `size` bytes, `last_offset` and `max_timestamp` needs a new segment.

    One segment's offsets differ by less than 2^31, because its indexes say them in 32 bits.
    segment.ms counts in the records' time, from the first batch to this one; where the first
    has no timestamp, in the broker's time from the segment's creation.
    """
    own = segment.size
    if own > segment_bytes - size or last_offset - segment.base_offset > MAX_SEQUENCE:
        return True
    if not own:
        return False
    if segment.is_full:
        return True
    first = segment.rolling_timestamp
    if first is not None and first >= 0:
        return max_timestamp - first > segment_ms
    return now_ms - segment.created_ms > segment_ms


class SegmentView:
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
        return isinstance(other, SegmentView) and self._segment is other._segment

    def __hash__(self) -> int:
        return hash(self._segment)

    def __repr__(self) -> str:
        size = self.size_bytes
        return f"SegmentView({self.base_offset} to {self.next_offset}, {size} bytes)"


def found_at_once(number: Callable[[], int]) -> int:
    """What `SegmentView` asks where nothing can fail."""
    return number()
