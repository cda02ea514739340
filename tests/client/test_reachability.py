"""Which addresses of a cluster a client can use, and why not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import pytest

from fencepost.broker.metadata.image import Address
from fencepost.broker.node.cluster import Cluster, ClusterOptions
from fencepost.broker.server.event_loop import SystemClock
from fencepost.cli import main
from fencepost.client.reachability import check_addresses
from tests.harness.in_process_server import HOST, make_server, sockets

SECONDS: Final = 10.0


@asynccontextmanager
async def advertising(
    *advertised: tuple[str, int] | None, port: socket.socket | None = None, seed: int = 0
) -> AsyncIterator[int]:
    """A cluster of brokers that advertise these addresses, or the one they listen on; its port.

    :param port: Of the first broker; None is a free one.
    """
    ports = [*([port] if port else []), *sockets(len(advertised) - (port is not None))]
    addresses = []
    for sock, named in zip(ports, advertised, strict=True):
        at = sock.getsockname()[1]
        host, its_port = named or (HOST, at)
        addresses.append(
            Address(host=HOST, port=at, advertised_host=host, advertised_port=its_port)
        )
    cluster = Cluster(ClusterOptions(addresses=tuple(addresses), seed=seed), SystemClock())
    server = make_server(cluster, ports)
    await server.start()
    try:
        yield addresses[0].port
    finally:
        await server.stop()


async def problems(
    *bootstrap: tuple[str, int], timeout_s: float = SECONDS
) -> Sequence[tuple[int | None, str | None]]:
    found = await check_addresses(bootstrap, timeout_s=timeout_s)
    return [(each.broker, each.problem) for each in found]


async def test_each_broker_answers_at_its_own_address() -> None:
    async with advertising(None, None) as port:
        assert await problems((HOST, port)) == [(None, None), (1, None), (2, None)]


async def test_an_address_of_another_cluster() -> None:
    async with advertising(None, seed=1) as other, advertising((HOST, other)) as port:
        [(_, none), (broker, problem)] = await problems((HOST, port))
        assert (none, broker) == (None, 1)
        assert problem is not None
        assert problem.startswith("leads to another cluster, ")


async def test_an_address_of_another_broker_and_one_at_which_no_process_listens() -> None:
    (gone, first) = sockets(2)
    free, port = gone.getsockname()[1], first.getsockname()[1]
    gone.close()
    async with advertising((HOST, free), (HOST, port), port=first) as reached:
        assert reached == port
        assert await problems((HOST, port)) == [
            (None, None),
            (1, "can't be reached: connection refused"),
            (2, "leads to another broker"),
        ]


async def test_an_address_that_accepts_and_is_silent() -> None:
    with socket.create_server((HOST, 0)) as silent:
        at = silent.getsockname()[1]
        async with advertising((HOST, at)) as port:
            found = await problems((HOST, port), timeout_s=0.5)
    assert found == [(None, None), (1, "does not answer within 0.5 s")]


async def test_addresses_that_no_host_can_have() -> None:
    no_port = "has a port that is not a number from 1 to 65535"
    no_name = "has a name that no host can have"
    async with advertising(None, (HOST, 70_000), (HOST, -1), ("x" * 64, 1)) as port:
        assert await problems((HOST, port), ("y" * 64, 1), (HOST, 0)) == [
            (None, None),
            (None, no_name),
            (None, no_port),
            (1, None),
            (2, no_port),
            (3, no_port),
            (4, no_name),
        ]


async def test_a_name_that_is_not_known_and_a_server_of_another_kind() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, HOST, 0) as other:
        at = other.sockets[0].getsockname()[1]
        [(_, unknown), (_, wrong)] = await problems(("no-such-host.invalid", 1), (HOST, at))
    assert unknown is not None
    assert unknown.startswith("can't be reached: ")
    assert "Errno" not in unknown
    assert wrong == "is no broker: the broker closed the connection"


def test_the_command_ends_with_1_where_an_address_is_wrong_and_2_where_there_is_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server((HOST, 0)) as server:
        free = server.getsockname()[1]
    assert main(["check", "--bootstrap", f"{HOST}:{free}"]) == 1
    told = capsys.readouterr().out
    assert told == f"bootstrap {HOST}:{free} can't be reached: connection refused\n"
    assert main(["check", "--bootstrap", "kafka"]) == 2
    assert capsys.readouterr().err == "fencepost check: --bootstrap: 'kafka' is not HOST:PORT\n"
