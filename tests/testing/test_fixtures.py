"""The fixtures and the marker, as a test uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer

from fencepost.protocol.errors import ErrorCode
from fencepost.testing import AsyncCluster, Cluster
from fencepost.verbs.remote import Refused
from tests.harness.wire import Connection, api_key

if TYPE_CHECKING:
    from fencepost.testing.servers import Server

# -- a cluster of the test's own ----------------------------------------------------------------


@pytest.mark.parametrize("turn", [1, 2, 3])
def test_each_test_finds_a_fresh_cluster(fencepost: Cluster, turn: int) -> None:
    assert fencepost.topics() == []
    assert fencepost.trace() == []
    fencepost.create_topic("orders")


def test_tests_with_the_same_options_share_a_process(
    fencepost: Cluster, fencepost_async: AsyncCluster, server: Server
) -> None:
    assert fencepost.bootstrap == fencepost_async.bootstrap == server.serving.bootstrap
    assert fencepost.control == fencepost_async.control == server.serving.control


def test_a_client_works_with_it(fencepost: Cluster) -> None:
    servers = {"bootstrap.servers": fencepost.bootstrap}
    producer = Producer({**servers, "client.id": "checkout", "acks": "all"})
    producer.produce("orders", value="two fence posts")
    assert producer.flush(30) == 0
    consumer = Consumer({**servers, "group.id": "shipping", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    message = consumer.poll(timeout=30)
    consumer.close()
    assert message is not None
    assert message.value() == b"two fence posts"
    (produced,) = fencepost.trace(api="Produce", client_id="checkout")
    assert produced.broker == 1


# -- the marker ---------------------------------------------------------------------------------


@pytest.mark.fencepost(
    brokers=2,
    topics=["orders:3:2", {"name": "payments", "assignments": [[2, 1]]}, "plain"],
    configs={"num.partitions": "4"},
    racks=["east", "west"],
    seed=7,
)
def test_a_marker_says_what_the_cluster_is_like(fencepost: Cluster, server: Server) -> None:
    assert [broker.id for broker in fencepost.cluster().brokers] == [1, 2]
    found = {each.name: (each.partitions, each.replication_factor) for each in fencepost.topics()}
    assert found == {"orders": (3, 2), "payments": (1, 2), "plain": (4, 1)}
    assert fencepost.partition("payments", 0).leader == 2
    assert server.serving.seed == 7


@pytest.mark.fencepost(like_kafka="2.0", api_max={"Metadata": 4})
def test_an_older_kafka(fencepost: Cluster) -> None:
    host, _, port = fencepost.bootstrap.partition(":")
    with Connection((host, int(port))) as connection:
        answer = connection.call("ApiVersions", 0, {})
    highest = {each["ApiKey"]: each["MaxVersion"] for each in answer["ApiKeys"]}
    assert highest[api_key("Fetch")] == 8
    assert highest[api_key("Metadata")] == 4


@pytest.mark.fencepost(dialect="kip-320-draft")
def test_a_dialect(fencepost: Cluster) -> None:
    assert fencepost.cluster().dialect == "kip-320-draft"
    host, _, port = fencepost.bootstrap.partition(":")
    with Connection((host, int(port))) as connection:
        partition = {"PartitionIndex": 0, "Timestamp": -1}
        topics = [{"Name": "t", "Partitions": [partition]}]
        answer = connection.call("ListOffsets", 4, {"ReplicaId": -1, "Topics": topics})
    assert answer["Topics"][0]["Partitions"][0]["ErrorCode"] == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.fencepost(clock="manual")
def test_time_that_a_test_lets_pass(fencepost: Cluster) -> None:
    before = fencepost.cluster().clock
    assert before.mode == "manual"
    assert fencepost.advance_clock(30_000).now_ms == before.now_ms + 30_000


@pytest.mark.fencepost(brokers=3, topics=["orders:1:3"])
class TestNearest:
    def test_a_class_marks_its_tests(self, fencepost: Cluster) -> None:
        assert len(fencepost.partition("orders", 0).isr) == 3

    @pytest.mark.fencepost(topics=["orders:1:1"])
    def test_the_nearest_marker_that_has_an_argument_wins(self, fencepost: Cluster) -> None:
        assert len(fencepost.cluster().brokers) == 3
        assert len(fencepost.partition("orders", 0).isr) == 1


# -- async tests --------------------------------------------------------------------------------


@pytest.mark.fencepost(brokers=3, topics=["orders:1:3"])
async def test_an_async_test(fencepost_async: AsyncCluster) -> None:
    elected = await fencepost_async.elect("orders", 0, leader=3)
    assert elected.leader == 3
    with pytest.raises(Refused, match="UNKNOWN_TOPIC_OR_PARTITION"):
        await fencepost_async.partition("orders", 1)


@pytest.mark.parametrize("turn", [1, 2])
async def test_a_loop_of_each_test(
    fencepost: Cluster, fencepost_async: AsyncCluster, turn: int
) -> None:
    assert await fencepost_async.topics() == []
    fencepost.create_topic("orders")
    (topic,) = await fencepost_async.topics()
    assert topic.name == "orders"


# -- the session's cluster ----------------------------------------------------------------------


def test_the_sessions_cluster_is_never_reset(
    fencepost_session: Cluster,
    fencepost_session_async: AsyncCluster,
    request: pytest.FixtureRequest,
) -> None:
    fencepost_session.create_topic("kept")
    own: Cluster = request.getfixturevalue("fencepost")
    assert own.topics() == []
    assert own.bootstrap != fencepost_session.bootstrap == fencepost_session_async.bootstrap
    assert [topic.name for topic in fencepost_session.topics()] == ["kept"]
    fencepost_session.delete_topic("kept")


# -- waiting ------------------------------------------------------------------------------------


@pytest.mark.fencepost(
    brokers=2,
    topics=[{"name": "orders", "assignments": [[1, 2]]}],
    configs={"replica.lag.time.max.ms": "100"},
)
def test_waiting_for_a_partition(fencepost: Cluster) -> None:
    fencepost.hold("orders", 0, 2)
    producer = Producer({"bootstrap.servers": fencepost.bootstrap, "acks": "1"})
    producer.produce("orders", value="1")
    producer.flush(30)
    seen = fencepost.wait_for_partition("orders", 0, lambda it: it.isr == (1,))
    assert seen.high_watermark == 1
    with pytest.raises(AssertionError, match=r"not within 20 ms; the last state was .*isr=\(1,\)"):
        fencepost.wait_for_partition("orders", 0, lambda it: len(it.isr) == 2, timeout_ms=20)


def test_waiting_for_anything(fencepost: Cluster) -> None:
    answers = iter([0, "", "found"])
    assert fencepost.wait_until(lambda: next(answers)) == "found"
    with pytest.raises(AssertionError, match="not within 20 ms; the last answer was 0"):
        fencepost.wait_until(lambda: 0, timeout_ms=20)


@pytest.mark.fencepost(topics=["orders"])
async def test_waiting_in_an_async_test(fencepost_async: AsyncCluster) -> None:
    assert await fencepost_async.wait_until(fencepost_async.topics)
    seen = await fencepost_async.wait_for_partition("orders", 0, lambda it: it.leader == 1)
    assert seen.leader == 1
    await fencepost_async.reset()
    with pytest.raises(AssertionError, match=r"not within 20 ms; the last answer was \[\]"):
        await fencepost_async.wait_until(fencepost_async.topics, timeout_ms=20)
    await fencepost_async.create_topic("orders")
    with pytest.raises(AssertionError, match="not within 20 ms; the last state was"):
        await fencepost_async.wait_for_partition("orders", 0, lambda _: None, timeout_ms=20)
