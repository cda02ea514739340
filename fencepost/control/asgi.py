"""ASGI as the control API uses it: the types of its messages, a request, and answers.

The sender and the receiver of the messages are `fencepost.control.http_connection` or, in tests, a
client in the same process. Their form is that of the ASGI specification, "HTTP & WebSocket ASGI
Message Format", of which only HTTP is used.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import aclosing
from typing import Any, Protocol, TypeAlias
from urllib.parse import parse_qsl

from msgspec import Struct, field

from fencepost.broker.server.server import Server

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class Closeable(Protocol):
    """What ends when the cluster stops."""

    def close(self) -> None:
        """End it."""


class Control(Struct, kw_only=True):
    """What all requests to one control API share."""

    server: Server
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the cluster stops: requests that wait end."""
    event_stream: Closeable | None = None
    """The streams of events, from the first one on."""

    def stop(self) -> None:
        """Let the requests that wait, and the streams, end by themselves."""
        if self.event_stream is not None:
            self.event_stream.close()
        self.stopping.set()


class Request(Struct, frozen=True, kw_only=True):
    """A request whose path is one of the control API's."""

    control: Control
    scope: Scope
    receive: Receive
    path_parameters: Mapping[str, str]

    @property
    def local_host(self) -> str:
        """This server's own address, as the client has connected to it."""
        host: str = self.scope["server"][0]
        return host

    def header(self, name: str) -> str | None:
        """The first value of a header, by its name in lower case."""
        wanted = name.encode("latin-1")
        values = (value for each, value in self.scope["headers"] if each == wanted)
        found: bytes | None = next(values, None)
        return None if found is None else found.decode("latin-1")

    def query(self) -> list[tuple[str, str]]:
        """The parameters of the query in their order; a name may be repeated."""
        text: bytes = self.scope["query_string"]
        return parse_qsl(text.decode("latin-1"), keep_blank_values=True)

    async def body(self) -> bytes:
        """The whole body; empty where there is none, or the client has gone."""
        content = bytearray()
        while True:
            message = await self.receive()
            content += message.get("body", b"")
            if not message.get("more_body", False):
                return bytes(content)

    async def disconnected(self) -> None:
        """Wait until the client closes its connection."""
        await _disconnected(self.receive)


class Response(Struct, frozen=True, kw_only=True):
    """An answer that is known whole."""

    content: bytes
    media_type: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    async def send(self, _receive: Receive, send: Send) -> None:
        """Send it."""
        typed = {"content-type": self.media_type, **self.headers}
        await answer(send, self.status, self.content, typed)


class TextStream(Struct, frozen=True, kw_only=True):
    """An answer in pieces, which ends with them or with the client's connection."""

    pieces: AsyncGenerator[str, None]
    media_type: str

    async def send(self, receive: Receive, send: Send) -> None:
        """Send the pieces as they come."""
        headers = [(b"content-type", self.media_type.encode("latin-1"))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        sending = asyncio.ensure_future(self._send_pieces(send))
        tasks = (sending, asyncio.ensure_future(_disconnected(receive)))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if not sending.cancelled():
            sending.result()

    async def _send_pieces(self, send: Send) -> None:
        async with aclosing(self.pieces) as pieces:
            async for piece in pieces:
                body = piece.encode()
                await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def json_response(
    content: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """An answer of JSON, without a space that is not needed."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(
        content=text.encode(), media_type="application/json", status=status, headers=headers or {}
    )


async def answer(
    send: Send, status: int, content: bytes, headers: Mapping[str, str], *, more: bool = False
) -> None:
    """Answer with this content, whose length is told.

    :param headers: Besides that of the length.
    :param more: Whether the end of the answer is still to be sent.
    """
    fields = {"content-length": str(len(content)), **headers}
    encoded = [(name.encode(), text.encode("latin-1")) for name, text in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": content, "more_body": more})
