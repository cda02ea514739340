"""The asyncio side of a connection, with a transport that a test looks into."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
import weakref

import pytest

from fencepost.broker.handlers import metadata
from fencepost.broker.server.asyncio_connection import AsyncioConnection
from fencepost.broker.server.connection import MAX_IN_FLIGHT
from fencepost.broker.server.resources import DescriptorBudget
from fencepost.protocol.messages.metadata import MetadataRequest
from tests.broker.server.test_connection import LONG_POLL
from tests.harness.in_process_server import running, sockets
from tests.harness.socketless_server import SocketlessServer
from tests.harness.wait import eventually

NO_TOPICS = MetadataRequest(topics=())


def test_responses_to_the_requests_of_one_read_are_one_write() -> None:
    client = SocketlessServer().connect()
    client.send(b"".join(client.frame("metadata", 9, NO_TOPICS) for _ in range(3)))
    assert client.correlation_ids() == [1, 2, 3]
    assert client.transport.writes == 1


def test_late_responses_are_written_at_the_end_of_the_turn_in_one_write() -> None:
    edge = SocketlessServer()
    client = edge.connect()
    for _ in range(3):
        client.ask("fetch", 11, LONG_POLL)
    edge.pass_time(500)
    assert client.correlation_ids() == [1, 2, 3]
    assert client.transport.writes == 1


def test_the_transport_is_read_only_while_requests_are_handled() -> None:
    edge = SocketlessServer()
    client = edge.connect()
    client.send(b"".join(client.frame("fetch", 11, LONG_POLL) for _ in range(MAX_IN_FLIGHT + 5)))
    assert not client.transport.is_reading()
    edge.pass_time(500)
    assert client.transport.is_reading()


def test_a_client_that_does_not_read_is_not_read_from() -> None:
    client = SocketlessServer().connect()
    client.connection.pause_writing()
    client.ask("metadata", 9, NO_TOPICS)
    assert not client.transport.is_reading()
    assert client.frames() == []
    client.connection.resume_writing()
    assert client.transport.is_reading()
    assert client.correlation_ids() == [1]


def test_a_client_that_stops_reading_at_a_write_is_not_read_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = SocketlessServer().connect()
    writelines = client.transport.writelines

    def write_and_fill(chunks: list[bytes]) -> None:
        writelines(chunks)
        client.connection.pause_writing()

    monkeypatch.setattr(client.transport, "writelines", write_and_fill)
    client.ask("metadata", 9, NO_TOPICS)
    assert not client.transport.is_reading()


def test_the_transport_is_closed_once_when_the_ready_responses_are_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    edge = SocketlessServer()
    client = edge.connect()
    client.ask("fetch", 11, LONG_POLL)
    client.send(client.frame("metadata", 9, NO_TOPICS) + struct.pack(">i", -1))
    assert client.transport.closes == 1
    client.connection.close()
    client.connection.flush()
    edge.pass_time(500)
    assert client.transport.closes == 1
    assert client.frames() == []
    assert capsys.readouterr().err.count("bad_frame") == 1


def test_a_server_that_closes_a_connection_sends_what_is_ready() -> None:
    edge = SocketlessServer()
    client = edge.connect()
    client.ask("metadata", 9, NO_TOPICS)
    client.ask("fetch", 11, LONG_POLL)
    client.connection.close()
    assert client.transport.closed
    edge.pass_time(500)
    assert client.correlation_ids() == [1]


def test_an_aborted_connection_is_reset_and_sends_nothing_more() -> None:
    edge = SocketlessServer()
    client = edge.connect()
    with socket.socket() as sock:
        client.transport.extra["socket"] = sock
        client.ask("fetch", 11, LONG_POLL)
        client.connection.abort()
        linger = sock.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)
    assert struct.unpack("ii", linger) == (1, 0)
    assert client.transport.aborted
    edge.pass_time(500)
    assert client.frames() == []
    assert not edge.cluster.brokers[1].replicas["t", 0].watermark_watch.waits


def test_a_lost_connection_cancels_its_waits() -> None:
    edge = SocketlessServer()
    client = edge.connect()
    client.ask("fetch", 11, LONG_POLL)
    client.connection.connection_lost(None)
    assert not edge.cluster.brokers[1].replicas["t", 0].watermark_watch.waits
    edge.pass_time(500)
    assert client.frames() == []
    assert edge.listener.connections == 0


def test_a_bug_is_logged_with_its_connection_and_client(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(metadata, "handle", broken)
    SocketlessServer().connect().ask("metadata", 9, NO_TOPICS)
    logged = capsys.readouterr().err
    assert "a bug" in logged
    assert "203.0.113.7:9092-192.0.2.1:50000" in logged
    assert "tester" in logged


def test_no_more_connections_than_max_connections() -> None:
    edge = SocketlessServer({"max.connections": "1"})
    first, second = edge.connect(), edge.connect()
    assert not first.transport.closed
    assert second.transport.closed
    first.connection.connection_lost(None)
    assert not edge.connect().transport.closed


def test_no_more_connections_of_a_host_than_max_connections_per_ip() -> None:
    edge = SocketlessServer({"max.connections.per.ip": "1"})
    assert not edge.connect(("192.0.2.1", 1)).transport.closed
    assert edge.connect(("192.0.2.1", 2)).transport.closed
    assert not edge.connect(("192.0.2.2", 3)).transport.closed


def test_single_addresses_have_limits_of_their_own() -> None:
    overrides = "192.0.2.1:2,localhost:1,2001:db8::7:0"
    edge = SocketlessServer(
        {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": overrides}
    )
    for host, closed in (
        ("192.0.2.1", False),
        ("192.0.2.1", False),
        ("192.0.2.1", True),
        ("127.0.0.1", False),
        ("127.0.0.1", True),
        ("::1", False),
        ("2001:db8::7", True),
        ("192.0.2.2", True),
    ):
        assert edge.connect((host, 1)).transport.closed is closed, host


def test_more_connections_a_second_than_may_be_are_read_later() -> None:
    edge = SocketlessServer({"max.connection.creation.rate": "2", "quota.window.num": "2"})
    first, second, third = edge.connect(), edge.connect(), edge.connect()
    assert first.transport.is_reading()
    assert second.transport.is_reading()
    assert not third.transport.is_reading(), "it is the third in a second"
    edge.pass_time(499)
    assert not third.transport.is_reading()
    edge.pass_time(1)
    assert third.transport.is_reading()
    edge.pass_time(2000)
    assert edge.connect().transport.is_reading()


def test_a_connection_that_waits_is_not_read_even_where_the_loop_begins_to_read_it() -> None:
    edge = SocketlessServer({"max.connection.creation.rate": "1", "quota.window.num": "2"})
    _, waiting = edge.connect(), edge.connect()
    waiting.transport.resume_reading()  # uvloop does so after `connection_made`
    waiting.ask("metadata", 9, NO_TOPICS)
    assert not waiting.transport.is_reading()
    assert waiting.frames() == []
    edge.pass_time(1000)
    assert waiting.transport.is_reading()
    assert waiting.correlation_ids() == [1]


def test_a_connection_that_waits_may_go() -> None:
    edge = SocketlessServer({"max.connection.creation.rate": "1", "quota.window.num": "2"})
    _, waiting = edge.connect(), edge.connect()
    waiting.connection.connection_lost(None)
    edge.pass_time(1000)
    assert not waiting.transport.is_reading()


def test_a_connection_is_closed_when_it_was_silent_for_too_long() -> None:
    edge = SocketlessServer({"connections.max.idle.ms": "1000"})
    silent, busy = edge.connect(), edge.connect()
    edge.pass_time(600)
    busy.ask("metadata", 9, NO_TOPICS)
    edge.pass_time(600)
    edge.listener.close_idle(edge.clock.now_ms())
    assert silent.transport.closed
    assert not busy.transport.closed


def test_no_more_connections_than_descriptors() -> None:
    edge = SocketlessServer()
    edge.server.descriptors = DescriptorBudget(2)
    clients = [edge.connect() for _ in range(5)]
    assert [each.transport.closed for each in clients] == [False, False, True, True, True]
    assert edge.server.refusals == {"descriptors": 3}
    clients[0].connection.connection_lost(None)
    clients[4].connection.connection_lost(None)
    assert not edge.connect().transport.closed
    assert edge.connect().transport.closed


def test_refused_connections_are_counted_by_their_limit() -> None:
    edge = SocketlessServer({"max.connections.per.ip": "1"})
    for _ in range(3):
        edge.connect()
    assert edge.server.refusals == {"max.connections.per.ip": 2}


async def test_a_connection_that_is_gone_is_freed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The garbage collector looks too seldom at what has lived for a while."""
    made: list[weakref.ref[AsyncioConnection]] = []
    connected = AsyncioConnection.connection_made

    def connection_made(self: AsyncioConnection, transport: asyncio.BaseTransport) -> None:
        made.append(weakref.ref(self))
        connected(self, transport)

    monkeypatch.setattr(AsyncioConnection, "connection_made", connection_made)
    (port,) = sockets(1)
    async with running([port]):
        _, writer = await asyncio.open_connection(*port.getsockname())
        await eventually(lambda: bool(made))
        gc.disable()
        try:
            writer.close()
            await eventually(lambda: made[0]() is None)
        finally:
            gc.enable()
