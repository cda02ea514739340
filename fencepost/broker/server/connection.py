"""One client's connection: frames in, answers out in the order of their requests.

Requests are taken up as they come, so that one which waits (a long poll) does not hold up the
work of those behind it; their answers wait for it. Reading pauses while too many wait, or while
the client does not read what it is sent. Whatever a peer sends, at worst its own connection closes.
"""

import asyncio
import contextlib
import socket
import struct
import sys
from collections import deque
from typing import TYPE_CHECKING, Final, assert_never, cast

from fencepost.broker.core.context import HANG_UP, Context, HangUp, Peer
from fencepost.broker.core.outcomes import BlockingResponse, Delivery, ThrottledResponse
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers import handler_of
from fencepost.broker.produce.expected_offsets import extract_expected_offsets
from fencepost.broker.server import logs
from fencepost.broker.server.journal import Exchange
from fencepost.broker.server.response_cache import CACHED_API, Key
from fencepost.protocol.apis import BY_KEY, BY_NAME, Api
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.codec import MalformedMessage, decode_request, encode_response
from fencepost.protocol.codec.error_codes import error_code_finder
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.frames import (
    FrameAssembler,
    InvalidFrame,
    RequestHeader,
    read_header,
    skip_tags,
)
from fencepost.protocol.messages.produce import ProduceRequest

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from fencepost.broker.server.listener import Listener

MAX_IN_FLIGHT: Final = 256
"""Requests of one connection that may wait; a real broker takes up one at a time."""
_SCRATCH: Final = memoryview(bytearray(256 << 10))
"""Where all connections receive: a loop reads one at a time, and uses up what it read."""
_API_VERSIONS: Final = BY_NAME["api_versions"]
_PRODUCE: Final = BY_NAME["produce"]
_RESET: Final = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
"""SO_LINGER with no time at all: what is not sent is forgotten, and the peer sees a reset."""


class Connection(asyncio.BufferedProtocol):
    """The server's side of one TCP connection."""

    def __init__(self, listener: "Listener") -> None:
        self._listener = listener
        self._server = listener.server
        self._broker = listener.broker
        self._response_cache = listener.response_cache
        self._assembler = FrameAssembler(_SCRATCH, self._broker.configs.socket_request_max_bytes)
        self._inbox: deque[bytearray] = deque()
        self._queue: deque[Exchange] = deque()
        self._room = MAX_IN_FLIGHT
        """Requests that may wait now; none while an answer holds up what is behind it."""
        self._last: Exchange | None = None
        """In its place the connection ends."""
        self._out: list[Buffer] = []
        self._transport: asyncio.Transport
        self._writing_paused = False
        self._reading_paused = False
        self._closing = False
        self._client_id: str | None = None
        self.peer: Peer
        self.last_active_ms = self._server.clock.now_ms()

    # -- asyncio's side -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client connected."""
        # uvloop's transports are not asyncio's by inheritance.
        self._transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername") or ("unknown", 0)
        local = transport.get_extra_info("sockname") or ("", 0)
        self.peer = Peer(
            connection_id=f"{local[0]}:{local[1]}-{address[0]}:{address[1]}",
            host=str(address[0]),
            listener_host=str(local[0]),
        )
        if not self._listener.admit(self):
            self._close("broker_down" if self._listener.is_down else "too_many_connections")

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        """The connection is gone: nobody waits for its answers any more."""
        self._cancel_waits()
        self._listener.on_closed(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  # asyncio's signature
        """Where to receive the next bytes."""
        return self._assembler.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes came: take up the requests that they complete."""
        self.last_active_ms = self._server.clock.now_ms()
        try:
            self._inbox += self._assembler.received(nbytes)
        except InvalidFrame as error:
            self._close("bad_frame", str(error))
            return
        self._process_inbox()

    def eof_received(self) -> bool:
        """The client sends no more: close at once, as a real broker does."""
        return False

    def pause_writing(self) -> None:
        """The client does not read: take up no more of its requests."""
        self._writing_paused = True

    def resume_writing(self) -> None:
        """The client reads again."""
        self._writing_paused = False
        self._process_inbox()

    # -- requests -------------------------------------------------------------------------------

    def _process_inbox(self) -> None:
        """Take up requests while there is room for their answers; send what is ready."""
        inbox = self._inbox
        while inbox and not self._closing and self._has_room():
            self._start_request(inbox.popleft())
        self._flush()
        if inbox or self._reading_paused or not self._has_room():
            self._update_reading()

    def _has_room(self) -> bool:
        return not self._writing_paused and len(self._queue) < self._room

    def _update_reading(self) -> None:
        """Read from the socket only while requests are taken up."""
        if self._closing:
            return
        if self._last is not None and self._queue[0] is self._last:
            self._close("hung_up")
            return
        wanted = bool(self._inbox) or not self._has_room()
        if wanted and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()
        elif not wanted and self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()

    def _start_request(self, frame: bytearray) -> None:
        try:
            header = read_header(frame)
            api = BY_KEY.get(header.api_key)
            self._client_id = header.client_id
            if api is None or not self._serves(api, header.version):
                self._refuse_version(api, header, frame)
                return
            offset = skip_tags(frame, header, api)
            key = None
            if api is CACHED_API and not self._broker.faults.active:
                key = (header.version, self.peer.listener_host, bytes(frame[offset:]))
                if self._respond_from_cache(key, api, header, frame, offset):
                    return
            request = decode_request(api, header.version, frame, offset)
        except (InvalidFrame, MalformedMessage) as error:
            self._close("bad_request", str(error))
            return
        self._answer(self._open(api, header.version, header, frame, offset), request, key)

    def _serves(self, api: Api, version: int) -> bool:
        ceilings = self._broker.version_limits
        if ceilings and version > ceilings.get(api.name, version):
            return False
        return api.serves(version)

    def _respond_from_cache(
        self, key: Key, api: Api, header: RequestHeader, frame: bytearray, offset: int
    ) -> bool:
        """Answer from what is kept, if it is."""
        found = self._response_cache.get(self._broker.view, key, header.correlation_id)
        if found is None:
            return False
        exchange = self._open(api, header.version, header, frame, offset)
        chunks, exchange.errors = found
        self._enqueue_response(exchange, chunks)
        return True

    def _refuse_version(self, api: Api | None, header: RequestHeader, frame: bytearray) -> None:
        """ApiVersions is answered in version 0 whatever was asked; all else closes (KIP-511)."""
        if api is not _API_VERSIONS:
            name = f"API key {header.api_key}" if api is None else api.title
            self._close("not_served", f"{name} v{header.version}")
            return
        exchange = self._open(api, 0, header, frame, header.body_offset)
        from fencepost.broker.handlers.api_versions import refuse_version

        self._complete(exchange, refuse_version(self._broker))

    def _answer(self, exchange: Exchange, request: object, key: Key | None) -> None:
        ctx = Context(
            self._broker, exchange.version, exchange.client_id, self.peer, exchange.time_ms
        )
        api = exchange.api
        if api is _PRODUCE and self._broker.configs.may_check_expected_offsets:
            exchange.expected_offsets = extract_expected_offsets(
                self._broker, cast(ProduceRequest, request)
            )
        try:
            answer = self._broker.handle(api, ctx, request)
        except Exception:  # noqa: BLE001  # a bug costs one answer, never the broker
            self._log().exception("handler_failed", api=api.title, version=exchange.version)
            answer = self._unknown_server_error(api, request)
        if isinstance(answer, Wait):
            exchange.wait = answer
            if isinstance(answer, BlockingResponse):
                self._room = 0
                answer.then(lambda outcome: self._resume(exchange, outcome))
            else:
                answer.then(lambda result: self._complete_later(exchange, result))
        elif isinstance(answer, HangUp):
            self._hang_up(exchange)
        else:
            self._complete(exchange, answer, key)

    def _unknown_server_error(self, api: Api, request: object) -> object:
        """What a request is answered that met a bug; its connection ends if that fails as well."""
        try:
            return handler_of(api).refuse(request, ErrorCode.UNKNOWN_SERVER_ERROR)
        except Exception:  # noqa: BLE001  # as above
            self._log().exception("refusal_failed", api=api.title)
            return HANG_UP

    def _open(
        self, api: Api, version: int, header: RequestHeader, frame: bytearray, offset: int
    ) -> Exchange:
        exchange = Exchange(
            self.last_active_ms,
            self._broker.broker_id,
            self.peer.connection_id,
            header.client_id,
            api,
            version,
            header.correlation_id,
            frame,
            offset,
        )
        self._server.journal.open(exchange)
        self._queue.append(exchange)
        if logs.is_debug():
            self._log().debug("request", api=api.title, version=version)
        return exchange

    # -- answers --------------------------------------------------------------------------------

    def _complete(self, exchange: Exchange, answer: object, key: Key | None = None) -> None:
        """An answer is there; None is acks=0's: nothing is sent.

        :param key: What it is to be kept under.
        """
        chunks = None
        if answer is not None:
            try:
                chunks = encode_response(
                    exchange.api, exchange.version, exchange.correlation_id, answer
                )
            except Exception:  # noqa: BLE001  # a bug costs one connection, never the broker
                self._log().exception("answer_not_encodable", api=exchange.api.title)
                self._close("answer_not_encodable")
                return
            if key is not None:
                errors = error_code_finder(exchange.api, exchange.version)(answer)
                self._response_cache.put(self._broker.view, key, chunks, errors)
        self._enqueue_response(exchange, chunks, answer)

    def _enqueue_response(
        self, exchange: Exchange, chunks: list[Buffer] | None, answer: object = None
    ) -> None:
        """Put an encoded answer in its place, and make ready what has its turn."""
        self._server.journal.close(exchange, chunks, answer, self._server.clock.now_ms())
        queue = self._queue
        while queue and queue[0].done:
            self._out += queue.popleft().chunks or ()

    def _complete_later(self, exchange: Exchange, answer: object) -> None:
        if self._closing:
            return
        self._complete(exchange, answer)
        self._server.flush_soon(self)

    def _resume(self, exchange: Exchange, outcome: object) -> None:
        """An answer is there that held up those behind it."""
        if self._closing:
            return
        if isinstance(outcome, HangUp):
            self._hang_up(exchange)
        elif isinstance(outcome, Delivery):
            self._deliver(exchange, outcome)
        else:
            self._complete(exchange, outcome)
            self._room = MAX_IN_FLIGHT
        self._server.flush_soon(self)

    def _deliver(self, exchange: Exchange, delivery: Delivery) -> None:
        match delivery:
            case ThrottledResponse(response, until):
                self._complete(exchange, response)
                until.then(lambda _: self._unmute())
            case _:
                assert_never(delivery)

    def _unmute(self) -> None:
        """Take up again what was held up."""
        self._room = MAX_IN_FLIGHT
        self._server.flush_soon(self)

    def _hang_up(self, exchange: Exchange) -> None:
        """End the connection where an answer would stand; those before it are sent first."""
        self._room = 0
        self._last = exchange

    def flush(self) -> None:
        """Send what is ready, at the end of a turn, and go on with what waited for room."""
        if not self._closing:
            self._process_inbox()

    def _flush(self) -> None:
        if self._out and not self._closing:
            out, self._out = self._out, []
            self._transport.writelines(out)
            self._server.stay_awake()

    def _close(self, reason: str, detail: str = "") -> None:
        """Send what is due and close."""
        self._flush()
        self._closing = True
        self._inbox.clear()
        self._log().info("connection_closed", reason=reason, detail=detail)
        self._transport.close()

    def close(self) -> None:
        """The server goes down, or the client was idle for too long."""
        if not self._closing:
            self._flush()
            self._closing = True
            self._transport.close()

    def abort(self) -> None:
        """The broker dies: nothing more is answered, and the client sees a reset."""
        self._cancel_waits()
        sock: socket.socket | None = self._transport.get_extra_info("socket")
        if sock is not None:
            with contextlib.suppress(OSError):  # it may have been closed a moment ago
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()

    def _cancel_waits(self) -> None:
        """Nobody waits for its answers any more."""
        self._closing = True
        for exchange in self._queue:
            if exchange.wait is not None:
                exchange.wait.cancel()
            self._server.journal.abandon(exchange)
        self._queue.clear()
        self._inbox.clear()
        self._out.clear()

    def _log(self) -> "FilteringBoundLogger":
        return logs.logger(
            broker=self._broker.broker_id,
            connection=self.peer.connection_id,
            client_id=self._client_id,
        )
