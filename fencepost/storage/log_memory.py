"""What the logs in memory take together, and how much they may.

A batch is kept in the buffer of the request that brought it. So what counts is the buffer: whole,
once for all replicas that hold it, and as long as one of them does. What a log notes beside its
buffers counts by its number: `CHUNK_BYTES` for each buffer, `BATCH_BYTES` for each batch.

At the limit clients' appends are refused, which is noted once until there is room again. Followers
and coordinators go on: a follower holds the buffers of its leader, and groups must be able to
commit. Coordinators are refused as well once an eighth more is used.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Final, cast

from fencepost.protocol.byte_utils import Buffer

CHUNK_BYTES: Final = 256
"""What one kept buffer takes beside its bytes, about."""
BATCH_BYTES: Final = 24
"""What a segment notes of one batch."""
_ROOM_SHIFT: Final = 4
"""There is room again when a sixteenth of the limit is free."""
_RESERVE_SHIFT: Final = 3
_SMALL: Final = 1024
_JOINED: Final = 64
_SHED_BYTES: Final = 256 << 10


class LogMemory:
    """Counts the memory of logs.

    :param limit: Bytes; None is no limit, and nothing is counted.
    :ivar used: Bytes that logs take now.
    :ivar on_full: Called with `used` when an append is refused for the first time, and again only
        after there was room.
    :ivar reclaim: Frees memory of deleted logs that is not freed yet, until its argument says that
        there is enough; the edge sets it.
    """

    __slots__ = ("_holders", "_is_full", "limit", "on_full", "reclaim", "used")

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.used = 0
        self.on_full: Callable[[int], None] = _ignore
        self.reclaim: Callable[[Callable[[], bool]], None] = _ignore
        self._holders: dict[int, int] = {}
        """How many chunks keep a buffer alive, by its identity."""
        self._is_full = False

    def hold(self, chunk: Buffer) -> None:
        """Count a buffer that a log keeps."""
        root = cast(bytes, chunk.obj) if type(chunk) is memoryview else chunk
        key = id(root)  # of no other object, while a log keeps it
        holders = self._holders
        count = holders.get(key, 0)
        holders[key] = count + 1
        self.used += CHUNK_BYTES if count else CHUNK_BYTES + len(root)

    def release(self, chunk: Buffer) -> None:
        """Count a buffer no more; the caller lets go of it after this call."""
        root = cast(bytes, chunk.obj) if type(chunk) is memoryview else chunk
        key = id(root)
        count = self._holders.pop(key) - 1
        if count:
            self._holders[key] = count
            self.used -= CHUNK_BYTES
        else:
            self.used -= CHUNK_BYTES + len(root)

    def add(self, count: int) -> None:
        """Count bytes that are kept beside logs, or less where `count` is negative."""
        self.used += count

    def refusal(self, size: int, *, is_client: bool = True) -> str | None:
        """Why no batches of `size` bytes may be appended now, and what to do; None if they may.

        :param is_client: Whether a client appends, and not a coordinator.
        """
        if self.limit is None:
            return None
        limit = self.limit if is_client else self.limit + (self.limit >> _RESERVE_SHIFT)
        if self.used + size > limit:
            self.reclaim(lambda: self.used + size <= limit)
            if self.used + size > limit:
                return self._refuse(self.limit)
        elif self._is_full and self.used <= self.limit - (self.limit >> _ROOM_SHIFT):
            self._is_full = False
        return None

    def _refuse(self, limit: int) -> str:
        if not self._is_full:
            self._is_full = True
            self.on_full(self.used)
        return (
            f"logs in memory take {self.used} of {limit} bytes: let retention, DeleteRecords or a "
            "deleted topic free some, set --max-memory (FENCEPOST_MAX_MEMORY) higher, or keep logs "
            "in files with --data-dir"
        )


def _ignore(_: object) -> None:
    """The default: no listener, and nothing to free."""


class MemoryBytes:
    """The buffers that were appended, as they were given.

    A run of small ones is joined into one: the overhead of a buffer, and the network frame that
    it keeps alive, would outweigh what is in it.

    :param memory: Counts the buffers; None counts nothing.
    """

    __slots__ = ("_chunks", "_ends", "_memory", "_small")

    def __init__(self, memory: LogMemory | None = None) -> None:
        self._memory = memory
        self._chunks: list[Buffer] = []
        self._ends = array("q")
        self._small = 0

    def append(self, buffer: Buffer) -> None:
        """Keep one or more whole batches at the end."""
        ends = self._ends
        size = len(buffer)
        if self._memory is not None:
            self._memory.hold(buffer)
        self._chunks.append(buffer)
        ends.append(ends[-1] + size if ends else size)
        if size > _SMALL:
            self._small = 0
        else:
            self._small += 1
            if self._small == _JOINED:
                self._join()

    def _join(self) -> None:
        joined = b"".join(self._chunks[-_JOINED:])
        if self._memory is not None:
            self._memory.hold(joined)
            self._release(len(self._chunks) - _JOINED)
        self._chunks[-_JOINED:] = [joined]
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
        self._release(last + 1 if size else 0)
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

    def free_some(self) -> bool:
        """Free the last few buffers."""
        chunks, size = self._chunks, 0
        for _ in range(_JOINED):
            if not chunks:
                return False
            self._release(len(chunks) - 1)
            size += len(chunks.pop())
            if size > _SHED_BYTES:
                break
        return True

    def _release(self, first: int) -> None:
        """Count the buffers from one on no more; they go next."""
        if self._memory is not None:
            for index in range(first, len(self._chunks)):
                self._memory.release(self._chunks[index])
