"""The journal: the last requests and answers, kept as bytes and decoded only when somebody asks."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

from fencepost.broker.waits import Wait
from fencepost.protocol.apis import Api
from fencepost.protocol.buffers import Buffer
from fencepost.protocol.codec import decode_request, decode_response, response_body_offset
from fencepost.protocol.frames import frame_size

MAX_EXCHANGES: Final = 4096
MAX_BYTES: Final = 64 << 20
"""Of frames and answers together. What a log keeps anyway costs nothing more while it does."""


@dataclass(slots=True, eq=False)
class Exchange:
    """One request and its answer, from when it is taken up; connections queue them."""

    time_ms: int
    broker_id: int
    connection_id: str
    client_id: str | None
    api: Api
    version: int
    correlation_id: int
    frame: bytearray
    body_offset: int
    number: int = 0
    """Rises by one with each request of the process."""
    chunks: list[Buffer] | None = None
    """The answer's frame, size included; None while there is none (or, with acks=0, ever)."""
    done: bool = False
    answered_ms: int | None = None
    wait: Wait[object] | None = None
    """What its answer is to come from."""
    counted: int = 0
    """Bytes that the journal counts for it; -1 when it is no longer in the journal."""

    def request(self) -> object:
        """The decoded request."""
        return decode_request(self.api, self.version, self.frame, self.body_offset)

    def response(self) -> object | None:
        """The decoded answer, None while there is none."""
        if self.chunks is None:
            return None
        offset = 4 + response_body_offset(self.api, self.version)
        response: object = decode_response(self.api, self.version, b"".join(self.chunks), offset)
        return response


class Journal:
    """The last exchanges, oldest first, bounded in number and bytes."""

    def __init__(self) -> None:
        self._exchanges: deque[Exchange] = deque()
        self._numbers = count(1)
        self._bytes = 0
        self.listeners: list[Callable[[Exchange], None]] = []
        """Called with each exchange as it is answered."""

    def __iter__(self) -> Iterator[Exchange]:
        return iter(tuple(self._exchanges))

    def open(self, exchange: Exchange) -> None:
        """Note a request that is taken up."""
        exchange.number = next(self._numbers)
        self._exchanges.append(exchange)
        size = exchange.counted = len(exchange.frame)
        self._bytes += size
        if self._bytes > MAX_BYTES or len(self._exchanges) > MAX_EXCHANGES:
            self._drop_oldest()

    def close(self, exchange: Exchange, chunks: list[Buffer] | None, now_ms: int) -> None:
        """Note its answer, or that it gets none."""
        exchange.chunks = chunks
        exchange.done = True
        exchange.wait = None
        exchange.answered_ms = now_ms
        if chunks and exchange.counted >= 0:
            size = frame_size(chunks[0])
            exchange.counted += size
            self._bytes += size
            if self._bytes > MAX_BYTES:
                self._drop_oldest()
        for listener in self.listeners:
            listener(exchange)

    def _drop_oldest(self) -> None:
        while len(self._exchanges) > MAX_EXCHANGES or self._bytes > MAX_BYTES:
            oldest = self._exchanges.popleft()
            self._bytes -= oldest.counted
            oldest.counted = -1

    def clear(self) -> Iterator[None]:
        """Forget all; numbers go on. What was kept is freed by the steps, a little with each."""
        gone, self._exchanges = self._exchanges, deque()
        for exchange in gone:
            exchange.counted = -1
        self._bytes = 0
        return _freed(gone)


def _freed(exchanges: deque[Exchange]) -> Iterator[None]:
    while exchanges:
        exchanges.popleft()
        yield
