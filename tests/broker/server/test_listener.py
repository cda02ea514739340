"""A broker's port, while it is up and while it is down."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from fencepost.broker.core.scheduler import ManualClock
from fencepost.broker.metadata.image import Address
from fencepost.broker.node.cluster import Cluster, ClusterOptions
from fencepost.broker.server import server as server_module
from fencepost.broker.server.listener import Listener, PortUnavailable, _hold, bind
from fencepost.broker.server.resources import DescriptorBudget
from fencepost.broker.server.server import Server
from tests.harness.in_process_server import running, sockets
from tests.harness.wait import eventually

HOST = "127.0.0.1"


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    sock = bind(HOST, 0, 10)
    address = Address(host=HOST, port=sock.getsockname()[1], advertised_host="")
    cluster = Cluster(ClusterOptions(addresses=(address,)), ManualClock())
    server = Server(cluster, cluster.scheduler.clock, [])
    made = Listener(server, cluster.brokers[1], address, sock)
    await made.start(asyncio.get_running_loop())
    yield made
    made.stop()


def port(listener: Listener) -> int:
    return listener.server.cluster.options.addresses[0].port


def accepts(at: int) -> bool:
    try:
        socket.create_connection((HOST, at), timeout=10).close()
    except ConnectionRefusedError:
        return False
    return True


async def test_it_goes_down_and_comes_back_on_its_port(listener: Listener) -> None:
    assert accepts(port(listener))
    for abruptly in (True, False):
        listener.stop_listening(abruptly=abruptly)
        listener.stop_listening(abruptly=abruptly)
        assert not accepts(port(listener))
        listener.listen()
        listener.listen()
        assert accepts(port(listener)), "it waits in the backlog"
        await listener.start(asyncio.get_running_loop())
        reader, writer = await asyncio.open_connection(HOST, port(listener))
        writer.write(b"\x00\x00\x00\x00")
        assert await reader.read() == b"", "it is accepted, and what is no request ends it"
        writer.close()
        await writer.wait_closed()


async def test_no_other_process_gets_the_port_of_a_broker_that_is_down(listener: Listener) -> None:
    listener.stop_listening(abruptly=True)
    with pytest.raises(PortUnavailable):
        bind(HOST, port(listener), 1)
    with socket.socket() as other, pytest.raises(OSError, match="Address already in use"):
        other.bind((HOST, port(listener)))


def test_a_port_in_use_cannot_be_held() -> None:
    with socket.create_server((HOST, 0)) as taken:
        assert _hold(HOST, taken.getsockname()[1]) is None


async def test_a_lost_port_is_an_error_and_can_be_bound_again_later(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencepost.broker.server.listener._hold", lambda _host, _port: None)
    listener.stop_listening(abruptly=True)
    with socket.create_server((HOST, port(listener))):
        with pytest.raises(PortUnavailable, match=f"{port(listener)}: address already in use"):
            listener.listen()
        assert listener.is_down
    listener.listen()
    assert not listener.is_down


async def test_a_port_that_another_socket_listens_on_as_well_is_lost(listener: Listener) -> None:
    listener.stop_listening(abruptly=True)
    assert listener._held is not None
    # As if the system let another process bind the port as well: it does if both sockets allow it.
    listener._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        other = bind(HOST, port(listener), 1)
    except PortUnavailable:
        pytest.skip("this system does not")
    with other, pytest.raises(PortUnavailable):
        listener.listen()
    listener.listen()
    assert accepts(port(listener))


async def test_a_connection_that_comes_while_it_goes_down_is_not_served(
    listener: Listener,
) -> None:
    reader, writer = await asyncio.open_connection(HOST, port(listener))
    listener.stop_listening(abruptly=False)
    with suppress(ConnectionResetError):  # which is so where it was not accepted yet
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
    assert listener.connections == 0


def _refused(line: str) -> int:
    said = json.loads(line)
    return int(said["limits"]["descriptors"]) if said["event"] == "connections_refused" else 0


async def test_refused_connections_are_counted_in_the_log_the_last_ones_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(server_module, "REPORT_S", 0.01)
    async with running(sockets(1)) as server:
        server.descriptors = DescriptorBudget(0)
        at = server.cluster.options.addresses[0].port
        told: list[str] = []
        for count in (1, 2):
            for _ in range(3):
                reader, writer = await asyncio.open_connection(HOST, at)
                assert await reader.read() == b""
                writer.close()

            def is_told(count: int = count) -> bool:
                told.extend(capsys.readouterr().err.splitlines())
                return sum(_refused(line) for line in told) == 3 * count

            await eventually(is_told)
            assert len(told) < 3 * count + 1
        server.count_refusal("descriptors")
    assert server.refusals["descriptors"] == 7
    assert sum(map(_refused, capsys.readouterr().err.splitlines())) == 1
