"""How many requests came that selectors match: verified, refused with the nearest, or undecided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from msgspec.structs import replace

from fencepost.broker.server import journal
from fencepost.protocol.messages.fetch import FetchRequest, ForgottenTopic
from fencepost.protocol.messages.heartbeat import HeartbeatRequest
from fencepost.protocol.messages.metadata import MetadataRequest
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from fencepost.protocol.records import Record
from tests.control.traces import topic
from tests.harness.control_client import Json, ok
from tests.harness.in_process_server import asked_by_clients
from tests.harness.records import batch
from tests.harness.typed_client import kafka
from tests.harness.typed_requests import fetch_request, from_offset, produce_request
from tests.harness.wait import eventually

if TYPE_CHECKING:
    import httpx

    from fencepost.broker.server.server import Server

VERIFY: Final = "/v1/trace/verify"
NO_TOPICS: Final = MetadataRequest(topics=())
ORDER: Final = Record(0, 1_700_000_000_000, b"17", b"two posts", (("type", b"order"),))


@pytest.fixture(autouse=True)
async def topics(control: httpx.AsyncClient) -> None:
    for name in ("t", "u"):
        await topic(control, name)


async def matched(control: httpx.AsyncClient, api: Json, count: Json, **selectors: Json) -> int:
    answer = await ok(control, "POST", VERIFY, {"api": api, "count": count, **selectors})
    number: int = answer["matched"]
    return number


async def not_verified(
    control: httpx.AsyncClient, api: Json, count: Json, **selectors: Json
) -> Json:
    answer = await control.post(VERIFY, json={"api": api, "count": count, **selectors})
    assert answer.status_code == 409, answer.text
    return answer.json()


async def beat(server: Server, client_id: str, *groups: str) -> None:
    async with kafka(server, 1, client_id) as client:
        for group in groups:
            await client.ask("heartbeat", 4, HeartbeatRequest(group_id=group, member_id="m"))


async def produce(server: Server, *records: Record, name: str = "t") -> None:
    async with kafka(server, 1, "shop") as client:
        for record in records:
            request = produce_request((name, 0, bytes(batch(record))), acks=1)
            await client.ask("produce", 9, request)


# -- as many as expected ------------------------------------------------------------------------


async def test_the_number_of_requests_that_match_every_selector_is_answered(
    server: Server, control: httpx.AsyncClient
) -> None:
    await beat(server, "a", "g", "h", "g")
    await beat(server, "b", "g")
    assert await matched(control, "Heartbeat", 4) == 4
    assert await matched(control, "Heartbeat", 3, client_id="a") == 3
    assert await matched(control, "Heartbeat", 3, group="g") == 3
    assert await matched(control, "Heartbeat", 2, group="g", client_id="a") == 2
    assert await matched(control, "Heartbeat", 0, broker=2) == 0
    assert await matched(control, "Heartbeat", 0, versions="-3") == 0
    assert await matched(control, ["Heartbeat", "Metadata"], 4) == 4
    assert await matched(control, "*", 4, source="clients") == 4
    assert await matched(control, "Heartbeat", 0, source="brokers") == 0


async def test_requests_are_counted_by_records(server: Server, control: httpx.AsyncClient) -> None:
    await produce(server, ORDER, ORDER, ORDER._replace(key=b"18", headers=()))
    assert await matched(control, "Produce", 2, record={"key": "17"}) == 2
    assert await matched(control, "Produce", 3, record={"value": "two posts"}) == 3
    assert await matched(control, "Produce", 2, record={"header": ["type", "order"]}) == 2
    assert await matched(control, "Produce", 0, record={"key": "17", "value": "one"}) == 0
    async with kafka(server, 1, "ship") as client:
        for offset in (0, 1, 2, 3):
            await client.ask("fetch", 11, fetch_request(("t", from_offset(offset))))
    fetched = {"client_id": "ship", "record": {"key": "17"}}
    assert await matched(control, "Fetch", 2, **fetched) == 2


@pytest.mark.parametrize(
    "count", [{"at_least": 2}, {"at_most": 2}, {"at_least": 1, "at_most": 3}, {"at_most": 9}]
)
async def test_the_number_may_have_bounds(
    server: Server, control: httpx.AsyncClient, count: Json
) -> None:
    await beat(server, "a", "g", "g")
    assert await matched(control, "Heartbeat", count) == 2


async def test_only_requests_since_a_number_are_counted(
    server: Server, control: httpx.AsyncClient
) -> None:
    await beat(server, "a", "g", "g")
    since = (await ok(control, "GET", "/v1/trace"))[-1]["number"]
    await beat(server, "a", "g")
    assert await matched(control, "Heartbeat", 1, since=since) == 1


async def test_a_request_that_waits_for_its_answer_was_seen(
    server: Server, control: httpx.AsyncClient
) -> None:
    async with kafka(server, 1, "ship") as client:
        await client.ask("metadata", 9, NO_TOPICS)
        waiting = fetch_request(("t", from_offset(0)), max_wait_ms=30_000)
        await client.send("fetch", 11, waiting)
        await eventually(lambda: len(asked_by_clients(server)) == 2)
        assert await matched(control, "Fetch", 1, client_id="ship", topic="t") == 1


async def test_what_verbs_ask_counts_in_none(server: Server, control: httpx.AsyncClient) -> None:
    await ok(control, "POST", "/v1/topics/t/partitions/0/elect", {"leader": 1})
    await ok(control, "POST", "/v1/brokers/3/kill")
    await ok(control, "GET", "/v1/topics")
    wrong = {"action": {"error": "NOT_COORDINATOR"}, "count": None}
    await ok(control, "POST", "/v1/faults", {"api": "*", "topic": "t", **wrong})
    await ok(control, "POST", "/v1/faults", {"api": "*", "group": "g", **wrong})
    records = {"partition": 0, "records": [{"value": "a"}]}
    produced = await ok(control, "POST", "/v1/topics/t/records", records)
    assert produced["records"] == [{"partition": 0, "offset": 0}]
    read = await ok(control, "GET", "/v1/topics/t/partitions/0/records")
    assert [each["value"] for each in read["records"]] == ["a"]
    expected = await ok(control, "POST", "/v1/topics/t/records/expect", {"value": "a"})
    assert len(expected["records"]) == 1
    offsets = {"offsets": [{"topic": "t", "partition": 0, "offset": 1}]}
    group = await ok(control, "POST", "/v1/groups/g/offsets", offsets)
    for verb, body in (
        ("coordinator", {"broker": 3 - group["coordinator"]}),
        ("wait", {"state": "Empty", "timeout_ms": 0}),
        ("offsets/delete", {"topics": ["t"]}),
    ):
        await ok(control, "POST", f"/v1/groups/g/{verb}", body)
    assert (await ok(control, "GET", "/v1/groups"))["groups"]
    await ok(control, "GET", "/v1/groups/g")
    assert await matched(control, "*", 0, source="clients") == 0
    assert [each["hits"] for each in await ok(control, "GET", "/v1/faults")] == [0, 0]


async def test_a_reset_begins_at_zero(server: Server, control: httpx.AsyncClient) -> None:
    await beat(server, "a", "g")
    await ok(control, "POST", "/v1/reset")
    assert await matched(control, "Heartbeat", 0) == 0


# -- another number -----------------------------------------------------------------------------


async def test_too_few_are_refused_with_the_nearest_and_what_differs(
    server: Server, control: httpx.AsyncClient
) -> None:
    await beat(server, "a", "h")
    await beat(server, "b", "h")
    answer = await not_verified(control, "Heartbeat", 1, group="g", client_id="a")
    assert (answer["error"], answer["matched"], answer["unknown"]) == (
        "REQUESTS_NOT_VERIFIED",
        0,
        0,
    )
    first, second = answer["nearest"]
    assert (first["client_id"], first["differs"]) == ("a", {"group": ["h"]})
    assert (second["client_id"], second["differs"]) == ("b", {"client_id": "b", "group": ["h"]})
    assert answer["message"] == (
        "expected 1 Heartbeat with client_id a, group g, and 0 came; nearest: "
        f"number {first['number']}, Heartbeat v4 by a to broker 1: group h; "
        f"number {second['number']}, Heartbeat v4 by b to broker 1: client_id b, group h"
    )


async def test_the_nearest_by_topic_and_record_are_shown_with_what_they_have(
    server: Server, control: httpx.AsyncClient
) -> None:
    await produce(server, ORDER)
    answer = await not_verified(control, "Produce", 1, topic="u", record={"key": "18"})
    (near,) = answer["nearest"]
    assert near["differs"] == {
        "topic": ["t-0"],
        "record": ['key "17" value "two posts" header "type" "order"'],
    }


async def test_too_many_are_refused_with_the_last_that_match(
    server: Server, control: httpx.AsyncClient
) -> None:
    await beat(server, "a", *"ggggg")
    answer = await not_verified(control, "Heartbeat", {"at_most": 4})
    numbers = [near["number"] for near in answer["nearest"]]
    assert numbers == sorted(numbers, reverse=True)
    assert [near["differs"] for near in answer["nearest"]] == [{}] * 3
    assert answer["message"].startswith("expected at most 4 Heartbeat, and 5 came; the last: ")


async def test_where_no_other_request_came_that_is_said(control: httpx.AsyncClient) -> None:
    answer = await not_verified(control, "Heartbeat", {"at_least": 1, "at_most": 2})
    assert answer["message"] == (
        "expected 1 to 2 Heartbeat, and 0 came; no other request of Heartbeat either"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"api": "Heartbeat", "topic": "t", "count": 1}, "topic: Heartbeat names no topics"),
        ({"api": "Fetch", "broker": 9, "count": 1}, "broker: there is no broker 9, only 1, 2, 3"),
        ({"api": "Fetch", "count": -1}, "count: input should be a number of requests, or "),
        ({"api": "Fetch", "count": {}}, "count: name at_least, at_most or both"),
        (
            {"api": "Fetch", "count": {"at_least": 2, "at_most": 1}},
            "count: at_least 2 is more than at_most 1",
        ),
        ({"api": "Fetch"}, "count: field required"),
    ],
)
async def test_what_nothing_could_match_is_refused(
    control: httpx.AsyncClient, given: Json, message: str
) -> None:
    answer = await control.post(VERIFY, json=given)
    assert answer.status_code in (400, 404)
    assert answer.json()["message"].startswith(message)


# -- what the trace no longer has ---------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal of four exchanges."""
    monkeypatch.setattr(journal, "MAX_EXCHANGES", 4)


@pytest.mark.usefixtures("small")
async def test_requests_that_fell_out_of_the_trace_are_counted_all_the_same(
    server: Server, control: httpx.AsyncClient
) -> None:
    await beat(server, "a", *"ggggggg")
    await beat(server, "b", "g")
    assert await matched(control, "Heartbeat", 8) == 8
    assert await matched(control, "Heartbeat", 7, client_id="a") == 7
    assert await matched(control, "Heartbeat", 0, client_id="c") == 0
    answer = await not_verified(control, "Heartbeat", 6, client_id="a")
    assert (answer["matched"], answer["unknown"]) == (7, 0)


@pytest.mark.usefixtures("small")
async def test_where_those_that_fell_out_may_decide_it_the_answer_says_so(
    server: Server, control: httpx.AsyncClient
) -> None:
    await beat(server, "a", *"ggggghg")
    answer = await not_verified(control, "Heartbeat", 3, group="g")
    assert (answer["error"], answer["matched"], answer["unknown"]) == ("TRACE_INCOMPLETE", 3, 3)
    assert "3 came for certain, and 3 more may match" in answer["message"]
    assert '"observe"' in answer["message"]
    assert await matched(control, "Heartbeat", {"at_least": 3}, group="g") == 3
    assert await matched(control, "Heartbeat", {"at_most": 6}, group="g") == 3
    for impossible in (2, 7, {"at_least": 7}, {"at_most": 2}):
        answer = await not_verified(control, "Heartbeat", impossible, group="g")
        assert answer["error"] == "REQUESTS_NOT_VERIFIED"
    answer = await not_verified(control, "Heartbeat", 7, since=1)
    assert (answer["error"], answer["matched"], answer["unknown"]) == ("TRACE_INCOMPLETE", 4, 3)
    since = server.journal.newest - 4
    assert await matched(control, "Heartbeat", 3, group="g", since=since) == 3


@pytest.mark.usefixtures("small")
async def test_an_observing_fault_counts_what_the_trace_forgets(
    server: Server, control: httpx.AsyncClient
) -> None:
    given = {"api": "Heartbeat", "group": "g", "action": "observe"}
    fault = await ok(control, "POST", "/v1/faults", given)
    await beat(server, "a", *"ggggghg")
    assert (await ok(control, "GET", f"/v1/faults/{fault['id']}"))["hits"] == 6


# -- what a request need not name ---------------------------------------------------------------


async def session(server: Server, *requests: FetchRequest) -> None:
    """Fetches of one session, each with the next epoch."""
    async with kafka(server, 1, "ship") as client:
        answer = await client.ask("fetch", 12, replace(requests[0], session_epoch=0))
        for epoch, request in enumerate(requests[1:], start=1):
            later = replace(request, session_id=answer.session_id, session_epoch=epoch)
            await client.ask("fetch", 12, later)


BOTH: Final = fetch_request(("t", from_offset(0)), ("u", from_offset(0)))
SAME: Final = FetchRequest(max_wait_ms=0)
WITHOUT_U: Final = replace(
    SAME, forgotten_topics_data=(ForgottenTopic(topic="u", partitions=(0,)),)
)


async def test_a_fetch_counts_for_the_topics_of_its_session(
    server: Server, control: httpx.AsyncClient
) -> None:
    await session(server, BOTH, SAME, WITHOUT_U, SAME)
    assert await matched(control, "Fetch", 4, client_id="ship", topic="t") == 4
    assert await matched(control, "Fetch", 2, client_id="ship", topic="u") == 2
    assert await matched(control, "Fetch", 0, client_id="ship", topic="u", partition=1) == 0


@pytest.mark.usefixtures("small")
async def test_a_fetch_whose_session_began_before_the_trace_may_match(
    server: Server, control: httpx.AsyncClient
) -> None:
    await session(server, BOTH, SAME, SAME, SAME, SAME)
    answer = await not_verified(control, "Fetch", 5, client_id="ship", topic="t")
    assert (answer["error"], answer["matched"], answer["unknown"]) == ("TRACE_INCOMPLETE", 0, 5)
    assert await matched(control, "Fetch", {"at_most": 5}, client_id="ship", topic="t") == 0
    assert await matched(control, "Fetch", 0, client_id="other", topic="t") == 0


async def test_a_topic_that_is_gone_is_known_by_its_id(
    server: Server, control: httpx.AsyncClient
) -> None:
    topic_id = server.cluster.controller.image.topics["t"].topic_id
    data = PartitionProduceData(index=0, records=bytes(batch(b"v")))
    request = ProduceRequest(
        acks=1,
        timeout_ms=1000,
        topic_data=(TopicProduceData(topic_id=topic_id, partition_data=(data,)),),
    )
    async with kafka(server, 1, "shop") as client:
        await client.ask("produce", 13, request)
    assert await matched(control, "Produce", 1, topic="t") == 1
    await ok(control, "DELETE", "/v1/topics/t")
    assert await matched(control, "Produce", 1, topic="t") == 1
    await topic(control, "t")
    assert await matched(control, "Produce", 1, topic="t") == 1
