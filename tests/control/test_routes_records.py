"""Records over HTTP: produced, read and expected by a test, unseen by clients."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from fencepost.broker.core.scheduler import Clock, ManualClock
from fencepost.protocol.records import Record
from tests.harness.control_client import Json, ok, refused
from tests.harness.in_process_server import asked_by_clients
from tests.harness.records import batch
from tests.harness.typed_client import produce
from tests.harness.wait import eventually

if TYPE_CHECKING:
    import httpx

    from fencepost.broker.server.server import Server

RECORDS = "/v1/topics/t/records"
PARTITION = "/v1/topics/t/partitions/0"


@pytest.fixture(autouse=True)
async def topic(control: httpx.AsyncClient) -> None:
    await create(control, [[1, 2, 3]])


async def create(control: httpx.AsyncClient, assignments: list[list[int]]) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": assignments})


async def put(control: httpx.AsyncClient, *records: Json, **fields: Json) -> list[Json]:
    body = {"records": [*records], **fields}
    found: list[Json] = (await ok(control, "POST", RECORDS, body))["records"]
    return found


async def read(control: httpx.AsyncClient, query: str = "") -> Json:
    return await ok(control, "GET", f"{PARTITION}/records?{query}")


async def values(control: httpx.AsyncClient, query: str = "") -> tuple[list[Json], int]:
    found = await read(control, query)
    return [each["value"] for each in found["records"]], found["next_offset"]


async def test_a_record_comes_back_as_it_was_produced(control: httpx.AsyncClient) -> None:
    given = {"key": "17", "value": "two", "headers": {"a": "1", "b": None}, "timestamp": 7}
    assert await put(control, given) == [{"partition": 0, "offset": 0}]
    (found,) = (await read(control))["records"]
    assert found == {
        **given,
        "partition": 0,
        "offset": 0,
        "leader_epoch": 0,
        "encoding": "text",
        "producer_id": None,
        "producer_epoch": None,
        "sequence": None,
        "transaction": None,
    }


async def test_headers_keep_their_order_where_names_repeat(control: httpx.AsyncClient) -> None:
    headers = [["a", "1"], ["b", "2"], ["a", None]]
    await put(control, {"value": "v", "headers": headers})
    assert (await read(control))["records"][0]["headers"] == headers


async def test_values_may_be_json_or_any_bytes(control: httpx.AsyncClient) -> None:
    await put(control, {"key": "k", "value": {"id": 17}}, encoding="json")
    await put(control, {"value": "/w=="}, encoding="base64")
    assert await values(control, "encoding=json") == ([{"id": 17}, "/w=="], 2)
    assert await values(control) == (['{"id":17}', "/w=="], 2)


async def test_a_record_of_an_idempotent_producer_has_its_sequence(
    server: Server, control: httpx.AsyncClient
) -> None:
    data = batch(b"a", b"b", producer=(7, 2, 0))
    server.cluster.brokers[1].replicas["t", 0].append(
        data, now_ms=server.cluster.scheduler.wall_ms()
    )
    server.cluster.scheduler.run_due()
    found = (await read(control))["records"]
    assert [(r["producer_id"], r["producer_epoch"], r["sequence"]) for r in found] == [
        (7, 2, 0),
        (7, 2, 1),
    ]


async def test_a_range_is_read(control: httpx.AsyncClient) -> None:
    await put(control, "a", "b")
    await put(control, "c", "d")
    for query, found, next_offset in (
        ("", ["a", "b", "c", "d"], 4),
        ("from=2", ["c", "d"], 4),
        ("from=1&to=3", ["b", "c"], 3),
        ("to=99", ["a", "b", "c", "d"], 4),
        ("from=4", [], 4),
        ("from=1&limit=2", ["b", "c"], 3),
        ("last=2", ["c", "d"], 4),
        ("last=9", ["a", "b", "c", "d"], 4),
        ("last=1&to=3", ["c"], 3),
    ):
        assert await values(control, query) == (found, next_offset), query


async def test_the_last_records_are_found_where_offsets_have_none(
    server: Server, control: httpx.AsyncClient
) -> None:
    """Control records have offsets, and are not shown."""
    replica = server.cluster.brokers[1].replicas["t", 0]
    await put(control, "a", "b", "c")
    for _ in range(5):
        end = replica.log.log_end_offset
        marker = Record(end, 0, b"\0\0\0\1", b"\0\0\0\0\0\0")
        data = batch(marker, base_offset=end, leader_epoch=0, control=True)
        replica.log.append_as_follower([data], now_ms=0)
    replica.append(batch(b"d"), now_ms=server.cluster.scheduler.wall_ms())
    server.cluster.scheduler.run_due()
    assert await values(control, "last=2") == (["c", "d"], 9)
    assert await values(control, "from=3") == (["d"], 9)


async def test_a_large_answer_ends_before_its_limit(
    control: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencepost.control.record_reading.MAX_BYTES", 5)
    await put(control, "aaaa", "bbbb", "cccc")
    assert await values(control) == (["aaaa"], 1)
    assert await values(control, "from=1") == (["bbbb"], 2)
    assert await values(control, "last=3") == (["cccc"], 3)


async def test_an_offset_that_cannot_be_read_is_refused(control: httpx.AsyncClient) -> None:
    await put(control, "a")
    assert await refused(control, "GET", f"{PARTITION}/records?from=2") == (
        400,
        "OFFSET_OUT_OF_RANGE",
        "from: t-0 can be read from offset 0 to 1 (exclusive), and not from 2",
    )


async def test_a_test_leaves_no_trace_and_meets_no_fault(
    server: Server, control: httpx.AsyncClient
) -> None:
    for api in ("Produce", "Fetch"):
        fault = {"api": api, "source": "clients", "count": None, "action": "drop"}
        await ok(control, "POST", "/v1/faults", fault)
    await put(control, "a")
    assert await values(control) == (["a"], 1)
    await ok(control, "POST", f"{RECORDS}/expect", {"value": "a"})
    assert asked_by_clients(server) == []
    assert [each["hits"] for each in await ok(control, "GET", "/v1/faults")] == [0, 0]


async def test_what_is_not_committed_in_time_is_refused(control: httpx.AsyncClient) -> None:
    await ok(control, "POST", f"{PARTITION}/replicas/3/hold")
    body = {"records": ["a"], "timeout_ms": 1}
    status, code, message = await refused(control, "POST", RECORDS, body)
    assert (status, code) == (409, "REQUEST_TIMED_OUT")
    assert "appended at offset 0 by broker 1, but not committed in time" in message
    assert "broker 3 of the ISR is held" in message
    assert await values(control) == ([], 0)
    assert await put(control, "b", acks="1") == [{"partition": 0, "offset": 1}]
    await ok(control, "POST", f"{PARTITION}/replicas/3/release")
    assert await values(control) == (["a", "b"], 2)


async def test_the_answer_comes_when_a_replica_is_released(control: httpx.AsyncClient) -> None:
    await ok(control, "POST", f"{PARTITION}/replicas/3/hold")
    produced = asyncio.ensure_future(put(control, "a"))
    await eventually(lambda: not produced.done())
    await ok(control, "POST", f"{PARTITION}/replicas/3/release")
    assert await produced == [{"partition": 0, "offset": 0}]


@pytest.mark.parametrize("verb", ["records", "records/expect"])
async def test_a_partition_that_there_is_not_is_refused(
    control: httpx.AsyncClient, verb: str
) -> None:
    body = {"value": "a", "partition": 7}
    assert (await refused(control, "POST", f"/v1/topics/t/{verb}", body))[:2] == (
        404,
        "UNKNOWN_TOPIC_OR_PARTITION",
    )


# -- expect -------------------------------------------------------------------------------------


async def expect(control: httpx.AsyncClient, **body: Json) -> list[int]:
    """The offsets of the records that are found."""
    found = await ok(control, "POST", f"{RECORDS}/expect", body)
    return [each["offset"] for each in found["records"]]


async def started(server: Server, control: httpx.AsyncClient, **body: Json) -> asyncio.Task[Json]:
    """An expectation that has looked and waits."""
    listeners = server.cluster.events.listeners
    before = len(listeners)
    waiting = asyncio.ensure_future(expect(control, **body))
    await eventually(lambda: len(listeners) > before)
    return waiting


async def missing(control: httpx.AsyncClient, **body: Json) -> Json:
    answer = await control.post(f"{RECORDS}/expect", json={"timeout_ms": 1, **body})
    assert answer.status_code == 409
    found = answer.json()
    assert found["error"] == "REQUEST_TIMED_OUT"
    return found


async def test_a_record_that_is_there_is_found_by_any_of_its_fields(
    control: httpx.AsyncClient,
) -> None:
    await put(control, {"key": "17", "value": "one", "headers": {"a": "1", "b": "2"}})
    await put(control, {"key": "17"}, {"value": "two"})
    assert await expect(control, key="17") == [0]
    assert await expect(control, key="17", count=2) == [0, 1]
    assert await expect(control, value="two") == [2]
    assert await expect(control, key=None) == [2]
    assert await expect(control, key="17", value=None) == [1]
    assert await expect(control, headers={"b": "2"}) == [0]
    assert await expect(control, headers=[["a", "1"], ["b", "2"]]) == [0]
    assert await expect(control, partition=0) == [0]


async def test_json_is_compared_as_json(control: httpx.AsyncClient) -> None:
    await put(control, '{"b": 2, "a": 1}')
    assert await expect(control, value={"a": 1, "b": 2}, encoding="json") == [0]
    assert (await missing(control, value={"a": 1}, encoding="json"))["records"] == []


async def test_a_record_that_comes_is_waited_for(
    server: Server, control: httpx.AsyncClient
) -> None:
    waiting = await started(server, control, value="v", count=2)
    await produce(server, "t", values=[b"v"])
    assert not waiting.done()
    await produce(server, "t", values=[b"x", b"v"])
    assert await waiting == [0, 2]


async def test_a_topic_that_comes_is_waited_for(server: Server, control: httpx.AsyncClient) -> None:
    await ok(control, "DELETE", "/v1/topics/t")
    waiting = await started(server, control, value="v")
    await create(control, [[1]])
    await put(control, "v")
    assert await waiting == [0]


async def test_a_record_that_is_truncated_does_not_count(
    server: Server, control: httpx.AsyncClient
) -> None:
    await put(control, "first")
    for broker in (2, 3):
        hold = f"{PARTITION}/replicas/{broker}/hold"
        await ok(control, "POST", hold, {"leave_isr": True})
    await put(control, "v")
    waiting = await started(server, control, value="v", count=2)
    await ok(control, "POST", f"{PARTITION}/elect", {"leader": 2, "unclean": True})
    await put(control, "v")
    assert not waiting.done()
    await put(control, "v")
    assert await waiting == [1, 2]


async def test_what_is_not_committed_does_not_count(control: httpx.AsyncClient) -> None:
    await ok(control, "POST", f"{PARTITION}/replicas/3/hold")
    await put(control, "v", acks="1")
    assert (await missing(control, value="v"))["nearest"] == []


async def test_the_nearest_are_shown_where_a_record_does_not_come(
    control: httpx.AsyncClient,
) -> None:
    await put(
        control,
        {"key": "18", "value": "something else"},
        {"key": "17", "value": "two fences"},
        {"key": "17", "value": "two fence post"},
        {"key": "9", "value": "two fence posts"},
    )
    found = await missing(control, key="17", value="two fence posts")
    assert [(each["offset"], each["differs"]) for each in found["nearest"]] == [
        (2, ["value"]),
        (1, ["value"]),
        (3, ["key"]),
        (0, ["key", "value"]),
    ]
    assert found["message"] == (
        't has no record with key "17" and value "two fence posts" after 1 ms; nearest: '
        't-0 offset 2: value "two fence post"; t-0 offset 1: value "two fences"; '
        't-0 offset 3: key "9"'
    )


async def test_those_that_are_there_are_counted_where_others_do_not_come(
    control: httpx.AsyncClient,
) -> None:
    await put(control, "v")
    found = await missing(control, value="v", count=2)
    assert found["message"] == 't has 1 of 2 times the record with value "v" after 1 ms'
    assert [each["value"] for each in found["records"]] == ["v"]


async def test_why_there_is_nothing_is_said(control: httpx.AsyncClient) -> None:
    found = await missing(control)
    assert found["message"] == "t has no record after 1 ms; it has no records"
    for broker in (1, 2, 3):
        await ok(control, "POST", f"/v1/brokers/{broker}/kill")
    assert (await missing(control))["message"].endswith("; t-0 has no leader at present")
    await ok(control, "POST", "/v1/brokers/1/start")
    await ok(control, "DELETE", "/v1/topics/t")
    assert (await missing(control))["message"].endswith("; there is no topic 't'")


async def test_a_search_goes_on_behind_records_that_are_deleted_meanwhile(
    server: Server, control: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A portion at a time: the log start moves between two of them."""
    monkeypatch.setattr("fencepost.control.record_reading.PORTION_BYTES", 1)
    await put(control, "a")
    await put(control, "b")
    await put(control, "v")
    replica = server.cluster.brokers[1].replicas["t", 0]
    read = type(replica.log).read

    def read_and_delete(log: Json, offset: int, **given: Json) -> Json:
        if offset == 1:
            replica.delete_records(2)
        return read(log, offset, **given)

    monkeypatch.setattr(type(replica.log), "read", read_and_delete)
    assert await expect(control, value="v", timeout_ms=5000) == [2]


class TestManualClock:
    """A deadline is one of real time, as no other passes."""

    @pytest.fixture
    def clock(self) -> Clock:
        return ManualClock()

    async def test_a_verb_does_not_hang(self, control: httpx.AsyncClient) -> None:
        await ok(control, "POST", f"{PARTITION}/replicas/3/hold")
        body = {"records": ["a"], "timeout_ms": 1}
        assert (await refused(control, "POST", RECORDS, body))[1] == "REQUEST_TIMED_OUT"
        await missing(control, value="a")
