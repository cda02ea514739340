"""A Kafka client that sends one given request: messages are those of `fencepost.protocol`.

The codec is the server's own. A test of the codec, or of bytes that no codec writes, uses
`tests.harness.wire`.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from fencepost.broker.server.server import Server
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.codec import decode_response, encode_request, response_body_offset
from tests.harness.in_process_server import HOST
from tests.harness.records import Row, batch
from tests.harness.typed_requests import produce_request, produced
from tests.harness.wire import receive_frame

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Message: TypeAlias = Any
"""A request or response of any API."""
_TIMEOUT_S: Final = 60.0


def _decode(name: str, version: int, frame: bytes) -> Message:
    api = BY_NAME[name]
    return decode_response(api, version, frame, response_body_offset(api, version))


class BlockingClient:
    """One connection to a broker of another process."""

    def __init__(self, address: tuple[str, int], client_id: str | None = "tester") -> None:
        self.socket = socket.create_connection(address, _TIMEOUT_S)
        self._client_id = client_id

    def close(self) -> None:
        self.socket.close()

    def ask(
        self, name: str, version: int, message: object, client_id: str | None = None
    ) -> Message:
        """One request and its answer."""
        self.send(name, version, message, client_id)
        return self.answer(name, version)

    def send(self, name: str, version: int, message: object, client_id: str | None = None) -> None:
        """Send a request; ``client_id`` is another than the connection's."""
        chunks = encode_request(BY_NAME[name], version, 1, client_id or self._client_id, message)
        self.socket.sendall(b"".join(chunks))

    def answer(self, name: str, version: int) -> Message:
        return _decode(name, version, receive_frame(self.socket))


class TypedClient:
    """One connection to a broker that this event loop serves."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str | None
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._client_id = client_id
        self._correlation_id = 0

    async def ask(self, name: str, version: int, message: object) -> Message:
        await self.send(name, version, message)
        return await self.answer(name, version)

    async def send(self, name: str, version: int, message: object) -> None:
        self._correlation_id += 1
        api = BY_NAME[name]
        for chunk in encode_request(api, version, self._correlation_id, self._client_id, message):
            self._writer.write(chunk)
        await self._writer.drain()

    async def answer(self, name: str, version: int) -> Message:
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        frame = await self._reader.readexactly(size)
        return _decode(name, version, frame)


@asynccontextmanager
async def kafka(
    server: Server, broker_id: int, client_id: str | None = "tester"
) -> AsyncIterator[TypedClient]:
    port = server.cluster.controller.image.brokers[broker_id].port
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        yield TypedClient(reader, writer, client_id)
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
    rows: list[Row] = [(1_700_000_000_000, None, value) for value in values]
    records = bytes(batch(*rows, codec=codec))
    request = produce_request((topic, index, records), acks=acks, timeout_ms=10_000)
    async with kafka(server, partition.leader, client_id) as client:
        found = produced(await client.ask("produce", 9, request))
    assert found.error_code == 0, found
    return found.base_offset
