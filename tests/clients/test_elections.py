"""Leaders change under clients that are at work: everything arrives, once, in order."""

from __future__ import annotations

import httpx
import pytest
from confluent_kafka import KafkaError, Message, Producer

from tests.conftest import SETTINGS
from tests.harness.confluent import consumer, read, read_partition
from tests.harness.served_cluster import Cluster, unique

OFFSETS = "__consumer_offsets"
ROUNDS = 12
EACH = 200


def partition(cluster: Cluster, topic: str, index: int = 0) -> str:
    if cluster.control is None:
        pytest.skip("the given cluster has no control API")
    return f"{cluster.control}/v1/topics/{topic}/partitions/{index}"


def elect(cluster: Cluster, topic: str, leader: int, index: int = 0) -> None:
    answer = httpx.post(f"{partition(cluster, topic, index)}/elect", json={"leader": leader})
    assert answer.status_code == 200, answer.text


def test_an_idempotent_producer_outlives_elections(cluster: Cluster) -> None:
    topic = cluster.create_topic("elections", replication_factor=3)
    acknowledged: list[int] = []

    def answered(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        acknowledged.append(int(message.value() or b""))

    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "acks": "all", "enable.idempotence": True}
    )
    for number in range(ROUNDS * EACH):
        producer.produce(topic, b"%d" % number, partition=0, on_delivery=answered)
        producer.poll(0)
        if number % EACH == EACH // 2:
            elect(cluster, topic, 1 + number // EACH % 3)
    assert producer.flush(60) == 0
    assert acknowledged == list(range(ROUNDS * EACH))
    found = read_partition(cluster, topic, ROUNDS * EACH)
    assert [int(message.value() or b"") for message in found] == acknowledged


def test_a_group_goes_on_where_it_was_when_its_coordinator_moves(cluster: Cluster) -> None:
    topic, group = cluster.create_topic("moving", replication_factor=3), unique("moving")
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(20):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(30) == 0
    with consumer(cluster, group_id=group, auto_offset_reset="earliest") as first:
        first.subscribe([topic])
        assert len(read(first, 20)) == 20
        first.commit(asynchronous=False)
    for index in range(int(SETTINGS["offsets.topic.num.partitions"])):
        state = httpx.get(partition(cluster, OFFSETS, index)).json()
        follower = next(broker for broker in state["isr"] if broker != state["leader"])
        elect(cluster, OFFSETS, follower, index)
    producer.produce(topic, b"20", partition=0)
    assert producer.flush(30) == 0
    with consumer(cluster, group_id=group, auto_offset_reset="earliest") as second:
        second.subscribe([topic])
        assert [message.value() for message in read(second, 1)] == [b"20"]
