"""Frames: size, header and body, cut from a stream of bytes in chunks of any size.

Bytes of large frames are received into the frame itself. Each frame is a ``bytearray`` of its own,
because the broker stamps the batches in it in place and then keeps them.

The size that a frame states takes no memory: what an incomplete frame holds is in proportion to the
bytes that arrived, and `RequestMemory` limits what the frames of all connections hold together.
"""

import struct
import sys
from collections.abc import Callable
from typing import Final, NamedTuple

from fencepost.protocol.apis import Api
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.other_protocols import HEAD

DEFAULT_LIMIT: Final = 104_857_600
"""Bytes: ``socket.request.max.bytes``."""
MAX_HEADER_TAGS: Final = 1_000
"""Tagged fields in a request's header, of which no version of Kafka has any."""
_new_tuple: Final = tuple.__new__
"""Makes a named tuple without a call of its constructor in Python."""
_SIZE: Final = struct.Struct(">i")
_HEADER: Final = struct.Struct(">hhih")
_DIRECT: Final = 64 << 10
"""Bytes of an incomplete frame from which on the next bytes are received into the frame itself."""
_READY_SIZES: Final = range(8 << 10, 64 << 10)
"""Bytes of a frame for which memory is made ready. A smaller one takes few pages, and a larger one
so many that the next request might wait for them."""
_WASTE_SHIFT: Final = 4
"""Memory that is ready may be larger than its frame by a sixteenth."""
_MOST_READY: Final = 4
_GROWTH: Final = 4
"""How many times the bytes that arrived such a frame takes at most."""


class InvalidFrame(ValueError):
    """Bytes that are no request: only their connection is closed.

    :param head: The first ones, where they stand at the beginning of a frame.
    """

    def __init__(self, message: str, head: bytes = b"") -> None:
        super().__init__(message)
        self.head = head


class RequestMemoryFull(InvalidFrame):
    """A frame can't grow: requests take as much memory as they may."""


class RequestMemory:
    """The bytes of requests that are being received or answered, over all connections.

    It also has memory ready for the next frames where clients send one after the other of the same
    size. The system takes ten times as long to give new pages, at their first write, as a copy of
    the frame into them takes: in idle moments no client waits for that.

    :param limit: The most bytes, above which incomplete frames do not grow.
    :ivar used: Bytes now. Requests that are answered at once may exceed the limit for a moment.
    :ivar on_wanted: Called where `make_ready` has work for idle moments.
    """

    __slots__ = ("_is_steady", "_ready", "_size", "limit", "on_wanted", "used")

    def __init__(self, limit: int = sys.maxsize) -> None:
        self.limit = limit
        self.used = 0
        self.on_wanted: Callable[[], None] = lambda: None
        self._ready: list[bytearray] = []
        self._size = 0
        """Bytes of each of them."""
        self._is_steady = False
        """Whether the last two frames were about as large."""

    def frame(self, data: memoryview) -> bytearray:
        """A frame with these bytes, in memory that is ready if there is some of about that size."""
        size = len(data)
        self._is_steady = size <= self._size <= size + (size >> _WASTE_SHIFT)
        if not self._is_steady:
            self._size = size
            self._ready.clear()
            return bytearray(data)
        self.on_wanted()
        if not self._ready:
            return bytearray(data)
        frame = self._ready.pop()
        del frame[size:]
        memoryview(frame)[:] = data  # frame[:] = data would copy it twice, first to new pages
        return frame

    def make_ready(self) -> bool:
        """Make memory ready for one more frame; for idle moments.

        :returns: Whether more is wanted.
        """
        if self._is_steady and len(self._ready) < _MOST_READY:
            self._ready.append(bytearray(self._size))
            return True
        return False

    def take(self, count: int) -> None:
        """Count bytes of an incomplete frame, before they are allocated.

        :raises RequestMemoryFull: When there would be more than the limit; nothing is counted.
        """
        if self.used + count > self.limit:
            raise RequestMemoryFull(
                f"requests of all connections take {self.used} bytes, and {self.limit} at most"
            )
        self.used += count


class RequestHeader(NamedTuple):
    """The header of a request."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    body_offset: int
    """Where the body starts in the frame; behind the tagged fields in flexible versions."""


class FrameAssembler:
    """Cuts one connection's bytes into frames.

    The owner puts the next bytes into ``buffer()`` and calls ``received()`` with their number.
    While no large frame is incomplete, the buffer is ``scratch``, which all connections of a loop
    may share: ``received`` copies its bytes before it returns.

    :param memory: Counts what incomplete frames take; None counts nothing.
    """

    __slots__ = (
        "_counted",
        "_filled",
        "_frame",
        "_head",
        "_is_direct",
        "_limit",
        "_memory",
        "_scratch",
        "_size",
    )

    def __init__(
        self,
        scratch: memoryview,
        limit: int = DEFAULT_LIMIT,
        memory: RequestMemory | None = None,
    ) -> None:
        self._scratch = scratch
        self._limit = limit
        self._memory = memory or RequestMemory()
        self._counted = 0
        """Bytes that `memory` counts of the incomplete frame."""
        self._head = b""
        self._frame: bytearray | None = None
        """The incomplete frame; while bytes go to `scratch`, exactly what arrived of it."""
        self._is_direct = False
        """Whether the next bytes are received into `_frame`."""
        self._filled = 0
        self._size = 0

    def buffer(self) -> memoryview:
        """Where to put the next bytes; never empty."""
        if self._is_direct and self._frame is not None:
            return memoryview(self._frame)[self._filled :]
        return self._scratch

    def received(self, count: int) -> list[bytearray]:
        """The frames that ``count`` more bytes completed, without their sizes.

        :raises InvalidFrame: When a size is not positive or above the limit, before any memory is
            taken for it. Frames before it are lost with the connection.
        :raises RequestMemoryFull: When an incomplete frame can't grow.
        """
        frame = self._frame
        if frame is None:
            return self._cut(self._scratch[:count])
        if self._is_direct:
            return self._continue(frame, count)
        return self._collect(frame, self._scratch[:count])

    def discard(self) -> None:
        """Drop an incomplete frame: nothing more is received."""
        self._complete()
        self._head = b""

    def _continue(self, frame: bytearray, count: int) -> list[bytearray]:
        self._filled += count
        if self._filled == self._size:
            self._complete()
            return [frame]
        if self._filled == len(frame):
            self._grow(frame)
        return []

    def _collect(self, frame: bytearray, data: memoryview) -> list[bytearray]:
        """Copy bytes to a frame that is small so far; more frames may follow it."""
        missing = self._size - len(frame)
        if len(data) >= missing:
            frame += data[:missing]
            self._complete()
            return [frame, *self._cut(data[missing:])]
        self._take(len(data))
        frame += data
        if len(frame) >= _DIRECT:
            self._grow(frame)
        return []

    def _cut(self, data: memoryview) -> list[bytearray]:
        if self._head:
            data = memoryview(self._head + data)
            self._head = b""
        count = len(data)
        frames: list[bytearray] = []
        at = 0
        while count - at >= 4:
            (size,) = _SIZE.unpack_from(data, at)
            if not 0 < size <= self._limit:
                raise InvalidFrame(
                    f"a frame of {size} bytes; 1 to {self._limit} are accepted",
                    bytes(data[at : at + HEAD]),
                )
            at += 4
            if count - at < size:
                self._begin(size, data[at:])
                return frames
            frame = data[at : at + size]
            frames.append(self._memory.frame(frame) if size in _READY_SIZES else bytearray(frame))
            at += size
        self._head = bytes(data[at:])
        return frames

    def _begin(self, size: int, first: memoryview) -> None:
        self._size = size
        if len(first) < _DIRECT:
            self._take(len(first))
            self._frame = bytearray(first)
        else:
            self._receive_into(first, min(size, _GROWTH * len(first)))

    def _receive_into(self, first: Buffer, capacity: int) -> None:
        """Receive the next bytes into the frame, behind those that arrived."""
        self._take(capacity)
        self._frame = frame = bytearray(capacity)
        frame[: len(first)] = first
        self._filled = len(first)
        self._is_direct = True

    def _grow(self, frame: bytearray) -> None:
        """Make room for more bytes, in proportion to those that arrived."""
        self._complete()
        self._receive_into(frame, min(self._size, _GROWTH * len(frame)))

    def _take(self, count: int) -> None:
        """Count bytes before they are allocated, which may fail: `discard` gives them back."""
        self._memory.take(count)
        self._counted += count

    def _complete(self) -> None:
        """Take no more bytes for the frame, and count it no more."""
        self._memory.used -= self._counted
        self._counted = 0
        self._frame = None
        self._is_direct = False


def frame_size(head: Buffer) -> int:
    """Bytes of a whole frame, its size included, by its first bytes."""
    (size,) = _SIZE.unpack_from(head)
    return 4 + int(size)


def read_header(frame: bytearray) -> RequestHeader:
    """Read a request's header up to the client id; tagged fields are left to ``skip_tags``.

    A client id is never a reason to refuse: invalid UTF-8 is replaced, a negative length is null.

    :raises InvalidFrame: When the frame ends within its header.
    """
    size = len(frame)
    if size < _HEADER.size:
        raise InvalidFrame(f"a frame of {size} bytes is shorter than a request header")
    key, version, correlation_id, length = _HEADER.unpack_from(frame)
    end = _HEADER.size + max(length, 0)
    if end > size:
        raise InvalidFrame(f"a client id of {length} bytes in a frame of {size}")
    client_id = None if length < 0 else frame[_HEADER.size : end].decode("utf-8", "replace")
    return _new_tuple(RequestHeader, (key, version, correlation_id, client_id, end))


def skip_tags(frame: bytearray, header: RequestHeader, api: Api) -> int:
    """Where the body starts: behind the header's tagged fields, which are ignored, if it has any.

    :raises InvalidFrame: When the frame ends within them, or they are more than `MAX_HEADER_TAGS`.
    """
    at = header.body_offset
    if header.version < api.first_flexible:
        return at
    if at < len(frame) and frame[at] == 0:
        return at + 1
    count, at = _uvarint(frame, at)
    if count > MAX_HEADER_TAGS:
        raise InvalidFrame(f"a header with {count} tagged fields")
    for _ in range(count):
        _, at = _uvarint(frame, at)
        size, at = _uvarint(frame, at)
        at += size
        if at > len(frame):
            raise InvalidFrame("the frame ends within the header's tagged fields")
    return at


def _uvarint(frame: bytearray, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        if at >= len(frame):
            break
        byte = frame[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise InvalidFrame("the header's tagged fields are not to be read")
