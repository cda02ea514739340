"""One request over HTTP and its answer, between a connection and an ASGI application."""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import h11

from fencepost.control.asgi import Message, Scope

MAX_UNREAD_BYTES: Final = 64 << 10
"""Bytes of a body that the application has not taken yet; with more, no more are read."""
_CLOSE: Final = (b"connection", b"close")


class FlowControl:
    """Whether a connection is read from and may be written to.

    :param transport: That of the connection.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._is_reading = True
        self.writable = asyncio.Event()
        """Set while what was written does not pile up."""
        self.writable.set()

    def pause_reading(self) -> None:
        """Read no more; a second call does nothing."""
        if self._is_reading:
            self._is_reading = False
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on, where it has been paused."""
        if not self._is_reading:
            self._is_reading = True
            self._transport.resume_reading()


class Exchange:
    """A request and its answer.

    :param scope: The request's head, as ASGI has it.
    :param connection: The state of the connection's HTTP.
    :param transport: What the answer is written to.
    :param completed: Called when the answer is complete.
    """

    def __init__(
        self,
        scope: Scope,
        connection: h11.Connection,
        transport: asyncio.Transport,
        flow: FlowControl,
        completed: Callable[[], None],
    ) -> None:
        self.scope = scope
        self._h11 = connection
        self._transport = transport
        self._flow = flow
        self._completed = completed
        self._body = bytearray()
        self._has_more_body = True
        self._changed = asyncio.Event()
        self._awaits_continue = connection.they_are_waiting_for_100_continue
        self._is_started = False
        self._is_disconnected = False
        self.is_complete = False
        """Whether all of the answer has been written."""
        self.keeps_alive = True
        """Whether the connection stays open after it."""

    # -- what the connection tells --------------------------------------------------------------

    def add_body(self, data: bytes) -> None:
        """A piece of the body has arrived."""
        self._body += data
        if len(self._body) > MAX_UNREAD_BYTES:
            self._flow.pause_reading()
        self._changed.set()

    def end_body(self) -> None:
        """The body has arrived whole."""
        self._has_more_body = False
        self._changed.set()

    def disconnect(self) -> None:
        """The client is gone, or has broken the rules: what is sent from now on is dropped."""
        if not self.is_complete:
            self._is_disconnected = True
        self._changed.set()
        self._flow.writable.set()

    # -- ASGI -----------------------------------------------------------------------------------

    async def receive(self) -> Message:
        """The next piece of the body, or that the client has gone."""
        if self._awaits_continue and not self._transport.is_closing():
            self._awaits_continue = False
            self._write(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))
        if not self._is_over():
            self._flow.resume_reading()
            await self._changed.wait()
            self._changed.clear()
        if self._is_over():
            return {"type": "http.disconnect"}
        body = bytes(self._body)
        self._body.clear()
        return {"type": "http.request", "body": body, "more_body": self._has_more_body}

    async def send(self, message: Message) -> None:
        """Write the head of the answer, or a piece of its body."""
        if not self._is_disconnected:
            await self._flow.writable.wait()
        if self._is_disconnected:
            return
        if not self._is_started:
            self._send_head(message)
        else:
            self._send_body(message)

    def _send_head(self, message: Message) -> None:
        assert message["type"] == "http.response.start", message["type"]
        self._is_started = True
        self._awaits_continue = False
        status: int = message["status"]
        headers: list[tuple[bytes, bytes]] = list(message["headers"])
        if _CLOSE in self.scope["headers"] and _CLOSE not in headers:
            headers.append(_CLOSE)
        reason = HTTPStatus(status).phrase.encode()
        self._write(h11.Response(status_code=status, headers=headers, reason=reason))

    def _send_body(self, message: Message) -> None:
        assert message["type"] == "http.response.body", message["type"]
        assert not self.is_complete
        body = b"" if self.scope["method"] == "HEAD" else message["body"]
        self._write(h11.Data(data=body))
        if message.get("more_body", False):
            return
        self._write(h11.EndOfMessage())
        self.is_complete = True
        self._changed.set()
        if self._h11.our_state is h11.MUST_CLOSE or not self.keeps_alive:
            self._transport.close()
        self._completed()

    def _write(self, event: h11.Event) -> None:
        data = self._h11.send(event)
        if data:
            self._transport.write(data)

    def _is_over(self) -> bool:
        return self._is_disconnected or self.is_complete
