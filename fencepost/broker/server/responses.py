"""The responses of one connection: encoded, a large one in slices, and put in request order.

The answer to a large request is as large: it is written some thousands of elements in a turn, while
others are served. The requests of all connections that are not answered at once count to the
`RequestMemory`.
"""

from collections import deque
from collections.abc import Callable, Generator
from typing import Final, NamedTuple, Protocol

from fencepost.broker.core.outcomes import PacedResponse
from fencepost.broker.core.scheduler import Clock, Scheduler
from fencepost.broker.server.journal import Exchange, Journal
from fencepost.broker.server.paced_output import PacedOutput
from fencepost.protocol.apis import Api
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.codec import encode_response, encode_response_in_slices
from fencepost.protocol.frames import RequestMemory

SLICED_BYTES: Final = 64 << 10
"""A request of more bytes is read, and its response written, in slices."""


class CloseReason(NamedTuple):
    """Why a connection closes, for the log."""

    reason: str
    detail: str = ""


class ConnectionOwner(Protocol):
    """Moves the bytes of a connection and writes its log."""

    def output_ready(self) -> None:
        """A wait completed: there may be output, or room for requests; call `resume` soon."""
        ...

    def log_request(self, api: Api, version: int) -> None:
        """Log a request; called where single requests are logged."""
        ...

    def log_exception(self, event: str, **details: object) -> None:
        """Log the exception that is being handled."""
        ...


class _NoOwner:
    """The owner of a connection that is gone."""

    def output_ready(self) -> None:
        """Do nothing."""

    def log_request(self, api: Api, version: int) -> None:
        """Do nothing."""

    def log_exception(self, event: str, **details: object) -> None:
        """Do nothing."""


NO_OWNER: Final = _NoOwner()
"""Takes the owner's place where a connection is gone. The two refer to each other, and what has
lived for long is looked at too seldom by the garbage collector to be found in a cycle."""


def _ignore_close(_reason: CloseReason) -> None:
    """Do nothing: it is closed."""


class Responses:
    """The requests of a connection that are not answered, and the responses to send.

    :param close: Closes the connection.
    :ivar queue: Requests whose response is not in `output` yet, in their order; the connection adds
        them.
    :ivar output: Encoded responses whose turn has come; the owner takes them out.
    :ivar writing: Responses that are being written in slices, the first of them now.
    """

    __slots__ = (
        "_clock",
        "_close",
        "_held",
        "_journal",
        "_memory",
        "_owner",
        "output",
        "paced",
        "queue",
        "writing",
    )

    def __init__(
        self,
        clock: Clock,
        journal: Journal,
        memory: RequestMemory,
        owner: ConnectionOwner,
        close: Callable[[CloseReason], None],
    ) -> None:
        self.queue: Final[deque[Exchange]] = deque()
        self.output: Final[list[Buffer]] = []
        self.writing: Final[list[Generator[None, None, None]]] = []
        self._clock = clock
        self._journal = journal
        self._memory = memory
        self._owner: ConnectionOwner = owner
        self._close = close
        self.paced: tuple[Exchange, PacedOutput] | None = None
        """The request whose response is sent a few bytes at a time."""
        self._held = 0
        """How many requests of the queue count to the memory: all but the last, or all."""

    def hold(self) -> None:
        """Count the last request of the queue: it was not answered at once."""
        if self._held < len(self.queue):
            self._held += 1
            self._memory.used += self.queue[-1].bytes_in

    def write(self, exchange: Exchange, response: object) -> list[Buffer] | None:
        """Encode a response; None is that of acks=0, for which nothing is sent.

        :returns: What encodes it, where that is done and not left to `write_slice`.
        """
        if response is None:
            self.finish(exchange, None)
            return None
        if len(exchange.frame) > SLICED_BYTES:
            self.writing.append(self._in_slices(exchange, response))
            if len(self.writing) == 1:
                self.write_slice()
            return None
        try:
            chunks = encode_response(
                exchange.api, exchange.version, exchange.correlation_id, response, exchange.dialect
            )
        except Exception:  # noqa: BLE001  # a bug costs one connection, never the broker
            self._on_not_encodable(exchange)
            return None
        self.finish(exchange, chunks, response)
        return chunks

    def write_slice(self) -> None:
        """Write one more slice."""
        try:
            next(self.writing[0])
        except StopIteration:
            self.writing.pop(0)
        if self.writing:
            self._owner.output_ready()

    def _in_slices(self, exchange: Exchange, response: object) -> Generator[None, None, None]:
        try:
            chunks = yield from encode_response_in_slices(
                exchange.api, exchange.version, exchange.correlation_id, response, exchange.dialect
            )
        except Exception:  # noqa: BLE001  # as above
            self._on_not_encodable(exchange)
            return
        self.finish(exchange, chunks, response)

    def _on_not_encodable(self, exchange: Exchange) -> None:
        self._owner.log_exception("answer_not_encodable", api=exchange.api.title)
        self._close(CloseReason("answer_not_encodable"))

    def finish(
        self, exchange: Exchange, chunks: list[Buffer] | None, response: object = None
    ) -> None:
        """Move the responses whose turn has come to the output.

        :param response: What the chunks encode; None for a cached response.
        """
        self._journal.close(exchange, chunks, response, self._clock.wall_ms())
        queue = self.queue
        while queue and queue[0].done:
            answered = queue.popleft()
            if self._held:
                self._held -= 1
                self._memory.used -= answered.bytes_in
            if answered.chunks:
                if self.paced is not None and self.paced[0] is answered:
                    self.paced[1].begin(answered.chunks)
                else:
                    self.output.extend(answered.chunks)

    def pace(self, exchange: Exchange, paced: PacedResponse, scheduler: Scheduler) -> None:
        """Encode a response, and send a few bytes of it at a time once its turn has come."""

        def send(data: Buffer) -> None:
            self.output.append(data)
            self._owner.output_ready()

        output = PacedOutput(paced, scheduler, send)
        self.paced = exchange, output
        self.write(exchange, paced.response)

    def end_pace(self) -> None:
        """Send at once what is left of the response that is sent a few bytes at a time."""
        if self.paced is not None:
            self.paced[1].send_rest()
            self.paced = None

    def abandon(self) -> None:
        """Cancel what waits, and send nothing more."""
        if self.paced is not None:
            self.paced[1].cancel()
            self.paced = None
        for index, exchange in enumerate(self.queue):
            if exchange.wait is not None:
                exchange.wait.cancel()
            self._journal.abandon(exchange)
            if index < self._held:
                self._memory.used -= exchange.bytes_in
        self._held = 0
        self.queue.clear()
        self.writing.clear()
        self.output.clear()
        self._owner = NO_OWNER
        self._close = _ignore_close
