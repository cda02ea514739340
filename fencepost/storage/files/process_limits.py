"""The caches that all logs of a process share, each within one bound.

A log could open each of its files and load each of its indexes whenever it is used; keeping them
is a matter of speed. So that ten thousand logs hold no more than ten, the oldest entry is evicted
first, unless it was used since its last turn.

The tail cache keeps the buffers that were appended last, by reference. Followers and consumers at
a log's end read the data of a moment ago: they get the very buffers that were written to the file,
and nothing is read or copied. The oldest buffers of all logs are evicted first.
"""

import struct
from bisect import bisect_left, bisect_right
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, Protocol

from fencepost.protocol.byte_utils import Buffer
from fencepost.storage.files.file_system import MAX_OPEN_FILES

_OVERHEAD: Final = 256
_TRIM: Final = 64
_MANY: Final = 64
_SMALL: Final = 1024
_HEAD: Final = struct.Struct(">qi")
_DELTA: Final = struct.Struct(">i")
_DELTA_AT: Final = 23
_LOG_OVERHEAD: Final = 12


class TailCache:
    """What is kept, over all logs.

    :param max_bytes: The bound: of the buffers' bytes and what each takes beside them.
    """

    __slots__ = ("_bytes", "_max_bytes", "_order")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._order: deque[SegmentTail] = deque()

    @property
    def size(self) -> int:
        """Bytes kept, with what each buffer takes beside them."""
        return self._bytes

    def add(self, tail: "SegmentTail", size: int) -> None:
        """Count a buffer that a tail has taken, and let the oldest go where it is too much."""
        self._order.append(tail)
        self._bytes += size + _OVERHEAD
        while self._bytes > self._max_bytes or len(self._order) * _OVERHEAD > self._max_bytes:
            self._bytes -= self._order.popleft().drop_oldest()

    def subtract(self, size: int) -> None:
        """Count buffers that went by themselves."""
        self._bytes -= size


class SegmentTail:
    """The end of one segment, as far as it is kept: buffers that follow on each other."""

    __slots__ = ("_buffers", "_first", "_offsets", "_recent", "_starts")

    def __init__(self, recent: TailCache) -> None:
        self._recent = recent
        self._buffers: list[Buffer] = []
        self._starts: list[int] = []
        self._offsets: list[int] = []
        self._first = 0

    def append(self, position: int, buffer: Buffer) -> None:
        """Take the buffer that was written at `position`, one or more whole batches."""
        (base_offset,) = _HEAD.unpack_from(buffer)[:1]
        self._buffers.append(buffer)
        self._starts.append(position)
        self._offsets.append(base_offset)
        self._recent.add(self, len(buffer))

    def drop_oldest(self) -> int:
        """Let the oldest buffer go; how much that was, 0 where there was none."""
        first = self._first
        if first == len(self._buffers):
            return 0
        size = len(self._buffers[first])
        self._buffers[first] = b""
        self._first = first = first + 1
        if first >= _TRIM and first * 2 >= len(self._buffers):
            del self._buffers[:first], self._starts[:first], self._offsets[:first]
            self._first = 0
        return size + _OVERHEAD

    def truncate(self, position: int) -> None:
        """Let go of every buffer that ends behind `position`."""
        keep = bisect_left(self._starts, position, self._first)
        if keep > self._first and self._starts[keep - 1] + len(self._buffers[keep - 1]) > position:
            keep -= 1
        gone = self._buffers[keep:]
        self._recent.subtract(sum(map(len, gone)) + _OVERHEAD * len(gone))
        del self._buffers[keep:], self._starts[keep:], self._offsets[keep:]

    def clear(self) -> None:
        """Let go of everything."""
        self.truncate(0)

    def read(
        self, offset: int, *, end: int, max_bytes: int, upper_bound: int, min_one_batch: bool
    ) -> list[Buffer] | None:
        """What `LogSegment.read` answers, or None where too little is kept to tell.

        :param offset: Of a batch in the segment, or before one.
        :param end: The segment's size if everything lies below `upper_bound`, or -1.
        """
        first = bisect_right(self._offsets, offset, self._first) - 1
        if first < self._first:
            return None
        start, first_size = self._find(first, offset)
        if end < 0:
            last = bisect_right(self._offsets, upper_bound, self._first) - 1
            if last < self._first:
                return []
            end, _ = self._find(last, upper_bound)
        if start >= end:
            return []
        if end - start > max_bytes:
            if first_size <= max_bytes:
                end = start + max_bytes
            elif min_one_batch:
                end = start + first_size
            else:
                return []
        return self._between(start, end)

    def _find(self, index: int, offset: int) -> tuple[int, int]:
        """Position and size of the first batch that ends at or after `offset`.

        :param index: Of the buffer with the last base offset that is not above it.
        """
        buffer = self._buffers[index]
        at, end = 0, len(buffer)
        while at < end:
            base, length = _HEAD.unpack_from(buffer, at)
            (delta,) = _DELTA.unpack_from(buffer, at + _DELTA_AT)
            if base + delta >= offset:
                return self._starts[index] + at, length + _LOG_OVERHEAD
            at += length + _LOG_OVERHEAD
        if index + 1 == len(self._buffers):
            return self._starts[index] + end, 0
        _, length = _HEAD.unpack_from(self._buffers[index + 1])
        return self._starts[index + 1], length + _LOG_OVERHEAD

    def _between(self, start: int, end: int) -> list[Buffer] | None:
        """The bytes from `start` to `end`; None where one read of the file is cheaper."""
        first = bisect_right(self._starts, start, self._first) - 1
        last = bisect_left(self._starts, end, self._first) - 1
        count = last - first + 1
        if count > _MANY and (end - start) < count * _SMALL:
            return None
        found = self._buffers[first : last + 1]
        ends_at = end - self._starts[last]
        if ends_at != len(found[-1]):
            found[-1] = memoryview(found[-1])[:ends_at]
        begins_at = start - self._starts[first]
        if begins_at:
            found[0] = memoryview(found[0])[begins_at:]
        return found


_TAIL_BYTES: Final = 64 << 20
_INDEX_BYTES: Final = 32 << 20


class Evictable(Protocol):
    """Something that can be had again.

    :ivar used: Set when it is used.
    """

    used: bool

    def release(self) -> None:
        """Let go of it."""


class BoundedCache:
    """Things held, up to a limit of what they cost together.

    :param limit: In whatever unit `hold` counts.
    """

    __slots__ = ("_cost", "_held", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._cost = 0
        self._held: OrderedDict[int, tuple[Evictable, int]] = OrderedDict()

    @property
    def cost(self) -> int:
        """Of everything that is held."""
        return self._cost

    def add(self, thing: Evictable, cost: int) -> None:
        """Hold something that is not held yet; others may go for it."""
        self._cost += cost
        # At most once round: where everything was used, the oldest goes all the same.
        for _ in range(len(self._held) + 1):
            if self._cost <= self._limit or not self._held:
                break
            key, (oldest, price) = self._held.popitem(last=False)
            if oldest.used:
                oldest.used = False
                self._held[key] = oldest, price
            else:
                self._cost -= price
                oldest.release()
        self._held[id(thing)] = thing, cost

    def resize(self, limit: int) -> None:
        """Change the limit; the oldest things go where they cost more."""
        self._limit = limit
        self._evict()

    def lend(self, cost: int) -> None:
        """Count something that can't be evicted, until it costs nothing (a negative cost)."""
        self._cost += cost
        self._evict()

    def evict_half(self) -> bool:
        """Let go of the older half of the things, used or not; whether there were any."""
        count = (len(self._held) + 1) // 2
        for _ in range(count):
            self._release_oldest()
        return count > 0

    def _evict(self) -> None:
        while self._cost > self._limit and self._held:
            self._release_oldest()

    def _release_oldest(self) -> None:
        _, (oldest, price) = self._held.popitem(last=False)
        self._cost -= price
        oldest.release()

    def remove(self, thing: Evictable) -> None:
        """Forget something that goes by itself; it may not be held."""
        found = self._held.pop(id(thing), None)
        if found is not None:
            self._cost -= found[1]


class ProcessLimits:
    """The bounds of one process.

    :ivar recent: The buffers appended last (bytes).
    :ivar indexes: The indexes of closed segments (bytes).
    :ivar open_files: Files held open.
    :ivar call_later: Calls something after some time (ms) of the cluster's clock.
    :ivar in_later_turn: Calls something in a later turn of the event loop.
    """

    __slots__ = ("call_later", "in_later_turn", "indexes", "open_files", "tail_cache")

    def __init__(
        self,
        *,
        recent_bytes: int = _TAIL_BYTES,
        index_bytes: int = _INDEX_BYTES,
        open_files: int = MAX_OPEN_FILES,
    ) -> None:
        self.tail_cache = TailCache(recent_bytes)
        self.indexes = BoundedCache(index_bytes)
        self.open_files = BoundedCache(open_files)
        self.call_later: Callable[[int, Callable[[], None]], None] = _call_now
        self.in_later_turn: Callable[[Callable[[], None]], None] = _call_at_once


def _call_now(_delay_ms: int, callback: Callable[[], None]) -> None:
    """The default: there is no clock."""
    callback()


def _call_at_once(callback: Callable[[], None]) -> None:
    """The default: there is no event loop."""
    callback()
