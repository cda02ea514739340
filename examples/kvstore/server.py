"""What passes between the store and its users: lines of JSON over TCP, one for each operation.

``{"op": "put", "key": "k", "value": "v"}`` is answered ``{"done": true, "value": null}``, or
``{"error": "not_leader", "message": "..."}``. Of a connection's operations one is under way.
"""

import asyncio
import json
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import StrEnum
from typing import Final, TypeAlias

from examples.kvstore.leader import NotDone, Unknown
from examples.kvstore.state import Kind, Operation, Result

Do: TypeAlias = Callable[[Operation], Awaitable[Result]]
MAX_LINE: Final = 1 << 16
"""Bytes of a line; so a full batch of operations is far from what a broker takes."""
_TEXTS: Final = ("key", "value", "expected")


class Failure(StrEnum):
    """Why there is no result, as one word."""

    NOT_LEADER = "not_leader"
    """Ask another node."""
    NOT_DONE = "not_done"
    UNKNOWN = "unknown"
    """It may have been carried out, or be yet."""
    MISTAKE = "mistake"
    """It is no operation."""


class NotLeader(Exception):
    """This node does not lead the key's shard; another one does, or will."""


class Mistake(Exception):
    """A line is no operation."""


async def serve(do: Do, host: str, port: int) -> asyncio.Server:
    """Accept users.

    :param port: 0 is a free one.
    """

    async def accept(reader: StreamReader, writer: StreamWriter) -> None:
        # A line that is too long is not read to its end, and the connection closed.
        with suppress(OSError, ValueError):
            while line := await reader.readline():
                writer.write(json.dumps(await _answer(do, line)).encode() + b"\n")
                await writer.drain()
        writer.close()

    return await asyncio.start_server(accept, host, port, limit=MAX_LINE)


def operation_of(line: bytes) -> Operation:
    """The operation that a line says.

    :raises Mistake: When it says none.
    """
    try:
        said = json.loads(line)
        kind = Kind(said["op"])
        texts = {name: said.get(name) for name in _TEXTS}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Mistake("no JSON object with op, which is one of " + ", ".join(Kind)) from None
    for name, text in texts.items():
        if not isinstance(text, str | None):
            raise Mistake(f"{name} is no text")
    return operation(kind, **texts)


def operation(
    kind: Kind, key: str | None, value: str | None = None, expected: str | None = None
) -> Operation:
    """An operation that has what its kind needs.

    :raises Mistake: When it has not.
    """
    if not key or not key.isprintable():
        raise Mistake("an operation has a key, without control characters")
    needs_value = kind in (Kind.PUT, Kind.APPEND)
    if needs_value and value is None:
        raise Mistake(f"{kind} has a value")
    if kind in (Kind.GET, Kind.DELETE) and value is not None:
        raise Mistake(f"{kind} has no value")
    if kind is not Kind.CAS and expected is not None:
        raise Mistake(f"{kind} expects nothing")
    return Operation(kind=kind, key=key, value=value, expected=expected)


async def _answer(do: Do, line: bytes) -> dict[str, object]:
    try:
        result = await do(operation_of(line))
    except Mistake as error:
        return _failed(Failure.MISTAKE, error)
    except NotLeader as error:
        return _failed(Failure.NOT_LEADER, error)
    except NotDone as error:
        return _failed(Failure.NOT_DONE, error)
    except Unknown as error:
        return _failed(Failure.UNKNOWN, error)
    return {"done": result.done, "value": result.value}


def _failed(failure: Failure, error: Exception) -> dict[str, object]:
    return {"error": failure.value, "message": str(error)}
