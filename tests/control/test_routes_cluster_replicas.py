"""Elect, hold, release, step, wipe, roll: an answer says what is, and it is so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from fencepost.broker.core.events import Kind
from tests.harness.control_client import Json, ok, refused
from tests.harness.typed_client import produce

if TYPE_CHECKING:
    import httpx

    from fencepost.broker.server.server import Server

PARTITION: Final = "/v1/topics/t/partitions/0"


def replica(state: Json, broker: int) -> Json:
    return next(each for each in state["replicas"] if each["broker"] == broker)


def log_ends(state: Json) -> list[int]:
    return [each["log_end_offset"] for each in state["replicas"]]


@pytest.fixture(autouse=True)
async def _topic(control: httpx.AsyncClient) -> None:
    """Broker 1 leads, 2 and 3 follow."""
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2, 3]]})


async def verb(control: httpx.AsyncClient, path: str, body: Json = None) -> Json:
    return await ok(control, "POST", f"{PARTITION}/{path}", body)


# Elections


async def test_after_an_election_the_leader_serves_at_once(
    server: Server, control: httpx.AsyncClient
) -> None:
    state = await verb(control, "elect", {"leader": 2})
    assert (state["leader"], state["leader_epoch"], state["isr"]) == (2, 1, [1, 2, 3])
    assert state["lost"] is None
    assert await produce(server, "t") == 0
    state = await ok(control, "GET", PARTITION)
    assert log_ends(state) == [1, 1, 1]


async def test_an_unclean_election_loses_what_the_new_leader_does_not_have(
    server: Server, control: httpx.AsyncClient
) -> None:
    await produce(server, "t")
    await verb(control, "replicas/3/hold", {"leave_isr": True})
    await produce(server, "t")
    status, code, message = await refused(control, "POST", f"{PARTITION}/elect", {"leader": 3})
    assert (status, code) == (409, "ELIGIBLE_LEADERS_NOT_AVAILABLE")
    assert "unclean" in message
    state = await verb(control, "elect", {"leader": 3, "unclean": True})
    assert (state["leader"], state["leader_epoch"]) == (3, 1)
    assert state["isr"][0] == 3
    assert log_ends(state) == [1, 1, 1], "the others have followed already"
    assert state["lost"] == {
        "broker": 1,
        "start_offset": 1,
        "end_offset": 2,
        "records": 1,
        "committed_records": 1,
    }
    (told,) = [e for e in server.cluster.events.since(0) if e.kind is Kind.RECORDS_LOST]
    assert (told.topic, told.partition, told.broker) == ("t", 0, 1)
    assert await produce(server, "t") == 1


async def test_a_leader_that_is_held_is_named_so(control: httpx.AsyncClient) -> None:
    await verb(control, "replicas/2/hold", {"at": 5})
    state = await verb(control, "elect", {"leader": 2})
    assert [each["label"] for each in state["replicas"]] == ["idle", "held leader at 5", "idle"]


async def test_the_gate_is_closed_until_the_high_watermark_has_caught_up(
    server: Server, control: httpx.AsyncClient
) -> None:
    await verb(control, "replicas/3/hold")
    await produce(server, "t", acks=1)
    state = await verb(control, "elect", {"leader": 2})
    assert state["gate"] == {"open": False, "until_offset": 1}
    assert state["high_watermark"] == 0
    state = await verb(control, "replicas/3/release")
    assert state["gate"] == {"open": True, "until_offset": 1}
    assert state["high_watermark"] == 1


# Hold and release


async def test_a_held_replica_stays_where_it_is_and_in_the_isr(
    server: Server, control: httpx.AsyncClient
) -> None:
    state = await verb(control, "replicas/2/hold")
    held = replica(state, 2)
    assert (held["state"], held["held"], held["held_at"]) == ("held", True, None)
    await produce(server, "t", acks=1)
    state = await ok(control, "GET", PARTITION)
    assert log_ends(state) == [1, 0, 1]
    assert (state["isr"], state["high_watermark"]) == ([1, 2, 3], 0)
    state = await verb(control, "replicas/2/release")
    assert log_ends(state) == [1, 1, 1]
    assert state["high_watermark"] == 1
    assert [each["held"] for each in state["replicas"]] == [False] * 3
    assert replica(state, 2)["state"] == "idle"


async def test_a_held_replica_can_leave_the_isr_at_once(
    server: Server, control: httpx.AsyncClient
) -> None:
    state = await verb(control, "replicas/2/hold", {"leave_isr": True})
    assert state["isr"] == [1, 3]
    assert await produce(server, "t") == 0
    state = await verb(control, "replicas/2/release")
    assert sorted(state["isr"]) == [1, 2, 3]
    assert log_ends(state) == [1, 1, 1]


async def test_a_replica_is_held_at_an_offset(server: Server, control: httpx.AsyncClient) -> None:
    state = await verb(control, "replicas/2/hold", {"at": 3})
    held = replica(state, 2)
    assert (held["state"], held["held"], held["held_at"]) == ("idle", True, 3)
    for values in ([b"0"], [b"1", b"2"], [b"3"]):
        await produce(server, "t", values=values, acks=1)
    state = await ok(control, "GET", PARTITION)
    assert log_ends(state) == [4, 3, 4]
    assert (replica(state, 2)["state"], state["high_watermark"]) == ("held", 3)


async def test_a_batch_that_goes_beyond_the_offset_is_not_taken(
    server: Server, control: httpx.AsyncClient
) -> None:
    await verb(control, "replicas/2/hold", {"at": 2})
    await produce(server, "t", values=[b"0"], acks=1)
    await produce(server, "t", values=[b"1", b"2"], acks=1)
    assert log_ends(await ok(control, "GET", PARTITION)) == [3, 1, 3]


async def test_a_hold_outlives_an_election(server: Server, control: httpx.AsyncClient) -> None:
    await verb(control, "replicas/2/hold")
    state = await verb(control, "elect", {"leader": 2})
    held = replica(state, 2)
    assert (held["role"], held["state"], held["held"]) == ("leader", "leading", True)
    await verb(control, "elect", {"leader": 3})
    await produce(server, "t", acks=1)
    state = await ok(control, "GET", PARTITION)
    assert replica(state, 2)["state"] == "held"
    assert log_ends(state) == [1, 0, 1]


async def test_what_it_has_already_it_cannot_be_held_before(
    server: Server, control: httpx.AsyncClient
) -> None:
    await produce(server, "t", values=[b"0", b"1"])
    status, code, message = await refused(
        control, "POST", f"{PARTITION}/replicas/2/hold", {"at": 1}
    )
    assert (status, code) == (400, "INVALID_REQUEST")
    assert "up to 2 already" in message
    state = await ok(control, "GET", PARTITION)
    assert not replica(state, 2)["held"]


# Step


async def test_a_step_is_one_fetch_and_tells_what_it_did(
    server: Server, control: httpx.AsyncClient
) -> None:
    await verb(control, "replicas/2/hold")
    await produce(server, "t", values=[b"0", b"1"], acks=1)
    fetch = {
        "api": "Fetch",
        "asked": None,
        "leader": 1,
        "leader_epoch": 0,
        "fetch_offset": 0,
        "error": "NONE",
        "appended": 2,
        "truncated_to": None,
        "log_end_offset": 2,
        "high_watermark": 0,
        "state": "fetching",
    }
    assert await verb(control, "replicas/2/step") == {"fetches": [fetch]}
    state = await ok(control, "GET", PARTITION)
    assert log_ends(state) == [2, 2, 2]
    assert state["high_watermark"] == 0, "it has not told its leader yet"
    again = {**fetch, "fetch_offset": 2, "appended": 0}
    assert await verb(control, "replicas/2/step", {"fetches": 2}) == {
        "fetches": [
            {**again, "high_watermark": 2, "state": "idle"},
            {**again, "high_watermark": 2, "state": "idle"},
        ]
    }
    state = await ok(control, "GET", PARTITION)
    assert (state["high_watermark"], replica(state, 2)["state"]) == (2, "held")


async def test_a_step_tells_of_a_truncation(server: Server, control: httpx.AsyncClient) -> None:
    await produce(server, "t")
    await verb(control, "replicas/3/hold", {"leave_isr": True})
    await produce(server, "t")
    await verb(control, "replicas/2/hold")
    await verb(control, "elect", {"leader": 3, "unclean": True})
    await produce(server, "t", acks=1)
    (fetch,) = (await verb(control, "replicas/2/step"))["fetches"]
    assert (fetch["fetch_offset"], fetch["truncated_to"], fetch["appended"]) == (2, 1, 0)
    (fetch,) = (await verb(control, "replicas/2/step"))["fetches"]
    assert (fetch["fetch_offset"], fetch["truncated_to"], fetch["appended"]) == (1, None, 1)


async def test_a_step_that_nobody_answers_says_so(
    server: Server, control: httpx.AsyncClient
) -> None:
    await verb(control, "replicas/2/hold")
    await ok(control, "POST", "/v1/brokers/2/isolate", {"from": [1]})
    (fetch,) = (await verb(control, "replicas/2/step"))["fetches"]
    assert (fetch["leader"], fetch["error"]) == (1, None)


# Wipe and roll


async def test_a_wiped_replica_fetches_everything_anew(
    server: Server, control: httpx.AsyncClient
) -> None:
    await produce(server, "t", values=[b"0", b"1"])
    await verb(control, "replicas/2/hold")
    state = await verb(control, "replicas/2/wipe")
    wiped = replica(state, 2)
    assert (wiped["log_end_offset"], wiped["high_watermark"], wiped["epochs"]) == (0, 0, [])
    assert state["isr"] == [1, 3]
    state = await verb(control, "replicas/2/release")
    assert log_ends(state) == [2, 2, 2]
    assert sorted(state["isr"]) == [1, 2, 3]


async def test_a_leader_that_is_wiped_leads_no_more(
    server: Server, control: httpx.AsyncClient
) -> None:
    await produce(server, "t")
    state = await verb(control, "replicas/1/wipe")
    assert (state["leader"], state["leader_epoch"]) == (2, 1)
    assert log_ends(state) == [1, 1, 1]
    assert sorted(state["isr"]) == [1, 2, 3]
    assert await produce(server, "t") == 1


async def test_a_segment_is_closed(server: Server, control: httpx.AsyncClient) -> None:
    await produce(server, "t")
    await verb(control, "roll")
    await produce(server, "t", values=[b"1", b"2"])
    state = await ok(control, "GET", PARTITION)
    for each in state["replicas"]:
        assert [(s["base_offset"], s["records"]) for s in each["segments"]] == [(0, 1), (1, 2)]


# Refusals


@pytest.mark.parametrize("name", ["hold", "release", "step", "wipe"])
@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        ("t/partitions/0/replicas/9", "BROKER_ID_NOT_REGISTERED", "broker 9"),
        ("t/partitions/1/replicas/1", "UNKNOWN_TOPIC_OR_PARTITION", "t-1"),
        ("u/partitions/0/replicas/1", "UNKNOWN_TOPIC_OR_PARTITION", "u-0"),
        ("two/partitions/0/replicas/3", "REPLICA_NOT_AVAILABLE", "[1, 2]"),
    ],
)
async def test_there_is_no_such_replica(
    control: httpx.AsyncClient, name: str, path: str, code: str, words: str
) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "two", "assignments": [[1, 2]]})
    status, found, message = await refused(control, "POST", f"/v1/topics/{path}/{name}")
    assert (status, found) == (404, code)
    assert words in message


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("replicas/1/step", None, "broker 1 leads"),
        ("replicas/1/hold", {"leave_isr": True}, "broker 1 leads"),
        ("replicas/2/hold", {"at": -1}, "at: input should be greater than or equal to 0"),
        ("replicas/2/hold", {"at": "3"}, "at: input should be a valid integer"),
        ("replicas/2/hold", {"until": 3}, "there is no field 'until'; there are at, leave_isr"),
        ("replicas/2/step", {"fetches": 0}, "fetches: input should be greater than"),
        ("elect", {"leader": 2, "unclean": 1}, "unclean: input should be a valid boolean"),
    ],
)
async def test_what_cannot_be_is_refused(
    control: httpx.AsyncClient, path: str, body: Json, words: str
) -> None:
    status, code, message = await refused(control, "POST", f"{PARTITION}/{path}", body)
    assert (status, code) == (400, "INVALID_REQUEST")
    assert words in message
