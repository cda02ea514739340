"""Frames: size, header and body, cut from a stream of bytes in chunks of any size.

Bytes of large frames are received into the frame itself. Each frame is a ``bytearray`` of its own,
because the broker stamps the batches in it in place and then keeps them.
"""

import struct
from typing import Final, NamedTuple

from fencepost.protocol.apis import Api
from fencepost.protocol.byte_utils import Buffer

DEFAULT_LIMIT: Final = 104_857_600
"""Bytes: ``socket.request.max.bytes``."""
MAX_HEADER_TAGS: Final = 1_000
"""Tagged fields in a request's header, of which no version of Kafka has any."""
_SIZE: Final = struct.Struct(">i")
_HEADER: Final = struct.Struct(">hhih")
_FIRST_GROWTH: Final = 1 << 20


class InvalidFrame(ValueError):
    """Bytes that are no request: only their connection is closed."""


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
    """

    __slots__ = ("_filled", "_frame", "_head", "_limit", "_scratch", "_size")

    def __init__(self, scratch: memoryview, limit: int = DEFAULT_LIMIT) -> None:
        self._scratch = scratch
        self._limit = limit
        self._head = b""
        self._frame: bytearray | None = None
        self._filled = 0
        self._size = 0

    def buffer(self) -> memoryview:
        """Where to put the next bytes; never empty."""
        if self._frame is None:
            return self._scratch
        return memoryview(self._frame)[self._filled :]

    def received(self, count: int) -> list[bytearray]:
        """The frames that ``count`` more bytes completed, without their sizes.

        :raises InvalidFrame: When a size is not positive or above the limit, before any memory is
            taken for it. Frames before it are lost with the connection.
        """
        if self._frame is not None:
            return self._continue(self._frame, count)
        return self._cut(count)

    def _continue(self, frame: bytearray, count: int) -> list[bytearray]:
        self._filled += count
        if self._filled == self._size:
            self._frame = None
            return [frame]
        if self._filled == len(frame):
            # The buffer grows as bytes come: a large size alone takes little memory.
            grown = bytearray(min(self._size, 4 * len(frame)))
            grown[: len(frame)] = frame
            self._frame = grown
        return []

    def _cut(self, count: int) -> list[bytearray]:
        data = self._scratch[:count]
        if self._head:
            data = memoryview(self._head + data)
            count = len(data)
            self._head = b""
        frames: list[bytearray] = []
        at = 0
        while count - at >= 4:
            (size,) = _SIZE.unpack_from(data, at)
            if not 0 < size <= self._limit:
                raise InvalidFrame(f"a frame of {size} bytes; 1 to {self._limit} are accepted")
            at += 4
            if count - at < size:
                self._begin(size, data[at:])
                return frames
            frames.append(bytearray(data[at : at + size]))
            at += size
        self._head = bytes(data[at:])
        return frames

    def _begin(self, size: int, first: memoryview) -> None:
        self._size = size
        self._filled = len(first)
        self._frame = bytearray(min(size, max(_FIRST_GROWTH, 2 * len(first))))
        self._frame[: len(first)] = first


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
    return RequestHeader(key, version, correlation_id, client_id, end)


def skip_tags(frame: bytearray, header: RequestHeader, api: Api) -> int:
    """Where the body starts: behind the header's tagged fields, which are ignored, if it has any.

    :raises InvalidFrame: When the frame ends within them, or they are more than `MAX_HEADER_TAGS`.
    """
    at = header.body_offset
    if not api.is_flexible(header.version):
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
