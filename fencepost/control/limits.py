"""Limits of the control API: the size of a body, the time of a head, the number of connections.

A body is read to its end before the request is handled, so that one that is too large costs no more
than the limit. It is refused with 413, and read on without being kept: a client that sends all of
it before it reads would otherwise see a reset connection and not the answer.
"""

import asyncio
import json
from typing import Any, Final

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from fencepost.broker.server.resources import DescriptorBudget
from fencepost.protocol.errors import ErrorCode

MAX_BODY_BYTES: Final = 1 << 20
"""The most bytes of a body; the assignments of 10,000 partitions take a quarter of it."""
HEAD_S: Final = 30.0
"""How long the head of a request may take to arrive."""
_TOO_LARGE: Final = 413


class BodyLimit:
    """An ASGI middleware that refuses requests with a body above `MAX_BODY_BYTES`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        body = bytearray()
        more = not _states_too_much(scope)
        too_large = not more
        while more and not too_large:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            too_large = len(body) > MAX_BODY_BYTES
        if too_large:
            body.clear()
            await _refuse(receive, send)
            return
        await self._app(scope, _replay(bytes(body), receive), send)


def _has_body(scope: Scope) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


def _states_too_much(scope: Scope) -> bool:
    stated = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return stated.isdigit() and int(stated) > MAX_BODY_BYTES


def _replay(body: bytes, receive: Receive) -> Receive:
    """Receives the body at once, and then what comes after it."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return messages.pop() if messages else await receive()

    return replayed


async def _refuse(receive: Receive, send: Send) -> None:
    text = f"the body has more than {MAX_BODY_BYTES} bytes, which is the limit"
    answer = json.dumps({"error": ErrorCode.INVALID_REQUEST.name, "message": text}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(answer)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": _TOO_LARGE, "headers": headers})
    await send({"type": "http.response.body", "body": answer, "more_body": True})
    while (await receive()).get("more_body", False):
        pass
    await send({"type": "http.response.body", "body": b"", "more_body": False})


class LimitedProtocol(H11Protocol):
    """A connection of uvicorn, closed when no descriptor is left for it or its client is too slow.

    uvicorn itself waits for ever for the rest of a head, once a byte of it is there.
    """

    def __init__(self, config: Any, *arguments: Any, **named: Any) -> None:  # noqa: ANN401  # its own
        super().__init__(config, *arguments, **named)
        self._descriptors: DescriptorBudget = config.app.app.state.server.descriptors
        self._is_admitted = False
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client connected."""
        self._is_admitted = self._descriptors.admit_control()
        if self._is_admitted:
            super().connection_made(transport)
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._stop_timer()
        if self._is_admitted:
            self._is_admitted = False
            self._descriptors.release_control()
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes arrived; they may be a part of a head."""
        if not self._is_admitted:
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_timer()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_S, self.transport.close)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
