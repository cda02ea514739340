"""Groups over HTTP: what a test sees of them, waits for and does to them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import pytest

from fencepost.client.consumer_protocol import encode_assignment, encode_subscription
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from fencepost.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.control.test_metrics import scrape
from tests.harness.control_client import Json, ok, refused
from tests.harness.in_process_server import asked_by_clients
from tests.harness.typed_client import kafka, produce
from tests.harness.wait import eventually

if TYPE_CHECKING:
    import httpx

    from fencepost.broker.server.server import Server

GROUP: Final = "/v1/groups/shipping"
OFFSETS: Final = {"offsets": [{"topic": "t", "partition": 0, "offset": 2}]}
PROTOCOLS: Final = (JoinGroupRequestProtocol(name="range", metadata=encode_subscription(["t"])),)


@pytest.fixture
def configs() -> dict[str, str]:
    return {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}


@pytest.fixture(autouse=True)
async def topics(server: Server, control: httpx.AsyncClient) -> None:
    for name in ("t", "__consumer_offsets"):
        body = {"name": name, "assignments": [[1, 2, 3]]}
        await ok(control, "POST", "/v1/topics", body)
    await produce(server, "t", values=[b"a", b"b", b"c"])


async def join(server: Server, group: str = "shipping") -> str:
    """A member that is assigned partition 0; its connection is closed, and its session goes on."""
    async with kafka(server, 1, "app") as client:
        joining = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            member_id="",
            protocol_type="consumer",
            protocols=PROTOCOLS,
        )
        joined = await client.ask("join_group", 3, joining)
        assert joined.error_code == ErrorCode.NONE
        assigned = SyncGroupRequestAssignment(
            member_id=joined.member_id, assignment=encode_assignment([("t", 0)])
        )
        syncing = SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=(assigned,),
        )
        assert (await client.ask("sync_group", 3, syncing)).error_code == ErrorCode.NONE
        member_id: str = joined.member_id
        return member_id


async def test_a_group_is_shown_with_its_members_offsets_and_lag(
    server: Server, control: httpx.AsyncClient
) -> None:
    await ok(control, "POST", f"{GROUP}/offsets", OFFSETS)
    member_id = await join(server)
    state = await ok(control, "GET", GROUP)
    (member,) = state.pop("members")
    assert member.pop("host").startswith("/127.0.0.1")
    assert member == {
        "member_id": member_id,
        "group_instance_id": None,
        "client_id": "app",
        "assignment": ["t-0"],
    }
    assert state == {
        "group": "shipping",
        "type": "classic",
        "state": "Stable",
        "generation": 1,
        "protocol_type": "consumer",
        "protocol": "range",
        "coordinator": 1,
        "offsets_partition": 0,
        "offsets": [
            {
                "topic": "t",
                "partition": 0,
                "committed_offset": 2,
                "leader_epoch": -1,
                "log_end_offset": 3,
                "lag": 1,
                "member_id": member_id,
            }
        ],
    }
    listed = {"group": "shipping", "type": "classic", "state": "Stable"}
    assert await ok(control, "GET", "/v1/groups") == {"groups": [listed]}


async def test_a_partition_that_is_assigned_is_shown_before_anything_is_committed(
    server: Server, control: httpx.AsyncClient
) -> None:
    await join(server)
    (found,) = (await ok(control, "GET", GROUP))["offsets"]
    assert (found["committed_offset"], found["log_end_offset"], found["lag"]) == (-1, 3, None)


async def test_the_lag_is_not_known_while_there_is_no_leader(control: httpx.AsyncClient) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "alone", "assignments": [[3]]})
    body = {"offsets": ["alone:0:2", "t:0:3"]}
    await ok(control, "POST", f"{GROUP}/offsets", body)
    await ok(control, "POST", "/v1/brokers/3/kill")
    found = (await ok(control, "GET", GROUP))["offsets"]
    assert [(each["log_end_offset"], each["lag"]) for each in found] == [(-1, None), (3, 0)]


async def test_a_group_that_becomes_stable_is_waited_for(
    server: Server, control: httpx.AsyncClient
) -> None:
    waiting = asyncio.ensure_future(ok(control, "POST", f"{GROUP}/wait", {"members": 1}))
    await eventually(lambda: not waiting.done())
    member_id = await join(server)
    found = await waiting
    assert (found["state"], [each["member_id"] for each in found["members"]]) == (
        "Stable",
        [member_id],
    )
    await ok(control, "POST", f"{GROUP}/rebalance")
    body = {"state": "preparingrebalance", "timeout_ms": 0}
    assert (await ok(control, "POST", f"{GROUP}/wait", body))["state"] == "PreparingRebalance"


async def test_a_group_that_is_not_ready_in_time_is_refused_with_what_it_is(
    server: Server, control: httpx.AsyncClient
) -> None:
    await join(server)
    body = {"members": 2, "timeout_ms": 1}
    answer = await control.post(f"{GROUP}/wait", json=body)
    found = answer.json()
    assert (answer.status_code, found["error"]) == (409, "REQUEST_TIMED_OUT")
    assert found["message"] == (
        "group 'shipping' is Stable with 1 member after 1 ms, and not Stable with 2 members"
    )
    assert found["group"] == await ok(control, "GET", GROUP)
    found = (await control.post("/v1/groups/nope/wait", json=body)).json()
    assert (found["message"], found["group"]) == ("there is no group 'nope' after 1 ms", None)


async def test_a_member_is_removed(server: Server, control: httpx.AsyncClient) -> None:
    member_id = await join(server)
    state = await ok(control, "POST", f"{GROUP}/members/{member_id}/remove")
    assert (state["state"], state["members"], state["generation"]) == ("Empty", [], 2)
    assert (await refused(control, "POST", f"{GROUP}/members/{member_id}/remove"))[:2] == (
        404,
        "UNKNOWN_MEMBER_ID",
    )


async def test_offsets_are_set_and_deleted(server: Server, control: httpx.AsyncClient) -> None:
    await join(server)
    state = await ok(control, "POST", f"{GROUP}/offsets", OFFSETS)
    assert state["offsets"][0]["committed_offset"] == 2
    state = await ok(control, "POST", f"{GROUP}/offsets/delete", {"topics": ["t"]})
    assert (state["state"], state["offsets"][0]["committed_offset"]) == ("Stable", -1)


async def test_offsets_that_cannot_be_committed_are_refused(control: httpx.AsyncClient) -> None:
    await ok(control, "POST", f"{GROUP}/offsets", OFFSETS)
    for broker in (2, 3):
        await ok(control, "POST", f"/v1/brokers/{broker}/stop")
    await ok(control, "POST", f"{GROUP}/offsets", OFFSETS)  # the ISR of one is enough
    await ok(control, "POST", "/v1/brokers/1/stop")
    status, code, _ = await refused(control, "POST", f"{GROUP}/offsets", OFFSETS)
    assert (status, code) == (409, "COORDINATOR_NOT_AVAILABLE")


async def test_a_coordinator_moves(server: Server, control: httpx.AsyncClient) -> None:
    await join(server)
    state = await ok(control, "POST", f"{GROUP}/coordinator", {"broker": 2})
    assert (state["coordinator"], state["state"], len(state["members"])) == (2, "Stable", 1)
    assert (await refused(control, "POST", f"{GROUP}/coordinator", {"broker": 9}))[:2] == (
        409,
        "ELIGIBLE_LEADERS_NOT_AVAILABLE",
    )


async def test_a_group_may_have_any_name(control: httpx.AsyncClient) -> None:
    for name in ("a/b", "a/wait", "ä ?#%", "offsets"):
        path = f"/v1/groups/{quote(name, safe='')}"
        await ok(control, "POST", f"{path}/offsets", OFFSETS)
        assert (await ok(control, "GET", path))["group"] == name
        await ok(control, "POST", f"{path}/wait", {"members": 0})


async def test_a_test_leaves_no_trace(server: Server, control: httpx.AsyncClient) -> None:
    before = len(asked_by_clients(server))
    await ok(control, "POST", f"{GROUP}/offsets", OFFSETS)
    await ok(control, "POST", f"{GROUP}/coordinator", {"broker": 2})
    await ok(control, "GET", GROUP)
    assert len(asked_by_clients(server)) == before


async def test_members_offsets_and_lag_are_metrics(
    server: Server, control: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await join(server)
    await ok(control, "POST", f"{GROUP}/offsets", OFFSETS)
    await ok(control, "POST", "/v1/groups/other/offsets", OFFSETS)
    told = await scrape(control)
    place: Json = {"group": "shipping", "topic": "t", "partition": 0}
    assert told("groups", state="Stable") == told("groups", state="Empty") == 1
    assert told("group_members", group="shipping") == 1
    assert told("group_members", group="other") == 0
    assert told("group_committed_offset", **place) == 2
    assert told("group_lag", **place) == 1
    assert told("group_partitions_left_out") == 0
    told = await scrape(control, "?topic=u")
    assert (told("group_lag", **place), told("group_partitions_left_out")) == (None, 2)
    monkeypatch.setattr("fencepost.control.group_metrics.MAX_ROWS", 1)
    told = await scrape(control)
    assert (told.count("group_lag"), told("group_partitions_left_out")) == (1, 1)
