"""Faults over HTTP: what is set, what it does to a client, and waiting for it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final

import pytest

from fencepost.protocol.errors import ErrorCode
from tests.harness.control_client import Json, ok, refused
from tests.harness.typed_client import kafka, produce
from tests.harness.typed_requests import list_offsets_request
from tests.harness.wait import eventually

if TYPE_CHECKING:
    import httpx

    from fencepost.broker.server.server import Server

FAULTS: Final = "/v1/faults"
ASKED: Final = list_offsets_request("t")
REFUSAL: Final = {"error": "NOT_ENOUGH_REPLICAS"}


@pytest.fixture(autouse=True)
async def topic(control: httpx.AsyncClient) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2, 3]]})


async def add(control: httpx.AsyncClient, api: str | int, action: Json, **more: Json) -> Json:
    return await ok(control, "POST", FAULTS, {"api": api, "action": action, **more})


async def look_up(server: Server, client_id: str = "tester") -> int:
    async with kafka(server, 1, client_id) as client:
        answer = await client.ask("list_offsets", 5, ASKED)
    code: int = answer.topics[0].partitions[0].error_code
    return code


# -- setting ------------------------------------------------------------------------------------


async def test_a_fault_is_told_as_it_was_set(control: httpx.AsyncClient) -> None:
    fault = await add(
        control,
        "list_offsets",
        {"error": "not_enough_replicas"},
        versions="4-",
        broker=2,
        client_id="c",
        source="clients",
        topic="t",
        partition=1,
        count=None,
        after=3,
        probability=0.5,
    )
    assert fault == {
        "id": 1,
        "hits": 0,
        "left": None,
        "api": "ListOffsets",
        "versions": "4-",
        "broker": 2,
        "client_id": "c",
        "source": "clients",
        "topic": "t",
        "partition": 1,
        "group": None,
        "transactional_id": None,
        "record": None,
        "sequence": None,
        "count": None,
        "after": 3,
        "probability": 0.5,
        "action": REFUSAL,
    }
    assert await ok(control, "GET", FAULTS) == [fault]
    assert await ok(control, "GET", f"{FAULTS}/1") == fault


async def test_what_is_left_out_is_one_hit_for_anybody(control: httpx.AsyncClient) -> None:
    fault = await add(control, 2, REFUSAL)
    assert (fault["api"], fault["count"], fault["left"]) == ("ListOffsets", 1, 1)
    assert (fault["after"], fault["probability"]) == (0, 1.0)
    selectors = ("versions", "broker", "client_id", "source", "topic", "partition", "group")
    assert {fault[name] for name in selectors} == {None}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"error": 19}, REFUSAL),
        ({"error": "19"}, REFUSAL),
        ({"error": 9999}, {"error": 9999}),
        ({"error": -1}, {"error": "UNKNOWN_SERVER_ERROR"}),
        ({"delay": 5}, {"delay": 5}),
        ({"disconnect": "after"}, {"disconnect": "after"}),
        ({"throttle": 5}, {"throttle": 5}),
        ({"drop": True}, {"drop": True}),
        ("drop", {"drop": True}),
        ("corrupt", {"corrupt": True}),
    ],
)
async def test_every_action_is_told_as_it_is_named(
    control: httpx.AsyncClient, given: Json, told: Json
) -> None:
    assert (await add(control, "Produce", given))["action"] == told


async def test_stale_metadata_is_an_action(control: httpx.AsyncClient) -> None:
    assert (await add(control, "Metadata", {"stale_metadata": 0}))["action"] == {
        "stale_metadata": 0
    }


@pytest.mark.parametrize(
    ("given", "told"), [(9, "9"), ("9", "9"), ("4-8", "4-8"), ("9-", "9-"), ("-8", "-8")]
)
async def test_versions_are_told_as_they_are_set(
    control: httpx.AsyncClient, given: Json, told: str
) -> None:
    assert (await add(control, "Fetch", "drop", versions=given))["versions"] == told


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"api": "Prodce"}, "api: no API 'Prodce' is served; did you mean Produce?"),
        ({"action": {"error": "NOT_LEADR"}}, "error: Kafka has no 'NOT_LEADR'"),
        ({"action": {"error": 40_000}}, "error: 40000: codes go from -32768 to 32767"),
        ({"action": {"error": "NONE"}}, "action: error: NONE is no error"),
        ({"action": {}}, "action: name exactly one action of error, delay, "),
        ({"action": {"drop": True, "delay": 1}}, "action: name exactly one action of error, "),
        ({"action": {"disconnect": "now"}}, "action.disconnect: input should be 'before' or 'aft"),
        ({"versions": "x"}, "versions: 'x' is none: write 9, 4-8, 9- or -8"),
        ({"versions": "-"}, "versions: '-' is none: write 9, 4-8, 9- or -8"),
        ({"versions": "8-4"}, "versions: Produce is served in versions 3 to 13, and 8-4 is none"),
        ({"count": 0}, "count: input should be greater than or equal to 1"),
        ({"probability": 0}, "probability: input should be greater than 0"),
        ({"partition": 1}, "partition: name its topic too"),
        ({"group": "g"}, "group: Produce names no group; OffsetCommit, "),
        ({"sometimes": 1}, "there is no field 'sometimes'; there are api, versions, "),
    ],
)
async def test_what_makes_no_sense_is_refused_in_one_line(
    control: httpx.AsyncClient, body: Json, problem: str
) -> None:
    given = {"api": "Produce", "action": "drop", **body}
    status, code, message = await refused(control, "POST", FAULTS, given)
    assert (status, code) == (400, "INVALID_REQUEST")
    assert message.startswith(problem), message
    assert "\n" not in message
    assert await ok(control, "GET", FAULTS) == []


@pytest.mark.parametrize("name", ["client_id", "topic", "group", "transactional_id"])
async def test_text_that_no_request_can_bring_is_refused(
    control: httpx.AsyncClient, name: str
) -> None:
    body = json.dumps({"api": "Produce", "action": "drop", name: "\ud800"})
    headers = {"content-type": "application/json"}
    answer = await control.post(FAULTS, content=body, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["message"] == f"{name}: input should be text that UTF-8 can encode"


async def test_a_broker_that_is_not_there_has_no_faults(control: httpx.AsyncClient) -> None:
    answer = await refused(control, "POST", FAULTS, {"api": "Fetch", "broker": 9, "action": "drop"})
    assert answer == (
        404,
        "BROKER_ID_NOT_REGISTERED",
        "broker: there is no broker 9, only 1, 2, 3",
    )


# -- hits ---------------------------------------------------------------------------------------


async def test_a_client_meets_a_fault_and_the_test_sees_its_hits(
    server: Server, control: httpx.AsyncClient
) -> None:
    await add(control, "ListOffsets", REFUSAL, count=2, client_id="tester")
    assert await look_up(server, "other") == 0
    assert [await look_up(server) for _ in range(3)] == [
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        0,
    ]
    fault = await ok(control, "GET", f"{FAULTS}/1")
    assert (fault["hits"], fault["left"]) == (2, 0)


async def test_a_fault_that_is_removed_is_gone_and_says_what_it_did(
    server: Server, control: httpx.AsyncClient
) -> None:
    await add(control, "ListOffsets", REFUSAL, count=None)
    await look_up(server)
    fault = await ok(control, "DELETE", f"{FAULTS}/1")
    assert (fault["id"], fault["hits"]) == (1, 1)
    assert await look_up(server) == 0
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/wait")):
        answer = await refused(control, method, f"{FAULTS}/1{path}")
        assert answer == (404, "RESOURCE_NOT_FOUND", "there is no fault 1")


@pytest.mark.parametrize(("method", "path"), [("DELETE", FAULTS), ("POST", "/v1/reset")])
async def test_all_faults_are_removed_and_numbers_go_on(
    server: Server, control: httpx.AsyncClient, method: str, path: str
) -> None:
    await add(control, "ListOffsets", REFUSAL, count=None)
    await add(control, "Fetch", "drop", client_id="absent")
    assert await ok(control, method, path) == {}
    assert await ok(control, "GET", FAULTS) == []
    assert (await add(control, "Fetch", "drop"))["id"] == 3


# -- waiting ------------------------------------------------------------------------------------


async def test_a_wait_ends_with_the_hit(server: Server, control: httpx.AsyncClient) -> None:
    await add(control, "ListOffsets", REFUSAL, count=None)
    listeners = server.cluster.events.listeners
    before = len(listeners)
    waiting = asyncio.ensure_future(ok(control, "GET", f"{FAULTS}/1/wait?hits=2"))
    await eventually(lambda: len(listeners) > before)
    await look_up(server)
    assert not waiting.done()
    await look_up(server)
    assert (await waiting)["hits"] == 2
    assert len(listeners) == before


async def test_a_wait_for_what_has_been_is_over_at_once(
    server: Server, control: httpx.AsyncClient
) -> None:
    await add(control, "ListOffsets", REFUSAL)
    await look_up(server)
    assert (await ok(control, "GET", f"{FAULTS}/1/wait?timeout_ms=0"))["hits"] == 1


async def test_a_wait_in_vain_says_how_far_it_came(
    server: Server, control: httpx.AsyncClient
) -> None:
    await add(control, "ListOffsets", REFUSAL, count=None)
    await look_up(server)
    before = len(server.cluster.events.listeners)
    answer = await refused(control, "GET", f"{FAULTS}/1/wait?hits=3&timeout_ms=30")
    assert answer == (409, "REQUEST_TIMED_OUT", "fault 1 has hit 1 of 3 requests within 30 ms")
    assert len(server.cluster.events.listeners) == before


async def test_a_wait_ends_when_its_fault_is_removed(
    server: Server, control: httpx.AsyncClient
) -> None:
    await add(control, "ListOffsets", REFUSAL)
    listeners = server.cluster.events.listeners
    before = len(listeners)
    waiting = asyncio.ensure_future(refused(control, "GET", f"{FAULTS}/1/wait"))
    await eventually(lambda: len(listeners) > before)
    await ok(control, "POST", "/v1/reset")
    assert (await waiting)[:2] == (404, "RESOURCE_NOT_FOUND")


# -- over sockets -------------------------------------------------------------------------------


async def test_a_connection_that_is_dropped_is_closed_by_a_reset(
    server: Server, control: httpx.AsyncClient
) -> None:
    await add(control, "ListOffsets", "drop")
    async with kafka(server, 1) as client:
        await client.send("list_offsets", 5, ASKED)
        assert (await ok(control, "GET", f"{FAULTS}/1/wait"))["hits"] == 1
        await ok(control, "POST", "/v1/reset")
        with pytest.raises(asyncio.IncompleteReadError):
            await client.answer("list_offsets", 5)


async def test_a_request_is_late_by_the_delay(server: Server, control: httpx.AsyncClient) -> None:
    await add(control, "ListOffsets", {"delay": 60})
    loop = asyncio.get_running_loop()
    start = loop.time()
    assert await look_up(server) == 0
    assert loop.time() - start >= 0.05


async def test_a_step_tells_what_the_follower_saw(
    server: Server, control: httpx.AsyncClient
) -> None:
    replica = "/v1/topics/t/partitions/0/replicas/2"
    await ok(control, "POST", f"{replica}/hold", {})
    await produce(server, "t", acks=1)
    fetcher = "broker-2-fetcher-0"
    for action in ("corrupt", {"error": 4711}, {"disconnect": "before"}):
        await add(control, "Fetch", action, client_id=fetcher)
    fetches = (await ok(control, "POST", f"{replica}/step", {"fetches": 4}))["fetches"]
    assert [f["error"] for f in fetches] == ["CORRUPT_MESSAGE", "4711", None, "NONE"]
    assert [f["appended"] for f in fetches] == [0, 0, 0, 1]


async def test_events_tell_of_faults(control: httpx.AsyncClient, server: Server) -> None:
    async with control.stream("GET", "/v1/events") as stream:
        await add(control, "ListOffsets", REFUSAL, topic="t")
        await look_up(server)
        await ok(control, "DELETE", f"{FAULTS}/1")
        found = []
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                found.append(json.loads(line.removeprefix("data: ")))
            if len(found) == 5:
                break
    kinds = ["verb", "fault_added", "fault_hit", "verb", "fault_removed"]
    assert [e["kind"] for e in found] == kinds
    found = [each for each in found if each["kind"] != "verb"]
    assert (found[1]["broker"], found[1]["topic"]) == (1, "t")
    assert found[1]["details"] == {
        "id": 1,
        "api": "ListOffsets",
        "action": REFUSAL,
        "client_id": "tester",
    }
