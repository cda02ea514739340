"""Logs whose bytes lie in memory."""

from array import array
from bisect import bisect_left, bisect_right
from typing import Final, final

from fencepost.protocol.buffers import Buffer
from fencepost.storage.config import LogConfig
from fencepost.storage.segmented import SegmentedLog

_SMALL: Final = 1024
_JOINED: Final = 64
_SHED_BYTES: Final = 256 << 10


class MemoryBytes:
    """The buffers that were appended, as they were given.

    A run of small ones is joined into one: the overhead of a buffer, and the network frame that
    it keeps alive, would outweigh what is in it.
    """

    __slots__ = ("_chunks", "_ends", "_small")

    def __init__(self) -> None:
        self._chunks: list[Buffer] = []
        self._ends = array("q")
        self._small = 0

    def append(self, buffer: Buffer) -> None:
        """Keep one or more whole batches at the end."""
        ends = self._ends
        size = len(buffer)
        self._chunks.append(buffer)
        ends.append(ends[-1] + size if ends else size)
        if size > _SMALL:
            self._small = 0
        else:
            self._small += 1
            if self._small == _JOINED:
                self._join()

    def _join(self) -> None:
        self._chunks[-_JOINED:] = [b"".join(self._chunks[-_JOINED:])]
        self._ends[-_JOINED:] = self._ends[-1:]
        self._small = 0

    def read(self, start: int, end: int) -> list[Buffer]:
        """The bytes from `start` to `end`; every buffer begins with a batch."""
        chunks, ends = self._chunks, self._ends
        first = bisect_right(ends, start)
        last = bisect_left(ends, end)
        first_start = ends[first - 1] if first else 0
        if first == last:
            chunk = chunks[first]
            if first_start == start and ends[first] == end:
                return [chunk]
            return [memoryview(chunk)[start - first_start : end - first_start]]
        found = chunks[first : last + 1]
        if first_start != start:
            found[0] = memoryview(found[0])[start - first_start :]
        if ends[last] != end:
            found[-1] = memoryview(found[-1])[: end - ends[last - 1]]
        return found

    def truncate(self, size: int) -> None:
        """Keep the first `size` bytes, which end with a batch."""
        last = bisect_left(self._ends, size)
        if not size:
            self._chunks.clear()
            del self._ends[:]
        elif last < len(self._ends):
            start = self._ends[last - 1] if last else 0
            del self._chunks[last + 1 :], self._ends[last + 1 :]
            if self._ends[last] != size:
                self._chunks[last] = memoryview(self._chunks[last])[: size - start]
                self._ends[last] = size
        self._small = 0

    def shed(self) -> bool:
        """Free the last few buffers."""
        chunks, size = self._chunks, 0
        for _ in range(_JOINED):
            if not chunks:
                return False
            size += len(chunks.pop())
            if size > _SHED_BYTES:
                break
        return True


@final
class MemoryLog(SegmentedLog):
    """A log in memory.

    :param name: Topic and partition as Kafka's messages print them: ``topic-0``.
    :param now_ms: When it is made; segment.ms may count from it.
    :param start_offset: Its log start and log end.
    """

    __slots__ = ()

    def __init__(
        self, name: str, config: LogConfig, *, now_ms: int = 0, start_offset: int = 0
    ) -> None:
        super().__init__(
            name, config, new_content=_content_at, now_ms=now_ms, start_offset=start_offset
        )


def _content_at(_base_offset: int) -> MemoryBytes:
    return MemoryBytes()
