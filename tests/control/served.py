"""Servers of a test's own, and a Kafka client that says just what it is told."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import httpx

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.scheduler import Clock
from fencepost.broker.node.cluster import Address, Cluster, ClusterOptions
from fencepost.broker.server.event_loop import SystemClock
from fencepost.broker.server.journal import AnyExchange
from fencepost.broker.server.listener import bind
from fencepost.broker.server.server import Server
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.codec import decode_response, encode_request, response_body_offset
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from fencepost.protocol.records import Record, build_batch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HOST: Final = "127.0.0.1"
Json: TypeAlias = Any
"""What an answer decodes to."""


def sockets(count: int) -> list[socket.socket]:
    """Listening ones, on free ports."""
    return [bind(HOST, 0, 100) for _ in range(count)]


def url(sock: socket.socket) -> str:
    return f"http://{HOST}:{sock.getsockname()[1]}"


def make_cluster(
    ports: Sequence[socket.socket],
    *,
    topics: tuple[NewTopic, ...] = (),
    configs: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    advertised: str = HOST,
) -> Cluster:
    addresses = tuple(
        Address(host=HOST, port=sock.getsockname()[1], advertised_host=advertised) for sock in ports
    )
    options = ClusterOptions(addresses=addresses, topics=topics, configs=configs or {})
    return Cluster(options, clock or SystemClock())


def make_server(cluster: Cluster, ports: list[socket.socket]) -> Server:
    return Server(cluster, cluster.scheduler.clock, ports)


def asked_by_clients(server: Server) -> list[AnyExchange]:
    """What is in the journal of clients' requests, the newest first."""
    return list(server.journal.newest_first(brokers=False))


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait for a condition that no event announces."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  # there is no event
            await asyncio.sleep(0)


async def ok(client: httpx.AsyncClient, method: str, path: str, body: Json = None) -> Json:
    """The answer to a request that must succeed."""
    answer = await client.request(method, path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refused(
    client: httpx.AsyncClient, method: str, path: str, body: Json = None
) -> tuple[int, str, str]:
    """Status, code and message of a refusal."""
    answer = await client.request(method, path, json=body)
    found = answer.json()
    assert set(found) == {"error", "message"}, answer.text
    return answer.status_code, found["error"], found["message"]


class Kafka:
    """One connection to a broker."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str | None
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._client_id = client_id
        self._correlation_id = 0

    async def ask(self, name: str, version: int, message: object) -> Json:
        await self.send(name, version, message)
        return await self.answer(name, version)

    async def send(self, name: str, version: int, message: object) -> None:
        self._correlation_id += 1
        api = BY_NAME[name]
        for chunk in encode_request(api, version, self._correlation_id, self._client_id, message):
            self._writer.write(chunk)
        await self._writer.drain()

    async def answer(self, name: str, version: int) -> Json:
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        frame = await self._reader.readexactly(size)
        api = BY_NAME[name]
        return decode_response(api, version, frame, response_body_offset(api, version))


@asynccontextmanager
async def kafka(
    server: Server, broker_id: int, client_id: str | None = "tester"
) -> AsyncIterator[Kafka]:
    port = server.cluster.controller.image.brokers[broker_id].port
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        yield Kafka(reader, writer, client_id)
    finally:
        writer.close()
        with suppress(ConnectionResetError):  # as a broker that is killed ends it
            await writer.wait_closed()


async def produce(
    server: Server,
    topic: str,
    index: int = 0,
    *,
    values: Sequence[bytes] = (b"v",),
    client_id: str | None = "tester",
    codec: int = 0,
    acks: int = -1,
) -> int:
    """Append one batch, with acks=all if not told otherwise; its base offset."""
    partition = server.cluster.controller.image.partition(topic, index)
    assert partition is not None
    records = [Record(i, 1_700_000_000_000, None, value) for i, value in enumerate(values)]
    data = PartitionProduceData(index=index, records=bytes(build_batch(records, codec=codec)))
    request = ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
    )
    async with kafka(server, partition.leader, client_id) as client:
        answer: ProduceResponse = await client.ask("produce", 9, request)
    (found,) = answer.responses[0].partition_responses
    assert found.error_code == 0, found
    return found.base_offset
