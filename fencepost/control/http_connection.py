"""A connection of an HTTP client to the control API: h11 reads it, an ASGI application answers.

Requests of one connection are answered one after the other. A connection is closed when no
descriptor is left for it or when its client is too slow with what it owes: a head, or the rest of a
body that was refused unread. One that is idle between two requests stays open for long.
"""

import asyncio
import logging
from typing import Final
from urllib.parse import unquote

import h11
from msgspec import Struct, field

from fencepost.broker.server import logs
from fencepost.broker.server.resources import DescriptorBudget
from fencepost.broker.server.server import Server
from fencepost.control import limits
from fencepost.control.asgi import App, Scope
from fencepost.control.http_exchange import Exchange, FlowControl

KEEP_ALIVE_S: Final = 600
"""A test may pause for long between two requests, and its connection has to stay open."""
_NO_HTTP: Final = "Invalid HTTP request received."
_NO_HTTP_HEADERS: Final = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"connection", b"close"),
]


class Serving(Struct, frozen=True, kw_only=True, eq=False):
    """What all connections of one control API share."""

    app: App
    server: Server
    connections: "set[HttpConnection]" = field(default_factory=set)
    """Those that are open."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    """Of the requests that are being answered."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever a connection or a task has ended."""


class HttpConnection(asyncio.Protocol):
    """A connection of a client."""

    _transport: asyncio.Transport
    _flow: FlowControl
    _descriptors: DescriptorBudget

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._h11 = h11.Connection(h11.SERVER, limits.MAX_HEAD_BYTES)
        self._loop = asyncio.get_running_loop()
        self._is_admitted = False
        self._exchange: Exchange | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._debt_timer: asyncio.TimerHandle | None = None

    # -- what the transport tells ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP
        """A client connected."""
        self._transport = transport
        self._flow = FlowControl(transport)
        # The budget from which it takes a descriptor is the one to which it gives it back.
        self._descriptors = self._serving.server.descriptors
        self._is_admitted = self._descriptors.admit_control()
        if self._is_admitted:
            self._serving.connections.add(self)
            self._watch_debt()
        else:
            transport.abort()

    def connection_lost(self, _error: Exception | None) -> None:
        """The connection is gone."""
        self._stop_idle_timer()
        self._stop_debt_timer()
        if not self._is_admitted:
            return
        self._is_admitted = False
        self._descriptors.release_control()
        if self._exchange is not None:
            self._exchange.disconnect()
            self._exchange = None  # which refers to this connection
        self._serving.connections.discard(self)
        self._serving.changed.set()

    def data_received(self, data: bytes) -> None:
        """Bytes arrived; they may be a part of a head."""
        if self._is_admitted:
            self._stop_idle_timer()
            self._h11.receive_data(data)
            self._read_events()
            self._watch_debt()

    def pause_writing(self) -> None:
        """What was written piles up."""
        self._flow.writable.clear()

    def resume_writing(self) -> None:
        """The client has read enough of it."""
        self._flow.writable.set()

    # -- requests -------------------------------------------------------------------------------

    def _read_events(self) -> None:
        """Take up all that has arrived, as far as it is one request's."""
        while True:
            try:
                event = self._h11.next_event()
            except h11.RemoteProtocolError:
                self._refuse()
                return
            if event is h11.PAUSED:  # the next request waits until this one is answered
                self._flow.pause_reading()
                return
            if isinstance(event, h11.Request):
                self._stop_idle_timer()
                self._begin(event)
            elif isinstance(event, h11.Data):
                self._add_body(event)
            elif not isinstance(event, h11.EndOfMessage) or not self._end_body():
                return

    def _begin(self, request: h11.Request) -> None:
        exchange = Exchange(
            self._scope(request), self._h11, self._transport, self._flow, self._completed
        )
        self._exchange = exchange
        task = self._loop.create_task(self._run(exchange))
        self._serving.tasks.add(task)
        task.add_done_callback(self._ended)

    def _scope(self, request: h11.Request) -> Scope:
        """The head of a request as ASGI hands it over."""
        raw_path, _, query = request.target.partition(b"?")
        local = self._transport.get_extra_info("sockname")
        peer = self._transport.get_extra_info("peername")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": request.http_version.decode("ascii"),
            "method": request.method.decode("ascii"),
            "scheme": "http",
            "path": unquote(raw_path.decode("ascii")),
            "raw_path": raw_path,
            "query_string": query,
            "root_path": "",
            "headers": list(request.headers),
            "client": None if peer is None else tuple(peer[:2]),
            "server": tuple(local[:2]),
        }

    def _add_body(self, event: h11.Data) -> None:
        """A piece of a body; of one that has been answered already it is nothing."""
        if self._exchange is not None and self._h11.our_state is not h11.DONE:
            self._exchange.add_body(bytes(event.data))

    def _end_body(self) -> bool:
        """The end of a body; True where there may be more to read."""
        assert self._exchange is not None
        if self._h11.our_state is h11.DONE:
            self._flow.resume_reading()
            self._h11.start_next_cycle()
            return True
        self._exchange.end_body()
        return self._h11.their_state is not h11.MUST_CLOSE

    async def _run(self, exchange: Exchange) -> None:
        try:
            await self._serving.app(exchange.scope, exchange.receive, exchange.send)
        except Exception as error:  # noqa: BLE001  # a bug, which the log has
            log(logging.ERROR, "a request failed", error)
        finally:
            if not exchange.is_complete:
                self._transport.close()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._serving.tasks.discard(task)
        self._serving.changed.set()

    def _completed(self) -> None:
        """An answer is complete: go on with the next request, which may be there already."""
        if self._transport.is_closing():
            return
        self._stop_idle_timer()
        self._idle_timer = self._loop.call_later(KEEP_ALIVE_S, self._transport.close)
        self._flow.resume_reading()
        if self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE:
            self._h11.start_next_cycle()
            self._read_events()

    def _refuse(self) -> None:
        """Answer what is no HTTP, unless an answer is on its way, and close."""
        log(logging.WARNING, _NO_HTTP)
        if self._exchange is not None:
            self._exchange.disconnect()
        if self._h11.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            reason = b"Bad Request"
            for event in (
                h11.Response(status_code=400, headers=_NO_HTTP_HEADERS, reason=reason),
                h11.Data(data=_NO_HTTP.encode()),
                h11.EndOfMessage(),
            ):
                self._transport.write(self._h11.send(event) or b"")
        self._transport.close()

    # -- its end --------------------------------------------------------------------------------

    def shut_down(self) -> None:
        """Close the connection now, or when the request that is being answered has its answer."""
        if self._exchange is None or self._exchange.is_complete:
            self._transport.close()
        else:
            self._exchange.keeps_alive = False

    def abort(self) -> None:
        """Close the connection, whatever it is doing."""
        self._transport.abort()

    def _watch_debt(self) -> None:
        """Limit the time of a client that owes the rest of what it sends, and of no other."""
        if self._exchange is not None and not self._exchange.is_complete:
            self._stop_debt_timer()  # the application reads the body, within its own limit
        elif self._debt_timer is None:
            self._debt_timer = self._loop.call_later(limits.HEAD_S, self._transport.close)

    def _stop_debt_timer(self) -> None:
        if self._debt_timer is not None:
            self._debt_timer.cancel()
            self._debt_timer = None

    def _stop_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None


def log(level: int, text: str, error: Exception | None = None) -> None:
    """Write a line about HTTP to fencepost's own log, and the exception that it reports."""
    logs.logger("fencepost.control", part="control").log(level, "http", detail=text, exc_info=error)
