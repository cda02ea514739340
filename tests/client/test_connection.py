"""A connection against brokers that behave oddly, which a real one cannot be asked to do."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from fencepost.client.connection import API_VERSIONS, HEARTBEAT, PRODUCE, Connection, connect
from fencepost.client.errors import (
    Disconnected,
    MalformedAnswer,
    NotServed,
    TimedOut,
    Unreachable,
)
from fencepost.protocol.apis import BY_KEY, BY_NAME, Api
from fencepost.protocol.codec import encode_response
from fencepost.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from fencepost.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from fencepost.protocol.messages.produce import ProduceRequest
from tests.harness.in_process_server import HOST, sockets

Asked = tuple[Api, int, int]
"""API, version and correlation id of a request."""
Behave = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]
VERSIONS = API_VERSIONS.api


@asynccontextmanager
async def broker(behave: Behave) -> AsyncIterator[Connection]:
    """A connection to a broker that does with each request as it likes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                frame = await reader.readexactly(size)
                key, version, correlation_id = struct.unpack_from(">hhi", frame)
                await behave((BY_KEY[key], version, correlation_id), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, HOST, 0)
    port = server.sockets[0].getsockname()[1]
    connection = await connect(HOST, port, "tests")
    try:
        yield connection
    finally:
        await connection.close()
        server.close()
        await server.wait_closed()


def answer(asked: Asked, response: object, writer: asyncio.StreamWriter, shift: int = 0) -> None:
    api, version, correlation_id = asked
    writer.writelines(encode_response(api, version, correlation_id + shift, response))


async def heartbeat(connection: Connection, timeout_s: float = 10) -> HeartbeatResponse:
    return await connection.ask(HEARTBEAT, HeartbeatRequest(), 4, timeout_s=timeout_s)


async def test_answers_find_who_asked() -> None:
    held: list[tuple[Asked, asyncio.StreamWriter]] = []

    async def behave(asked: Asked, writer: asyncio.StreamWriter) -> None:
        held.append((asked, writer))
        if len(held) == 3:
            for each, line in held:
                answer(each, HeartbeatResponse(error_code=each[2]), line)

    async with broker(behave) as connection:
        found = await asyncio.gather(*(heartbeat(connection) for _ in range(3)))
    assert [each.error_code for each in found] == [1, 2, 3]


async def test_a_closed_connection_is_told_to_all_who_wait() -> None:
    async def behave(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked[2] == 2:
            writer.close()

    async with broker(behave) as connection:
        found = await asyncio.gather(
            heartbeat(connection), heartbeat(connection), return_exceptions=True
        )
        assert [type(each) for each in found] == [Disconnected, Disconnected]
        assert not connection.is_open
        with pytest.raises(Disconnected):
            await heartbeat(connection)


async def test_closing_it_tells_who_waits() -> None:
    arrived = asyncio.Event()

    async def behave(asked: Asked, writer: asyncio.StreamWriter) -> None:
        arrived.set()

    async with broker(behave) as connection:
        waiting = asyncio.create_task(heartbeat(connection))
        await arrived.wait()
        await connection.close()
        with pytest.raises(Disconnected):
            await waiting


async def test_an_answer_that_does_not_come_ends_the_connection() -> None:
    async def behave(asked: Asked, writer: asyncio.StreamWriter) -> None:
        pass

    async with broker(behave) as connection:
        with pytest.raises(TimedOut, match=r"Heartbeat within 0\.05 s"):
            await heartbeat(connection, 0.05)
        assert not connection.is_open


async def test_who_gives_up_does_not_disturb_the_others() -> None:
    all_asked: list[Asked] = []
    arrived = asyncio.Event()

    async def behave(asked: Asked, writer: asyncio.StreamWriter) -> None:
        all_asked.append(asked)
        arrived.set()
        if len(all_asked) == 2:
            for each in all_asked:
                answer(each, HeartbeatResponse(error_code=each[2]), writer)

    async with broker(behave) as connection:
        first = asyncio.create_task(heartbeat(connection))
        await arrived.wait()
        first.cancel()
        assert (await heartbeat(connection)).error_code == 2


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"\x00\x00\x00\x08\x00\x00\x00\x63\x00\x00\x00\x00", id="without a request"),
        pytest.param(b"\x00\x00\x00\x02\x00\x00", id="too short"),
        pytest.param(b"\xff\xff\xff\xff", id="a negative size"),
    ],
)
async def test_bytes_that_are_no_answer_end_the_connection(sent: bytes) -> None:
    async def behave(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)

    async with broker(behave) as connection:
        with pytest.raises(MalformedAnswer):
            await heartbeat(connection)


async def test_an_answer_of_another_shape_is_malformed() -> None:
    async def behave(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(struct.pack(">iib", 5, asked[2], 0))

    async with broker(behave) as connection:
        with pytest.raises(MalformedAnswer, match="Heartbeat v4"):
            await heartbeat(connection)


async def test_nobody_listens() -> None:
    (sock,) = sockets(1)
    port = sock.getsockname()[1]
    sock.close()
    with pytest.raises(Unreachable, match=f"{HOST}:{port}"):
        await connect(HOST, port, None)


async def test_acks_0_waits_for_no_answer() -> None:
    seen = asyncio.Event()

    async def behave(asked: Asked, writer: asyncio.StreamWriter) -> None:
        seen.set()

    async with broker(behave) as connection:
        await connection.send(PRODUCE, ProduceRequest(acks=0), 9)
        async with asyncio.timeout(10):
            await seen.wait()


def some_versions(*entries: tuple[str, int, int]) -> ApiVersionsResponse:
    keys = (
        ApiVersion(api_key=BY_NAME[name].key, min_version=low, max_version=high)
        for name, low, high in entries
    )
    return ApiVersionsResponse(api_keys=tuple(keys))


async def test_versions_are_asked_once_and_the_highest_of_both_is_taken() -> None:
    asked_for: list[Asked] = []

    async def behave(asked: Asked, writer: asyncio.StreamWriter) -> None:
        asked_for.append(asked)
        answer(asked, some_versions(("fetch", 0, 8), ("metadata", 0, 99)), writer)

    async with broker(behave) as connection:
        assert await connection.best_version(BY_NAME["fetch"]) == 8
        highest = BY_NAME["metadata"].max_version
        assert await connection.best_version(BY_NAME["metadata"]) == highest
        with pytest.raises(NotServed, match="Produce"):
            await connection.best_version(BY_NAME["produce"])
    assert len(asked_for) == 1


@pytest.mark.parametrize("tells_versions", [True, False])
async def test_a_broker_that_knows_only_old_api_versions(tells_versions: bool) -> None:
    """It answers UNSUPPORTED_VERSION in version 0 (KIP-511), before Kafka 2.4 with nothing else."""
    entries = (("fetch", 0, 4),)

    async def behave(asked: Asked, writer: asyncio.StreamWriter) -> None:
        api, version, correlation_id = asked
        told = some_versions(*entries)
        if version > 0:
            code = ApiVersionsResponse(
                error_code=35, api_keys=told.api_keys if tells_versions else ()
            )
            writer.writelines(encode_response(api, 0, correlation_id, code))
        else:
            answer(asked, told, writer)

    async with broker(behave) as connection:
        assert await connection.versions() == {BY_NAME["fetch"].key: (0, 4)}


async def test_uvloop_tells_in_its_own_way_that_the_broker_is_gone() -> None:
    async def quiet(asked: Asked, writer: asyncio.StreamWriter) -> None:
        """No answer comes."""

    class Gone:
        def __init__(self, writer: asyncio.StreamWriter) -> None:
            self.close = writer.close
            self.wait_closed = writer.wait_closed

        def writelines(self, chunks: object) -> None:
            raise RuntimeError("unable to perform operation; the handler is closed")

    async with broker(quiet) as connection:
        connection._writer = Gone(connection._writer)  # type: ignore[assignment]  # as much of one as is used
        with pytest.raises(Disconnected, match="handler is closed"):
            await connection.ask(API_VERSIONS, ApiVersionsRequest(), 0)
        assert not connection.is_open
