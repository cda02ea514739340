"""Faults of connections over HTTP: ports that refuse while their broker is up, and silent ones."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Final

import pytest

from fencepost.broker.server.listener import PortUnavailable, bind
from fencepost.protocol.messages.metadata import MetadataRequest
from tests.harness.control_client import Json, ok, refused
from tests.harness.typed_client import kafka

if TYPE_CHECKING:
    import httpx

    from fencepost.broker.server.server import Server

FAULTS: Final = "/v1/faults"
HOST: Final = "127.0.0.1"
NO_TOPICS: Final = MetadataRequest(topics=())
PATIENCE_S: Final = 10.0
SHORT_S: Final = 0.2
"""How long an answer is waited for that does not come."""


async def add(control: httpx.AsyncClient, action: str, **more: Json) -> int:
    fault = await ok(control, "POST", FAULTS, {"api": "*", "action": action, **more})
    number: int = fault["id"]
    return number


def port(server: Server, broker_id: int) -> int:
    return server.cluster.addresses[broker_id][0].port


async def is_refused(server: Server, broker_id: int = 1) -> bool:
    try:
        _, writer = await asyncio.open_connection(HOST, port(server, broker_id))
    except ConnectionRefusedError:
        return True
    writer.close()
    return False


async def is_answered(server: Server, broker_id: int = 1, *, within_s: float = PATIENCE_S) -> bool:
    async with kafka(server, broker_id) as client:
        try:
            async with asyncio.timeout(within_s):
                await client.ask("metadata", 9, NO_TOPICS)
        except TimeoutError:
            return False
    return True


async def is_silent(server: Server) -> bool:
    """Whether a new connection is accepted and not answered."""
    return not await is_answered(server, within_s=SHORT_S)


# -- refuse -------------------------------------------------------------------------------------


async def test_a_port_refuses_while_its_broker_is_up_and_serves_again(
    server: Server, control: httpx.AsyncClient
) -> None:
    fault = await add(control, "refuse", broker=1)
    assert await is_refused(server)
    assert not await is_refused(server, 2)
    cluster = await ok(control, "GET", "/v1/cluster")
    assert [each["state"] for each in cluster["brokers"]] == ["running"] * 3
    await ok(control, "DELETE", f"{FAULTS}/{fault}")
    assert await is_answered(server)


async def test_nobody_else_gets_a_port_that_refuses(
    server: Server, control: httpx.AsyncClient
) -> None:
    await add(control, "refuse")
    for broker_id in (1, 2, 3):
        assert await is_refused(server, broker_id)
        with pytest.raises(PortUnavailable):
            bind(HOST, port(server, broker_id), 1)


async def test_connections_that_are_open_stay_open_while_the_port_refuses(
    server: Server, control: httpx.AsyncClient
) -> None:
    async with kafka(server, 1) as client:
        await client.ask("metadata", 9, NO_TOPICS)
        await add(control, "refuse")
        assert await is_refused(server)
        await client.ask("metadata", 9, NO_TOPICS)


async def test_a_reset_and_a_removal_of_all_faults_open_the_ports(
    server: Server, control: httpx.AsyncClient
) -> None:
    await add(control, "refuse")
    await ok(control, "POST", "/v1/reset")
    assert await is_answered(server)
    await add(control, "refuse")
    await add(control, "refuse", broker=1)
    await ok(control, "DELETE", FAULTS)
    assert await is_answered(server)


async def test_a_port_refuses_until_the_last_fault_of_its_broker_is_removed(
    server: Server, control: httpx.AsyncClient
) -> None:
    faults = [await add(control, "refuse", broker=1), await add(control, "refuse")]
    await ok(control, "DELETE", f"{FAULTS}/{faults[0]}")
    assert await is_refused(server)
    await ok(control, "DELETE", f"{FAULTS}/{faults[1]}")
    assert await is_answered(server)


async def test_a_broker_that_starts_while_its_port_refuses_goes_on_refusing(
    server: Server, control: httpx.AsyncClient
) -> None:
    fault = await add(control, "refuse", broker=1)
    await ok(control, "POST", "/v1/brokers/1/kill")
    await ok(control, "POST", "/v1/brokers/1/start")
    assert await is_refused(server)
    await ok(control, "DELETE", f"{FAULTS}/{fault}")
    assert await is_answered(server)


async def test_a_broker_that_is_down_refuses_when_the_fault_is_removed(
    server: Server, control: httpx.AsyncClient
) -> None:
    fault = await add(control, "refuse", broker=1)
    await ok(control, "POST", "/v1/brokers/1/stop")
    await ok(control, "DELETE", f"{FAULTS}/{fault}")
    assert await is_refused(server)
    await ok(control, "POST", "/v1/brokers/1/start")
    assert await is_answered(server)


async def test_a_port_that_another_process_took_is_told_and_opens_later(
    server: Server, control: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencepost.broker.server.listener._hold", lambda _host, _port: None)
    fault = await add(control, "refuse", broker=1)
    with socket.create_server((HOST, port(server, 1))):
        told = await refused(control, "DELETE", f"{FAULTS}/{fault}")
        assert told[:2] == (409, "BROKER_NOT_AVAILABLE")
        assert told[2].endswith("in use, and broker 1 goes on refusing connections")
    await ok(control, "DELETE", FAULTS)
    assert await is_answered(server)


# -- silent -------------------------------------------------------------------------------------


async def test_a_new_connection_is_accepted_and_not_answered(
    server: Server, control: httpx.AsyncClient
) -> None:
    fault = await add(control, "silent", broker=1)
    assert await is_silent(server)
    assert (await ok(control, "GET", f"{FAULTS}/{fault}"))["left"] == 0
    assert await is_answered(server), "it hits one connection, unless it says otherwise"


async def test_connections_of_other_brokers_and_those_that_are_open_are_answered(
    server: Server, control: httpx.AsyncClient
) -> None:
    async with kafka(server, 1) as client:
        await client.ask("metadata", 9, NO_TOPICS)
        await add(control, "silent", broker=1, count=None)
        await client.ask("metadata", 9, NO_TOPICS)
        assert await is_answered(server, 2)
        assert await is_silent(server)


async def test_a_silent_connection_is_answered_once_the_fault_is_removed(
    server: Server, control: httpx.AsyncClient
) -> None:
    fault = await add(control, "silent")
    async with kafka(server, 1) as client:
        answer = asyncio.ensure_future(client.ask("metadata", 9, NO_TOPICS))
        done, _ = await asyncio.wait([answer], timeout=SHORT_S)
        assert not done
        await ok(control, "DELETE", f"{FAULTS}/{fault}")
        assert len((await answer).brokers) == 3


async def test_a_reset_closes_silent_connections(
    server: Server, control: httpx.AsyncClient
) -> None:
    fault = await add(control, "silent")
    reader, writer = await asyncio.open_connection(HOST, port(server, 1))
    await ok(control, "GET", f"{FAULTS}/{fault}/wait")
    await ok(control, "POST", "/v1/reset")
    async with asyncio.timeout(PATIENCE_S):
        assert await reader.read() == b""
    writer.close()
    assert await is_answered(server)


async def test_connections_meet_the_actions_of_a_sequence_in_turn(
    server: Server, control: httpx.AsyncClient
) -> None:
    await ok(control, "POST", FAULTS, {"api": "*", "sequence": ["pass", "silent", "pass"]})
    assert await is_answered(server)
    assert await is_silent(server)
    assert await is_answered(server)
    assert await is_answered(server)
