"""The journal, decoded: what a test asserts on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from fencepost.control.routes_journal import read_journal
from fencepost.protocol.apis import APIS
from fencepost.protocol.lookup import find_api
from fencepost.protocol.messages.api_versions import ApiVersionsRequest
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from fencepost.verbs.bodies import TraceQuery
from tests.control.traces import fetch, replicated, topic, trace
from tests.harness.control_client import ok, refused
from tests.harness.in_process_server import asked_by_clients
from tests.harness.typed_client import kafka, produce
from tests.harness.typed_requests import list_offsets_request
from tests.harness.wait import eventually

if TYPE_CHECKING:
    import httpx

    from fencepost.broker.server.server import Server


async def test_an_exchange_has_just_the_fields_of_its_version(
    server: Server, control: httpx.AsyncClient
) -> None:
    await topic(control, "t")
    async with kafka(server, 1, "me") as client:
        for version in (1, 4):
            await client.ask("list_offsets", version, list_offsets_request("t"))
    old, new = await trace(control)
    assert old["request"] == {
        "replica_id": -1,
        "topics": [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -1}]}],
    }
    answer = {"partition_index": 0, "error_code": 0, "timestamp": -1, "offset": 0}
    assert old["response"] == {"topics": [{"name": "t", "partitions": [answer]}]}
    assert new["request"]["isolation_level"] == 0
    assert new["request"]["topics"][0]["partitions"][0]["current_leader_epoch"] == -1
    assert new["response"] == {
        "throttle_time_ms": 0,
        "topics": [{"name": "t", "partitions": [{**answer, "leader_epoch": 0}]}],
    }
    assert {k: new[k] for k in ("broker", "client_id", "api", "version", "correlation_id")} == {
        "broker": 1,
        "client_id": "me",
        "api": "ListOffsets",
        "version": 4,
        "correlation_id": 2,
    }
    assert new["number"] == old["number"] + 1
    assert new["time_ms"] <= new["answered_ms"] <= server.clock.wall_ms()
    assert str(server.cluster.options.addresses[0].port) in new["connection"]


async def test_ids_are_text_and_absent_ones_are_null(
    server: Server, control: httpx.AsyncClient
) -> None:
    topic_id = await topic(control, "t")
    async with kafka(server, 1) as client:
        for asked in (
            MetadataRequestTopic(name="t"),
            MetadataRequestTopic(name=None, topic_id=topic_id),
        ):
            await client.ask("metadata", 12, MetadataRequest(topics=(asked,)))
    by_name, by_id = await trace(control)
    assert by_name["request"]["topics"] == [{"topic_id": None, "name": "t"}]
    assert by_id["request"]["topics"] == [{"topic_id": str(topic_id), "name": None}]
    for exchange in (by_name, by_id):
        assert exchange["response"]["topics"][0]["topic_id"] == str(topic_id)


async def test_records_are_summarised(server: Server, control: httpx.AsyncClient) -> None:
    topic_id = await topic(control, "t")
    await produce(server, "t", values=[b"x" * 50_000] * 3)
    await produce(server, "t", values=[b"y"] * 2, codec=1)
    async with kafka(server, 1) as client:
        await client.ask("fetch", 13, fetch(topic_id))
    answer = await control.get("/v1/trace")
    first, second, fetched = answer.json()
    partition = fetched["response"]["responses"][0]["partitions"][0]
    batches = partition["records"]["batches"]
    short = [
        {k: batch[k] for k in ("base_offset", "last_offset", "count", "codec", "epoch")}
        for batch in batches
    ]
    assert short == [
        {"base_offset": 0, "last_offset": 2, "count": 3, "codec": "none", "epoch": 0},
        {"base_offset": 3, "last_offset": 4, "count": 2, "codec": "gzip", "epoch": 0},
    ]
    assert sum(batch["bytes"] for batch in batches) == partition["records"]["bytes"] > 150_000
    for exchange, batch in zip((first, second), batches, strict=True):
        data = exchange["request"]["topic_data"][0]["partition_data"][0]["records"]
        assert data == {"bytes": batch["bytes"], "batches": [batch]}
    assert len(answer.content) < 10_000


async def test_an_answer_that_is_still_to_come_is_null(
    server: Server, control: httpx.AsyncClient
) -> None:
    topic_id = await topic(control, "t")
    async with kafka(server, 1) as waiting, kafka(server, 1) as other:
        await waiting.send("fetch", 13, fetch(topic_id, max_wait_ms=30_000))
        await other.ask("api_versions", 0, ApiVersionsRequest())
        (found,) = await trace(control, api="Fetch")
        assert (found["response"], found["answered_ms"]) == (None, None)
        await produce(server, "t")
        await waiting.answer("fetch", 13)
    (found,) = await trace(control, api="Fetch")
    assert found["response"]["error_code"] == 0
    assert found["answered_ms"] >= found["time_ms"]


async def test_acks_0_is_answered_by_nothing(server: Server, control: httpx.AsyncClient) -> None:
    await topic(control, "t")
    data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=0),))
    async with kafka(server, 1) as client:
        await client.send("produce", 9, ProduceRequest(acks=0, topic_data=(data,)))
        with pytest.raises(EOFError):  # without records it is an error, and that closes
            await client.answer("produce", 9)
    found = await trace(control, api="produce")
    assert [exchange["response"] for exchange in found] == [None]
    assert found[0]["request"]["topic_data"][0]["partition_data"] == [{"index": 0, "records": None}]


async def test_filters_by_api_client_and_number(server: Server, control: httpx.AsyncClient) -> None:
    await topic(control, "t")
    for client_id in ("a", "b", None):
        async with kafka(server, 1, client_id) as client:
            await client.ask("api_versions", 3, _software())
            await client.ask("list_offsets", 5, list_offsets_request("t"))
    everything = await trace(control)
    assert [x["api"] for x in everything] == ["ApiVersions", "ListOffsets"] * 3
    for name in ("ListOffsets", "list_offsets", "LISTOFFSETS", "2"):
        assert await trace(control, api=name) == everything[1::2]
    assert await trace(control, client_id="b") == everything[2:4]
    assert await trace(control, client_id="b", api=2) == everything[3:4]
    assert await trace(control, client_id="c") == []
    number = everything[2]["number"]
    assert await trace(control, since=number) == everything[3:]
    assert await trace(control, since=everything[-1]["number"]) == []
    assert await trace(control, limit=2) == everything[-2:]
    assert await trace(control, limit=1, api=18) == everything[4:5]


async def test_filter_by_topic(server: Server, control: httpx.AsyncClient) -> None:
    ids = {name: await topic(control, name) for name in ("t", "tt")}
    # A topic of the name "t", in what is not about it at all.
    async with kafka(server, 1, "t") as client:
        await client.ask("api_versions", 3, _software("t"))
        await client.ask("list_offsets", 5, list_offsets_request("tt"))
        await produce(server, "tt", values=[b"t"])
        await client.ask("list_offsets", 5, list_offsets_request("t"))
        await client.ask("fetch", 13, fetch(ids["t"]))
        await client.ask("fetch", 13, fetch(ids["tt"]))
        await client.ask("metadata", 12, MetadataRequest(topics=None))
        await client.ask("list_offsets", 5, list_offsets_request("gone"))
    everything = await trace(control)
    assert len(everything) == 8
    about_t = [everything[i] for i in (3, 4, 6)]
    assert await trace(control, topic="t") == about_t
    assert await trace(control, topic="tt") == [everything[i] for i in (1, 2, 5, 6)]
    assert await trace(control, topic="gone") == everything[7:]
    assert await trace(control, topic="nothing") == []
    assert await trace(control, topic="t", limit=2) == about_t[1:]
    assert await trace(control, topic="t", api="fetch") == about_t[1:2]


def _software(name: str = "test") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version="1")


async def test_the_loop_serves_others_while_a_long_journal_is_read(
    server: Server, control: httpx.AsyncClient
) -> None:
    await topic(control, "t")
    async with kafka(server, 1) as client:
        for _ in range(300):
            await client.ask("list_offsets", 5, list_offsets_request("t"))
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        counting = asyncio.ensure_future(count())
        found = await read_journal(server.journal, server.cluster, TraceQuery(limit=300))
        counting.cancel()
    assert len(found) == 300
    assert turns > 30


def test_every_api_is_found_by_its_key_and_its_name() -> None:
    for api in APIS:
        assert {find_api(x) for x in (str(api.key), api.name, api.title)} == {api}


async def test_it_tells_what_was_asked_after_an_answer(
    server: Server, control: httpx.AsyncClient
) -> None:
    topic_id = await topic(control, "t")
    async with kafka(server, 1, "waiting") as waiting, kafka(server, 1, "other") as other:
        await waiting.send("fetch", 13, fetch(topic_id, max_wait_ms=60_000))
        await eventually(lambda: bool(asked_by_clients(server)))
        await other.ask("list_offsets", 1, list_offsets_request("t"))
        await produce(server, "t")
        await waiting.answer("fetch", 13)
        await other.ask("list_offsets", 1, list_offsets_request("t"))
    fetched, first, _, last = sorted(await trace(control), key=lambda each: each["number"])
    assert fetched["number"] < first["number"] <= first["newest"] < fetched["newest"]
    assert fetched["newest"] < last["number"], "it was asked when the fetch had its answer"
    assert fetched["topic_names"] == {str(topic_id): "t"}
    assert last["topic_names"] == {}


# -- between brokers ------------------------------------------------------------------------------


async def test_requests_between_brokers_are_shown_when_they_are_wanted(
    server: Server, control: httpx.AsyncClient
) -> None:
    await replicated(control)
    await produce(server, "t", values=[b"a", b"b"])
    (produced,) = await trace(control)
    assert produced["api"] == "Produce"
    brought = [
        each
        for each in await trace(control, source="brokers", since=produced["number"])
        if each["response"]["responses"][0]["partitions"][0]["records"]["batches"]
    ]
    (fetched,) = brought
    for name, value in {
        "api": "Fetch",
        "broker": 1,
        "client_id": "broker-2-fetcher-0",
        "connection": "broker-2",
        "correlation_id": 0,
    }.items():
        assert fetched[name] == value
    assert fetched["request"]["replica_state"]["replica_id"] == 2
    (batch,) = fetched["response"]["responses"][0]["partitions"][0]["records"]["batches"]
    assert (batch["base_offset"], batch["count"]) == (0, 2)
    assert fetched["time_ms"] <= fetched["answered_ms"]
    assert fetched["elapsed_us"] >= 0
    assert await trace(control, client_id="broker-2-fetcher-0", limit=1) != []
    assert await trace(control, client_id="broker-2-fetcher-0", source="clients") == []
    everything = await trace(control, source="all")
    assert {each["client_id"] for each in everything} >= {"tester", "broker-2-fetcher-0"}
    numbers = [each["number"] for each in everything]
    assert numbers == sorted(set(numbers))


async def test_a_step_is_one_request_in_the_journal(
    server: Server, control: httpx.AsyncClient
) -> None:
    await replicated(control)
    await produce(server, "t")
    before = (await trace(control, source="all"))[-1]["number"]
    await ok(control, "POST", "/v1/topics/t/partitions/0/replicas/3/step")
    (step,) = await trace(control, source="brokers", topic="t", since=before)
    assert (step["client_id"], step["broker"]) == ("broker-3-fetcher-0", 1)


async def test_what_does_not_arrive_is_not_in_the_journal(
    server: Server, control: httpx.AsyncClient
) -> None:
    await replicated(control)
    await ok(control, "POST", "/v1/brokers/3/isolate", {"from": [1]})
    before = (await trace(control, source="all"))[-1]["number"]
    await ok(control, "POST", "/v1/topics/t/partitions/0/replicas/3/step")
    assert await trace(control, source="all", since=before) == []


async def test_filters_by_broker_and_error(server: Server, control: httpx.AsyncClient) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1]]})
    for broker in (1, 2):
        async with kafka(server, broker) as client:
            await client.ask("list_offsets", 5, list_offsets_request("t"))
    led, refused_by_2 = await trace(control)
    assert await trace(control, broker=1) == [led]
    assert await trace(control, broker=2) == [refused_by_2]
    for error in ("NOT_LEADER_OR_FOLLOWER", "not_leader_or_follower", 6):
        assert await trace(control, error=error) == [refused_by_2]
    assert await trace(control, error="FENCED_LEADER_EPOCH") == []


async def test_errors_are_found_also_in_answers_that_were_kept(
    server: Server, control: httpx.AsyncClient
) -> None:
    asked = MetadataRequest(
        topics=(MetadataRequestTopic(name="gone"),), allow_auto_topic_creation=False
    )
    async with kafka(server, 1) as client:
        for _ in range(2):
            await client.ask("metadata", 9, asked)
    assert len(await trace(control, error="UNKNOWN_TOPIC_OR_PARTITION")) == 2


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("error=NOT_LEADER", "error: Kafka has no 'NOT_LEADER'"),
        ("error=FENCED_LEADER_EPOC", "did you mean FENCED_LEADER_EPOCH?"),
        ("error=40000", "codes go from -32768 to 32767"),
        ("api=Fetsch", "did you mean Fetch?"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/trace", "/v1/trace/wait"])
async def test_what_there_is_not_is_refused(
    control: httpx.AsyncClient, path: str, query: str, problem: str
) -> None:
    status, code, message = await refused(control, "GET", f"{path}?{query}")
    assert (status, code) == (400, "INVALID_REQUEST")
    assert problem in message
