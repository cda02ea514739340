"""Lines of JSON between the store and its users."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from examples.kvstore import client
from examples.kvstore.leader import NotDone, Unknown
from examples.kvstore.node import shard_of
from examples.kvstore.server import MAX_LINE, Mistake, NotLeader, operation_of, serve
from examples.kvstore.state import Kind, Operation, Result

GET = Operation(kind=Kind.GET, key="k")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ({"op": "get", "key": "k"}, GET),
        ({"op": "put", "key": "k", "value": "v"}, Operation(kind=Kind.PUT, key="k", value="v")),
        (
            {"op": "cas", "key": "k", "value": "v", "expected": None},
            Operation(kind=Kind.CAS, key="k", value="v"),
        ),
        (
            {"op": "cas", "key": "k", "expected": "v"},
            Operation(kind=Kind.CAS, key="k", expected="v"),
        ),
    ],
)
def test_operations(said: dict[str, object], meant: Operation) -> None:
    assert operation_of(json.dumps(said).encode()) == meant


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"get k",
        b"[]",
        b"1",
        b"null",
        b'{"key": "k"}',
        b'{"op": "burn", "key": "k"}',
        b'{"op": "get"}',
        b'{"op": "get", "key": ""}',
        b'{"op": "get", "key": 1}',
        b'{"op": "get", "key": "\\ud800"}',
        b'{"op": "get", "key": "k", "value": "v"}',
        b'{"op": "put", "key": "k"}',
        b'{"op": "put", "key": "k", "value": 1}',
        b'{"op": "put", "key": "k", "value": "v", "expected": "w"}',
        b"\xff",
    ],
)
def test_mistakes(line: bytes) -> None:
    with pytest.raises(Mistake):
        operation_of(line)


@dataclass(slots=True)
class Store:
    """What answers, or fails, as the test says."""

    answers: list[Result | Exception]
    asked: list[Operation] = field(default_factory=list)
    address: tuple[str, int] = ("", 0)

    async def do(self, operation: Operation) -> Result:
        self.asked.append(operation)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    made = Store([])
    server = await serve(made.do, "127.0.0.1", 0)
    made.address = server.sockets[0].getsockname()[:2]
    yield made
    server.close()


async def test_a_user_asks_until_there_is_a_result(store: Store) -> None:
    store.answers = [NotLeader("not here"), NotDone("not now"), Result(done=True, value="v")]
    unreachable = ("127.0.0.1", 1)
    assert await client.do([unreachable, store.address], GET, 10) == Result(done=True, value="v")
    assert store.asked == [GET] * 3


async def test_a_user_who_may_have_been_heard_does_not_ask_again(store: Store) -> None:
    store.answers = [Unknown("perhaps")]
    with pytest.raises(Unknown, match="perhaps"):
        await client.do([store.address], GET, 10)
    assert store.asked == [GET]


async def test_a_user_who_is_not_answered_knows_nothing() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    with pytest.raises(Unknown, match="closed the connection"):
        await client.do([server.sockets[0].getsockname()[:2]], GET, 10)
    server.close()


async def test_a_user_runs_out_of_patience(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "PAUSE_S", 1.1)  # it ends in the pause, not while it asks
    store.answers = [NotLeader("not here")] * 100
    with pytest.raises(NotDone, match="not here"):
        await client.do([store.address], GET, 1.0)


async def test_a_mistake_is_told(store: Store) -> None:
    with pytest.raises(Mistake, match="has a key"):
        await client.do([store.address], Operation(kind=Kind.GET, key=""), 10)
    assert store.asked == []


async def test_a_line_that_is_too_long_ends_the_connection(store: Store) -> None:
    reader, writer = await asyncio.open_connection(*store.address)
    writer.write(b"x" * (MAX_LINE + 2))
    assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize(("key", "shard"), [("apple", 0), ("pear", 1), ("plum", 2), ("melon", 3)])
def test_a_key_stays_in_its_shard(key: str, shard: int) -> None:
    assert shard_of(key, 4) == shard
