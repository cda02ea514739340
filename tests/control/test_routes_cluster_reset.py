"""Reset: as it was at the start, at once, whatever there was."""

from __future__ import annotations

import asyncio
import weakref

import httpx
import pytest

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.server.journal import Exchange
from fencepost.broker.server.server import Server
from fencepost.control.app import create_app
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.api_versions import ApiVersionsRequest
from fencepost.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from fencepost.storage.log.interface import Log
from tests.harness.control_client import ok
from tests.harness.in_process_server import make_cluster, make_server, sockets
from tests.harness.typed_client import kafka, produce
from tests.harness.wait import eventually


async def test_everything_is_forgotten_but_ports_and_connections(
    server: Server, control: httpx.AsyncClient
) -> None:
    before = await ok(control, "GET", "/v1/cluster")
    made = await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2, 3]]})
    server.cluster.controller.set_broker_configs(None, {"num.partitions": "7"})
    await produce(server, "t", values=[b"a"] * 10)
    async with kafka(server, 1) as client:
        await client.ask("api_versions", 0, ApiVersionsRequest())
        assert await ok(control, "POST", "/v1/reset") == {}
        assert await ok(control, "GET", "/v1/trace") == []
        answer = await client.ask("metadata", 12, MetadataRequest(topics=None))
    assert (answer.topics, len(answer.brokers)) == ((), 3)
    assert await ok(control, "GET", "/v1/topics") == []
    assert all(not broker.replicas for broker in server.cluster.brokers.values())
    after = await ok(control, "GET", "/v1/cluster")
    assert {**after, "clock": 0} == {**before, "clock": 0}
    again = await ok(control, "POST", "/v1/topics", {"name": "t"})
    assert again["topic_id"] != made["topic_id"]
    assert again["partitions"] == 1
    state = await ok(control, "GET", "/v1/topics/t/partitions/0")
    assert (state["high_watermark"], state["leader_epoch"]) == (0, 0)
    assert await produce(server, "t") == 0


async def test_first_topics_are_back_empty() -> None:
    ports = sockets(2)
    first = NewTopic(name="first", assignments=((2, 1),), configs={"retention.ms": "5000"})
    server = make_server(make_cluster(ports, topics=(first,)), ports)
    await server.start()
    transport = httpx.ASGITransport(create_app(server))
    async with httpx.AsyncClient(transport=transport, base_url="http://control") as control:
        await produce(server, "first")
        (before,) = await ok(control, "GET", "/v1/topics")
        await ok(control, "POST", "/v1/topics", {"name": "second"})
        await ok(control, "POST", "/v1/reset")
        (after,) = await ok(control, "GET", "/v1/topics")
        assert after.pop("topic_id") != before.pop("topic_id")
        assert after == before
        state = await ok(control, "GET", "/v1/topics/first/partitions/0")
        assert (state["leader"], state["isr"], state["high_watermark"]) == (2, [2, 1], 0)
    await server.stop()


async def test_topics_come_before_those_that_a_client_would_create(
    server: Server, control: httpx.AsyncClient
) -> None:
    topics = [{"name": "orders", "assignments": [[3, 1, 2]]}, "plain:5"]
    request = MetadataRequest(topics=(MetadataRequestTopic(name="orders"),))
    answered = asyncio.Event()

    async def ask_again_and_again() -> None:
        async with kafka(server, 1) as client:
            await client.ask("api_versions", 0, ApiVersionsRequest())
            while True:
                await client.ask("metadata", 12, request)
                answered.set()

    asking = asyncio.create_task(ask_again_and_again())
    try:
        for _ in range(20):
            answered.clear()
            await answered.wait()
            await ok(control, "POST", "/v1/brokers/3/stop")  # it takes a while to accept again
            assert await ok(control, "POST", "/v1/reset", {"topics": topics}) == {}
            orders, plain = await ok(control, "GET", "/v1/topics")
            assert (orders["partitions"], orders["replication_factor"]) == (1, 3)
            assert (plain["name"], plain["partitions"]) == ("plain", 5)
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def test_a_topic_that_is_refused_leaves_a_cluster_that_serves(
    server: Server, control: httpx.AsyncClient
) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "old"})
    await ok(control, "POST", "/v1/brokers/3/stop")
    answer = await control.post("/v1/reset", json={"topics": ["good:2", "wrong:1:4", "good:3"]})
    assert answer.status_code == 400
    assert answer.json()["error"] == "INVALID_REPLICATION_FACTOR"
    assert answer.json()["message"].startswith("topic wrong: Unable to replicate")
    assert [each["name"] for each in await ok(control, "GET", "/v1/topics")] == ["good"]
    async with kafka(server, 3) as client:
        await client.ask("api_versions", 0, ApiVersionsRequest())


async def test_whoever_waits_is_answered(server: Server, control: httpx.AsyncClient) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2, 3]]})
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    topic = FetchTopic(topic="t", partitions=(asked,))
    request = FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=(topic,))
    async with kafka(server, 1) as client:
        await client.send("fetch", 12, request)
        await eventually(lambda: bool(list(server.journal)))
        await ok(control, "POST", "/v1/reset")
        async with asyncio.timeout(10):
            answer = await client.answer("fetch", 12)
    (partition,) = answer.responses[0].partitions
    assert partition.error_code in (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    )


def logs_of(server: Server) -> list[Log]:
    return [r.log for broker in server.cluster.brokers.values() for r in broker.replicas.values()]


@pytest.mark.parametrize("verb", ["reset", "delete"])
async def test_memory_is_freed_afterwards_bit_by_bit(
    server: Server, control: httpx.AsyncClient, verb: str
) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2, 3]]})
    for _ in range(8):
        await produce(server, "t", values=[b"x" * 900_000])
    logs = logs_of(server)
    # Another topic stays, so that the deletion is of one topic and not of all.
    await ok(control, "POST", "/v1/topics", {"name": "other"})

    def held() -> int:
        """Bytes of batches that can still be read."""
        found = [log.segments()[0] for log in logs]
        assert all(segment.size_bytes > 7_000_000 for segment in found)
        return sum(_readable(log) for log in logs)

    before = held()
    if verb == "reset":
        await server.reset()
    else:
        server.cluster.controller.delete_topics(["t"])
    assert held() == before, "freed while the one who asked waits"
    await eventually(lambda: not held())


class Frame(bytearray):
    """One that can be watched."""


async def test_the_journals_frames_are_freed_afterwards_too(server: Server) -> None:
    frame = Frame(100)
    watched = weakref.ref(frame)
    exchange = Exchange(
        time_ms=0,
        broker_id=1,
        connection_id="c",
        client_id=None,
        api=BY_NAME["api_versions"],
        version=0,
        correlation_id=1,
        frame=frame,
        body_offset=10,
    )
    server.journal.open(exchange)
    del exchange, frame
    await server.reset()
    assert list(server.journal) == []
    assert watched() is not None, "freed while the one who asked waits"
    await eventually(lambda: watched() is None)


def _readable(log: Log) -> int:
    try:
        found = log.read(0, max_bytes=1 << 30, upper_bound=log.log_end_offset, min_one_batch=True)
    except IndexError:
        return 0
    return found.size
