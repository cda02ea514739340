"""The asyncio side of a `Connection`: moves its bytes between it and a transport."""

import asyncio
import contextlib
import socket
import struct
import sys
from typing import TYPE_CHECKING, Final, cast

from fencepost.broker.core.context import Peer
from fencepost.broker.core.log_levels import REQUESTS
from fencepost.broker.server import logs
from fencepost.broker.server.connection import Connection
from fencepost.broker.server.resources import LIMITS
from fencepost.broker.server.responses import CloseReason
from fencepost.protocol.apis import Api

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from fencepost.broker.server.listener import Listener

_RESET: Final = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
"""SO_LINGER with a time of zero: unsent bytes are discarded, and the peer sees a reset."""


class AsyncioConnection(asyncio.BufferedProtocol):
    """One TCP connection of a listener."""

    def __init__(self, listener: "Listener") -> None:
        self._listener = listener
        self._server = listener.server
        self._connection: Connection
        self._transport: asyncio.Transport
        self._is_reading = True
        self._holds = 0
        self._is_closed = False

    @property
    def peer(self) -> Peer:
        """The client."""
        return self._connection.peer

    @property
    def last_active_ms(self) -> int:
        """When bytes arrived last."""
        return self._connection.last_active_ms

    # -- callbacks of asyncio -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client connected."""
        # uvloop's transports are not asyncio's by inheritance.
        self._transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername") or ("unknown", 0)
        local = transport.get_extra_info("sockname") or ("", 0)
        peer = Peer(
            connection_id=f"{local[0]}:{local[1]}-{address[0]}:{address[1]}",
            host=str(address[0]),
            port=address[1],
            listener=self._listener.name,
            listener_host=str(local[0]),
        )
        self._connection = Connection(
            self._listener.broker,
            peer,
            self,
            clock=self._server.clock,
            journal=self._server.journal,
            response_cache=self._listener.response_cache,
            memory=self._server.request_memory,
        )
        refusal = self._listener.admit(self)
        if refusal is not None:
            self._connection.close(CloseReason(refusal))
            self._transfer()
        else:
            self._listener.hold_back(self)
            self._listener.silence(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        """The connection is gone."""
        self._is_closed = True
        self._connection.abandon()
        self._listener.on_closed(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  # asyncio's signature
        """Return where to put the next bytes."""
        return self._connection.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes arrived."""
        if self._holds:
            # uvloop begins to read after `connection_made`, even if that paused it.
            self._is_reading = True
        self._connection.receive(nbytes)
        self._transfer()

    def eof_received(self) -> bool:
        """The client sends no more: close at once, as a real broker does."""
        return False

    def pause_writing(self) -> None:
        """The client does not read."""
        self._connection.pause_output()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._connection.resume_output()
        self._transfer()

    # -- for the connection ---------------------------------------------------------------------

    def output_ready(self) -> None:
        """Send the output at the end of this turn of the loop."""
        self._server.flush_soon(self)

    def log_request(self, api: Api, version: int) -> None:
        """Log a request."""
        self._log().debug("request", api=api.title, version=version)

    def log_exception(self, event: str, **details: object) -> None:
        """Log the exception that is being handled."""
        self._log().exception(event, **details)

    # -- for the server -------------------------------------------------------------------------

    def flush(self) -> None:
        """Send what is ready, and handle the requests that there is room for now."""
        if not self._is_closed:
            self._connection.resume()
            self._transfer()

    def hold(self) -> None:
        """Read and handle nothing until it is released, as often as it is held."""
        self._holds += 1
        self._connection.pause_output()
        self._transfer()

    def release(self) -> None:
        """Read what the client has sent."""
        self._holds -= 1
        if not self._holds and not self._is_closed:
            self._connection.resume_output()
            self._transfer()

    def close(self) -> None:
        """Send what is ready and close: the server stops, or the client was idle for too long."""
        if not self._is_closed:
            self._connection.close()
            self._transfer()

    def abort(self) -> None:
        """Reset the connection: the broker was killed, and sends nothing more."""
        self._is_closed = True
        self._connection.abandon()
        sock: socket.socket | None = self._transport.get_extra_info("socket")
        if sock is not None:
            with contextlib.suppress(OSError):  # it may have been closed a moment ago
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()

    # -- the transport --------------------------------------------------------------------------

    def _transfer(self) -> None:
        """Write the output; then close, or read only while the connection wants input."""
        connection = self._connection
        if connection.output:
            self._transport.writelines(connection.take_output())
            self._server.stay_awake()
        if connection.is_closing:
            self._finish()
        elif (connection.wants_input and not self._holds) is not self._is_reading:
            self._is_reading = not self._is_reading
            if self._is_reading:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _finish(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        closed = self._connection.close_reason
        if closed is not None and closed.reason in LIMITS:
            self._server.count_refusal(closed.reason)
        elif closed is not None:
            self._log().info("connection_closed", reason=closed.reason, detail=closed.detail)
        self._transport.close()

    def _log(self) -> "FilteringBoundLogger":
        return logs.logger(
            REQUESTS,
            broker=self._listener.broker.broker_id,
            connection=self._connection.peer.connection_id,
            client_id=self._connection.client_id,
        )
