"""Stop, kill, start, isolate, rejoin: the broker, its port, its clients and its replicas."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Final

import pytest

from fencepost.broker.core.scheduler import Clock, ManualClock
from fencepost.broker.server import listener
from fencepost.broker.server.listener import PortUnavailable, bind
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from fencepost.protocol.messages.metadata import MetadataRequest
from tests.harness.control_client import Json, ok, refused
from tests.harness.in_process_server import HOST, asked_by_clients
from tests.harness.typed_client import kafka, produce
from tests.harness.wait import eventually

if TYPE_CHECKING:
    import httpx

    from fencepost.broker.server.server import Server

PARTITION: Final = "/v1/topics/t/partitions/0"
LONG_POLL: Final = FetchRequest(
    max_wait_ms=60_000,
    min_bytes=1,
    topics=(FetchTopic(topic="t", partitions=(FetchPartition(partition_max_bytes=99),)),),
)


@pytest.fixture(autouse=True)
async def _topic(control: httpx.AsyncClient) -> None:
    """Broker 1 leads, 2 and 3 follow."""
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2, 3]]})


async def verb(control: httpx.AsyncClient, broker: int, name: str, body: Json = None) -> Json:
    state = await ok(control, "POST", f"/v1/brokers/{broker}/{name}", body)
    cluster = await ok(control, "GET", "/v1/cluster")
    assert state == cluster["brokers"][broker - 1]
    return state


async def partition(control: httpx.AsyncClient) -> Json:
    return await ok(control, "GET", PARTITION)


def port_of(server: Server, broker: int) -> int:
    return server.cluster.options.addresses[broker - 1].port


async def brokers_as_seen_by(server: Server, broker: int) -> list[int]:
    async with kafka(server, broker) as client:
        answer = await client.ask("metadata", 12, MetadataRequest(topics=None))
    return sorted(each.node_id for each in answer.brokers)


# Stop and start


async def test_a_stopped_broker_hands_over_and_comes_back_in_sync(
    server: Server, control: httpx.AsyncClient
) -> None:
    state = await verb(control, 1, "stop")
    assert (state["state"], state["fenced"], state["isolated_from"]) == ("stopped", True, [])
    shown = await partition(control)
    assert (shown["leader"], shown["leader_epoch"]) == (2, 1)
    assert (shown["isr"], shown["offline"]) == ([2, 3], [1])
    assert (shown["replicas"][0]["role"], shown["replicas"][0]["state"]) == ("offline", "offline")
    assert await produce(server, "t") == 0

    state = await verb(control, 1, "start")
    assert (state["state"], state["fenced"]) == ("running", False)
    shown = await partition(control)
    assert (sorted(shown["isr"]), shown["offline"]) == ([1, 2, 3], [])
    assert [each["log_end_offset"] for each in shown["replicas"]] == [1, 1, 1]
    assert shown["replicas"][0]["state"] == "idle"
    assert await brokers_as_seen_by(server, 1) == [1, 2, 3]


async def test_what_a_broker_that_is_down_has_on_its_disk_is_shown(
    server: Server, control: httpx.AsyncClient
) -> None:
    await produce(server, "t", values=[b"0", b"1"])
    await verb(control, 2, "stop")
    await produce(server, "t")
    offline = (await partition(control))["replicas"][1]
    assert (offline["role"], offline["high_watermark"]) == ("offline", -1)
    assert (offline["log_start_offset"], offline["log_end_offset"]) == (0, 2)
    assert offline["epochs"] == [{"epoch": 0, "start_offset": 0}]
    assert [each["records"] for each in offline["segments"]] == [2]


@pytest.mark.parametrize("name", ["stop", "kill"])
async def test_a_port_refuses_while_its_broker_is_down_and_is_kept(
    server: Server, control: httpx.AsyncClient, name: str
) -> None:
    port = port_of(server, 2)
    for _ in range(2):
        await verb(control, 2, name)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(HOST, port)
        with pytest.raises(PortUnavailable, match="address already in use"):
            bind(HOST, port, 1)
        await verb(control, 2, "start")
        assert await brokers_as_seen_by(server, 2) == [1, 2, 3]


async def test_clients_of_a_stopped_broker_get_their_answers_and_the_end(
    server: Server, control: httpx.AsyncClient
) -> None:
    async with kafka(server, 1) as client:
        await client.send("fetch", 10, LONG_POLL)
        await eventually(lambda: len(asked_by_clients(server)) == 1)
        await verb(control, 1, "stop")
        answer = await client.answer("fetch", 10)
        (found,) = answer.responses[0].partitions
        assert found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        with pytest.raises(asyncio.IncompleteReadError) as end:
            await client.answer("fetch", 10)
        assert end.value.partial == b""
    assert server.connections[1] == 0


async def test_clients_of_a_killed_broker_see_a_reset_and_no_answer(
    server: Server, control: httpx.AsyncClient
) -> None:
    reader, writer = await asyncio.open_connection(HOST, port_of(server, 1))
    async with kafka(server, 2) as other:
        await eventually(lambda: server.connections == {1: 1, 2: 1, 3: 0})
        await verb(control, 1, "kill")
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()
        await eventually(lambda: server.connections[1] == 0)
        assert await other.ask("metadata", 12, MetadataRequest(topics=None))


async def test_nothing_that_waits_is_answered_by_a_killed_broker(
    server: Server, control: httpx.AsyncClient
) -> None:
    async with kafka(server, 1) as client:
        await client.send("fetch", 10, LONG_POLL)
        await eventually(lambda: len(asked_by_clients(server)) == 1)
        await verb(control, 1, "kill")
        with pytest.raises(ConnectionResetError):
            await client.answer("fetch", 10)
    assert [exchange.answered_ms for exchange in asked_by_clients(server)] == [None]


# What the controller makes of a killed broker


async def test_a_killed_broker_is_fenced_at_once_if_not_told_otherwise(
    server: Server, control: httpx.AsyncClient
) -> None:
    state = await verb(control, 1, "kill")
    assert (state["state"], state["fenced"]) == ("killed", True)
    assert (await partition(control))["leader"] == 2
    assert await produce(server, "t") == 0


async def test_a_controller_that_never_learns_of_it_elects_nobody(
    server: Server, control: httpx.AsyncClient
) -> None:
    state = await verb(control, 1, "kill", {"fence": "never"})
    assert (state["state"], state["fenced"]) == ("killed", False)
    shown = await partition(control)
    assert (shown["leader"], shown["leader_epoch"], shown["offline"]) == (1, 0, [])
    assert shown["replicas"][0]["state"] == "offline"
    assert shown["gate"] == {"open": False, "until_offset": -1}
    await verb(control, 1, "start")
    shown = await partition(control)
    assert sorted(shown["isr"]) == [1, 2, 3]
    assert await produce(server, "t") == 0


class TestWithTimeInHand:
    @pytest.fixture
    def clock(self) -> Clock:
        return ManualClock()

    @pytest.mark.parametrize(
        ("name", "body"),
        [("kill", {"fence": "timeout"}), ("isolate", {"from": "controller", "fence": "timeout"})],
    )
    async def test_the_controller_learns_of_it_when_the_session_times_out(
        self, control: httpx.AsyncClient, name: str, body: Json
    ) -> None:
        assert not (await verb(control, 1, name, body))["fenced"]
        await ok(control, "POST", "/v1/clock/advance", {"ms": 8999})
        assert (await partition(control))["leader"] == 1
        await ok(control, "POST", "/v1/clock/advance", {"ms": 1})
        assert (await partition(control))["leader"] == 2
        cluster = await ok(control, "GET", "/v1/cluster")
        assert [each["fenced"] for each in cluster["brokers"]] == [True, False, False]


# Isolation


async def test_a_zombie_serves_on_and_is_healed(server: Server, control: httpx.AsyncClient) -> None:
    state = await verb(control, 1, "isolate", {"from": "controller"})
    assert (state["state"], state["fenced"]) == ("running", True)
    assert state["isolated_from"] == ["controller"]
    shown = await partition(control)
    assert (shown["leader"], shown["offline"]) == (2, [1])
    assert shown["replicas"][0]["role"] == "leader", "as far as it knows"
    assert [each["label"] for each in shown["replicas"]] == ["zombie leader", "leading", "idle"]
    assert [each["zombie"] for each in shown["replicas"]] == [True, False, False]
    assert shown["explanation"].startswith(
        "two leaders: broker 2 leads in epoch 1 by the word of the controller,"
        " and still broker 1 in epoch 0"
    )
    async with kafka(server, 1) as client:
        answer = await client.ask("metadata", 12, MetadataRequest(topics=None))
    assert answer.topics[0].partitions[0].leader_id == 1
    state = await verb(control, 1, "rejoin")
    assert (state["fenced"], state["isolated_from"]) == (False, [])
    shown = await partition(control)
    assert shown["replicas"][0]["role"] == "follower"
    assert (shown["explanation"], shown["replicas"][0]["label"]) == (None, "idle")
    assert sorted(shown["isr"]) == [1, 2, 3]


async def test_brokers_are_cut_off_from_each_other_both_ways(
    server: Server, control: httpx.AsyncClient
) -> None:
    assert (await verb(control, 2, "isolate", {"from": [1]}))["isolated_from"] == [1]
    assert (await verb(control, 2, "isolate", {"from": [3]}))["isolated_from"] == [1, 3]
    cluster = await ok(control, "GET", "/v1/cluster")
    assert [each["isolated_from"] for each in cluster["brokers"]] == [[2], [1, 3], [2]]
    await produce(server, "t", acks=1)
    ends = [each["log_end_offset"] for each in (await partition(control))["replicas"]]
    assert ends == [1, 0, 1]
    assert (await verb(control, 2, "rejoin"))["isolated_from"] == []
    shown = await partition(control)
    assert [each["log_end_offset"] for each in shown["replicas"]] == [1, 1, 1]
    assert shown["high_watermark"] == 1


# Ports that are lost


async def test_a_broker_whose_port_was_taken_stays_down(
    server: Server, control: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_hold", lambda _host, _port: None)
    port = port_of(server, 2)
    await verb(control, 3, "stop")
    await verb(control, 2, "stop")
    with socket.create_server((HOST, port)):
        for path in ("/v1/brokers/2/start", "/v1/reset"):
            status, code, message = await refused(control, "POST", path)
            assert (status, code) == (409, "BROKER_NOT_AVAILABLE")
            assert f"{HOST}:{port}: address already in use" in message
        cluster = await ok(control, "GET", "/v1/cluster")
        assert [each["state"] for each in cluster["brokers"]] == ["running", "stopped", "stopped"]
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(HOST, port_of(server, 3))
        assert await partition(control), "nothing was forgotten"
    await verb(control, 2, "start")
    assert await brokers_as_seen_by(server, 2) == [1, 2]


async def test_a_broker_that_cannot_register_stays_down(
    server: Server, control: httpx.AsyncClient
) -> None:
    await verb(control, 2, "isolate", {"from": "controller"})
    await verb(control, 2, "stop")
    status, code, message = await refused(control, "POST", "/v1/brokers/2/start")
    assert (status, code) == (400, "INVALID_REQUEST")
    assert "rejoin it first" in message
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(HOST, port_of(server, 2))
    await verb(control, 2, "rejoin")
    await verb(control, 2, "start")
    assert await brokers_as_seen_by(server, 2) == [1, 2, 3]


# Refusals


@pytest.mark.parametrize("name", ["stop", "start", "kill", "rejoin", "isolate"])
async def test_there_is_no_such_broker(control: httpx.AsyncClient, name: str) -> None:
    body = {"from": "controller"} if name == "isolate" else None
    status, code, message = await refused(control, "POST", f"/v1/brokers/4/{name}", body)
    assert (status, code) == (404, "BROKER_ID_NOT_REGISTERED")
    assert message == "there is no broker 4, only 1, 2, 3"


@pytest.mark.parametrize("name", ["stop", "kill", "isolate"])
async def test_a_broker_that_is_down_cannot_be_stopped(
    control: httpx.AsyncClient, name: str
) -> None:
    await verb(control, 2, "stop")
    body = {"from": "controller"} if name == "isolate" else None
    status, code, message = await refused(control, "POST", f"/v1/brokers/2/{name}", body)
    assert (status, code, message) == (400, "INVALID_REQUEST", "broker 2 is not running")


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("2/start", None, "broker 2 runs already"),
        ("2/isolate", {}, "from: field required"),
        ("2/isolate", {"from": "broker"}, 'from: input should be "controller" or an array'),
        ("2/isolate", {"from": []}, 'from: input should be "controller" or an array'),
        ("2/isolate", {"from": [2]}, "cannot be isolated from itself"),
        ("2/isolate", {"from": [1], "fence": "now"}, "fence: it is for a broker that"),
        ("2/isolate", {"origin": [1]}, "there is no field 'origin'; there are from, fence"),
        ("2/kill", {"fence": "later"}, "fence: input should be 'now', 'timeout' or 'never'"),
    ],
)
async def test_what_cannot_be_is_refused(
    control: httpx.AsyncClient, path: str, body: Json, words: str
) -> None:
    before = await ok(control, "GET", "/v1/cluster")
    status, code, message = await refused(control, "POST", f"/v1/brokers/{path}", body)
    assert (status, code) == (400, "INVALID_REQUEST")
    assert words in message
    after = await ok(control, "GET", "/v1/cluster")
    assert {**after, "clock": 0} == {**before, "clock": 0}


# Reset


async def test_a_reset_brings_everything_back(server: Server, control: httpx.AsyncClient) -> None:
    await ok(control, "POST", f"{PARTITION}/replicas/3/hold")
    await verb(control, 3, "isolate", {"from": [2]})
    await verb(control, 2, "kill", {"fence": "never"})
    await verb(control, 1, "isolate", {"from": "controller"})
    await verb(control, 1, "stop")
    assert await ok(control, "POST", "/v1/reset") == {}
    cluster = await ok(control, "GET", "/v1/cluster")
    for each in cluster["brokers"]:
        assert (each["state"], each["fenced"], each["isolated_from"]) == ("running", False, [])
        assert await brokers_as_seen_by(server, each["id"]) == [1, 2, 3]
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2, 3]]})
    await produce(server, "t")
    shown = await partition(control)
    assert [each["log_end_offset"] for each in shown["replicas"]] == [1, 1, 1]
    assert [each["held"] for each in shown["replicas"]] == [False] * 3
