"""Limits of the control API: size and time of a body, size and time of a head.

Refusals that need no application are written here (`refuse`).

A body is read to its end before the request is handled, so that one that is too large costs no more
than the limit. It is refused with 413, and read on without being kept: a client that sends all of
it before it reads would otherwise see a reset connection and not the answer. One that does not
arrive in time is refused with 408.
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from fencepost.control.access import Refusal
from fencepost.control.asgi import App, Message, Receive, Scope, Send, answer
from fencepost.protocol.errors import ErrorCode

MAX_BODY_BYTES: Final = 1 << 20
"""The most bytes of a body; the assignments of 10,000 partitions take a quarter of it."""
BODY_S: Final = 30.0
"""How long a body may take to arrive, be it kept or not."""
HEAD_S: Final = 30.0
"""How long a connection may take to send a head, or the rest of a body that was refused unread."""
MAX_HEAD_BYTES: Final = 16 << 10
"""The most bytes of a head that has not arrived whole."""


_CLOSE: Final = {"connection": "close"}


class _TooLarge(Exception):
    """The body has more than `MAX_BODY_BYTES`."""


class BodyLimit:
    """An ASGI middleware that refuses a body above `MAX_BODY_BYTES`, or later than `BODY_S`."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        deadline = asyncio.get_running_loop().time() + BODY_S
        try:
            async with asyncio.timeout_at(deadline):
                body = await _read(scope, receive)
        except TimeoutError:
            await refuse(send, _too_late(), _CLOSE)
        except _TooLarge:
            await refuse(send, _too_large(), _CLOSE, more=True)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    await _read_on(receive)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            if body is not None:
                await self._app(scope, _replay(body, receive), send)


def _has_body(scope: Scope) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


def _states_too_much(scope: Scope) -> bool:
    stated = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return stated.isdigit() and int(stated) > MAX_BODY_BYTES


async def _read(scope: Scope, receive: Receive) -> bytes | None:
    """The body; None when the client has gone.

    :raises _TooLarge: When it is, or says that it will be.
    """
    if _states_too_much(scope):
        raise _TooLarge
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MAX_BODY_BYTES:
            body.clear()  # the exception has this frame
            raise _TooLarge
    return bytes(body)


async def _read_on(receive: Receive) -> None:
    """Let the rest of the body go by."""
    while (await receive()).get("more_body", False):
        pass


def _replay(body: bytes, receive: Receive) -> Receive:
    """Receives the body at once, and then what comes after it."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return messages.pop() if messages else await receive()

    return replayed


def _too_late() -> Refusal:
    return Refusal(
        status=408,
        code=ErrorCode.REQUEST_TIMED_OUT.name,
        message=f"the body did not arrive within {BODY_S:g} s, which is the limit",
    )


def _too_large() -> Refusal:
    return Refusal(
        status=413,
        code=ErrorCode.INVALID_REQUEST.name,
        message=f"the body has more than {MAX_BODY_BYTES} bytes, which is the limit",
    )


async def refuse(
    send: Send, refusal: Refusal, headers: Mapping[str, str], *, more: bool = False
) -> None:
    """Answer with an error.

    :param headers: Besides those that describe the content.
    :param more: Whether the end of the answer is still to be sent.
    """
    content = json.dumps({"error": refusal.code, "message": refusal.message}).encode()
    typed = {"content-type": "application/json", **headers}
    await answer(send, refusal.status, content, typed, more=more)
