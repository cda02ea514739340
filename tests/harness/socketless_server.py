"""A server without sockets: its connections are objects that a test writes to and reads from."""

from __future__ import annotations

import asyncio
import struct
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.context import Peer
from fencepost.broker.core.log_levels import ROOT, Level
from fencepost.broker.core.scheduler import ManualClock
from fencepost.broker.metadata.image import Address
from fencepost.broker.node.cluster import Cluster, ClusterOptions
from fencepost.broker.server.asyncio_connection import AsyncioConnection
from fencepost.broker.server.connection import Connection
from fencepost.broker.server.listener import Listener
from fencepost.broker.server.server import Server
from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.codec import decode_response, encode_request, response_body_offset
from fencepost.protocol.codec.drafts import Draft

Message: TypeAlias = Any
"""A response of any API."""
ADDRESS: Final = ("192.0.2.1", 50_000)


class Transport(asyncio.Transport):
    """What a connection writes, and whether it reads."""

    def __init__(self, address: tuple[str, int] = ADDRESS) -> None:
        self.extra: dict[str, object] = {
            "peername": address,
            "sockname": ("203.0.113.7", 9092),
        }
        super().__init__(self.extra)
        self.written = bytearray()
        self.writes = 0
        self.closes = 0
        self.aborted = False
        self._reading = True

    def is_reading(self) -> bool:
        return self._reading

    def writelines(self, list_of_data: Iterable[Buffer]) -> None:
        assert not self.closed, "written after the end"
        self.writes += 1
        for data in list_of_data:
            self.written += data

    @property
    def closed(self) -> bool:
        return self.closes > 0

    def close(self) -> None:
        self.closes += 1

    def abort(self) -> None:
        self.aborted = True

    def pause_reading(self) -> None:
        assert self._reading, "paused twice"
        self._reading = False

    def resume_reading(self) -> None:
        assert not self._reading, "resumed twice"
        self._reading = True


class _Client:
    """Asks a connection, and reads what it sends."""

    def __init__(self) -> None:
        self._correlation_id = 0
        self.dialect: Draft | None = None
        """What it encodes and decodes by; it asks for none by itself."""

    @property
    def written(self) -> bytearray:
        """All bytes that the connection sent."""
        raise NotImplementedError

    def send(self, data: bytes) -> None:
        """Bytes, as they come from the network."""
        raise NotImplementedError

    def frame(self, name: str, version: int, message: object) -> bytes:
        self._correlation_id += 1
        chunks: list[Buffer] = encode_request(
            BY_NAME[name], version, self._correlation_id, "tester", message, self.dialect
        )
        return b"".join(chunks)

    def ask(self, name: str, version: int, message: object) -> None:
        self.send(self.frame(name, version, message))

    def correlation_ids(self) -> list[int]:
        return [struct.unpack_from(">i", frame)[0] for frame in self.frames()]

    def frames(self) -> list[bytes]:
        found, at = [], 0
        while at < len(self.written):
            (size,) = struct.unpack_from(">i", self.written, at)
            found.append(bytes(self.written[at + 4 : at + 4 + size]))
            at += 4 + size
        return found

    def answer(self, number: int, name: str, version: int) -> Message:
        api: Api = BY_NAME[name]
        body = response_body_offset(api, version)
        return decode_response(api, version, self.frames()[number], body, self.dialect)


class Client(_Client):
    """The other end of an asyncio connection, with a transport that writes into a list."""

    def __init__(self, listener: Listener, address: tuple[str, int] = ADDRESS) -> None:
        super().__init__()
        self.transport = Transport(address)
        self.connection = AsyncioConnection(listener)
        self.connection.connection_made(self.transport)

    @property
    def written(self) -> bytearray:
        return self.transport.written

    def send(self, data: bytes) -> None:
        while data and not self.transport.closed:
            room = self.connection.get_buffer(-1)
            count = min(len(room), len(data))
            room[:count] = data[:count]
            self.connection.buffer_updated(count)
            data = data[count:]


class PureClient(_Client):
    """Owns a connection, without a transport: hands bytes in and takes bytes out."""

    def __init__(self, listener: Listener) -> None:
        super().__init__()
        self.chunks: list[list[Buffer]] = []
        """What the connection gave out, by call."""
        self.exceptions: list[str] = []
        self.requests: list[tuple[str, int]] = []
        self.is_output_ready = False
        listener.broker.log_levels.set_level(ROOT, Level.DEBUG)
        self.connection = Connection(
            listener.broker,
            Peer(connection_id="c", host=ADDRESS[0], listener_host="203.0.113.7"),
            self,
            clock=listener.server.clock,
            journal=listener.server.journal,
            response_cache=listener.response_cache,
            memory=listener.server.request_memory,
        )

    @property
    def written(self) -> bytearray:
        return bytearray(b"".join(chunk for chunks in self.chunks for chunk in chunks))

    @property
    def close_reason(self) -> str | None:
        reason = self.connection.close_reason
        return None if reason is None else reason.reason

    def send(self, data: bytes) -> None:
        while data and not self.connection.is_closing:
            room = self.connection.buffer()
            count = min(len(room), len(data))
            room[:count] = data[:count]
            self.connection.receive(count)
            self.take()
            data = data[count:]

    def is_read_from(self) -> bool:
        return self.connection.wants_input

    def resume_output(self) -> None:
        self.connection.resume_output()
        self.take()

    def turn(self) -> None:
        """What an owner does when output is ready."""
        if self.is_output_ready:
            self.is_output_ready = False
            self.connection.resume()
            self.take()

    def take(self) -> None:
        if self.connection.output:
            self.chunks.append(self.connection.take_output())

    def output_ready(self) -> None:
        self.is_output_ready = True

    def log_request(self, api: Api, version: int) -> None:
        self.requests.append((api.name, version))

    def log_exception(self, event: str, **details: object) -> None:
        self.exceptions.append(event)
        assert details["api"]
        assert sys.exc_info()[0] is not None


class SocketlessServer:
    """A server with one broker, whose clock a test moves and whose loop is never asked."""

    def __init__(
        self,
        configs: Mapping[str, str] | None = None,
        api_max: Mapping[str, int] | None = None,
        dialect: Draft | None = None,
    ) -> None:
        self.clock = ManualClock()
        address = Address(host="127.0.0.1", port=9092, advertised_host="")
        options = ClusterOptions(
            addresses=(address,), configs=configs or {}, api_max=api_max or {}, dialect=dialect
        )
        self.cluster = Cluster(options, self.clock)
        self.cluster.controller.create_topic(NewTopic(name="t", configs={}))
        self.cluster.scheduler.run_due()
        self.server = Server(self.cluster, self.clock, [])
        self.clients: list[PureClient] = []
        self.flushes: list[AsyncioConnection] = []
        self.server.flush_soon = self.flushes.append  # type: ignore[method-assign, assignment]  # no loop
        broker = self.cluster.brokers[1]
        self.listener = Listener(self.server, broker, address, None)  # type: ignore[arg-type]  # never started

    def connect(self, address: tuple[str, int] = ADDRESS) -> Client:
        return Client(self.listener, address)

    def open(self) -> PureClient:
        """A connection without a transport."""
        client = PureClient(self.listener)
        self.clients.append(client)
        return client

    def pass_time(self, by_ms: int) -> None:
        self.clock.move_to(self.clock.now_ms() + by_ms)
        self.turn()

    def turn(self) -> None:
        """What the loop does at the end of a turn."""
        self.cluster.scheduler.run_due()
        while self.flushes:
            self.flushes.pop(0).flush()
        for client in self.clients:
            client.turn()
