"""confluent-kafka (librdkafka): producing, and what a consumer then reads."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)

from tests.harness import batches
from tests.harness.confluent import consumer, delivered, read, read_partition, send
from tests.harness.served_cluster import Cluster, unique

VALUES = [b"value %d, and more of the same, and more of the same" % i for i in range(500)]
T = 1_700_000_000_000


def values(messages: list[Message]) -> list[bytes | None]:
    return [message.value() for message in messages]


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_records_come_back_in_order(cluster: Cluster, acks: str | int) -> None:
    topic = cluster.create_topic("records")
    answers = send(cluster, topic, VALUES, acks=acks)
    if acks != 0:  # which learns no offsets
        assert delivered(answers) == list(range(500))
    assert values(read_partition(cluster, topic, 500)) == VALUES


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_codecs_arrive_compressed(cluster: Cluster, codec: str) -> None:
    topic = cluster.create_topic(f"codec-{codec}")
    delivered(send(cluster, topic, VALUES, compression_type=codec, linger_ms=100))
    stored, _ = batches.parse(cluster.stored(topic))
    assert {batch.codec for batch in stored} == {codec}
    assert values(read_partition(cluster, topic, 500)) == VALUES


def test_keys_headers_and_tombstones(cluster: Cluster) -> None:
    topic = cluster.create_topic("whole")
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    headers: list[tuple[str, str | bytes | None]] = [("a", b"1"), ("a", b"2"), ("none", None)]
    producer.produce(topic, b"v", b"k", partition=0, headers=headers, timestamp=T)
    producer.produce(topic, None, b"k", partition=0)
    assert producer.flush(30) == 0
    first, second = read_partition(cluster, topic, 2)
    assert (first.key(), first.value(), first.headers()) == (b"k", b"v", headers)
    assert first.timestamp() == (TIMESTAMP_CREATE_TIME, T)
    assert (second.key(), second.value()) == (b"k", None)


def test_append_time_is_the_brokers(cluster: Cluster) -> None:
    configs = {"message.timestamp.type": "LogAppendTime"}
    topic = cluster.create_topic("append-time", configs=configs)
    before = int(time.time() * 1000)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    producer.produce(topic, b"v", timestamp=T)
    assert producer.flush(30) == 0
    (message,) = read_partition(cluster, topic, 1)
    kind, when = message.timestamp()
    assert kind == TIMESTAMP_LOG_APPEND_TIME
    assert before - 1000 <= when <= time.time() * 1000 + 1000


def test_idempotent_batches_are_numbered_without_a_gap(cluster: Cluster) -> None:
    topic = cluster.create_topic("idempotent")
    answers = send(cluster, topic, VALUES, enable_idempotence="true", batch_num_messages=100)
    assert delivered(answers) == list(range(500))
    stored, _ = batches.parse(cluster.stored(topic))
    assert len({batch.producer_id for batch in stored}) == 1
    assert stored[0].producer_id >= 0
    assert [batch.base_sequence for batch in stored] == [batch.base_offset for batch in stored]


def test_two_idempotent_producers_have_ids_of_their_own(cluster: Cluster) -> None:
    topic = cluster.create_topic("idempotent")
    for _ in range(2):
        delivered(send(cluster, topic, [b"v"], enable_idempotence="true"))
    stored, _ = batches.parse(cluster.stored(topic))
    assert len({batch.producer_id for batch in stored}) == 2


def test_a_megabyte_fits(cluster: Cluster) -> None:
    topic = cluster.create_topic("large")
    value = bytes(1_000_000)
    delivered(send(cluster, topic, [value], message_max_bytes=2_000_000))
    assert values(read_partition(cluster, topic, 1)) == [value]


def test_more_than_max_message_bytes_does_not(cluster: Cluster) -> None:
    topic = cluster.create_topic("large", configs={"max.message.bytes": "5000"})
    (refused,) = send(cluster, topic, [bytes(6000)])
    error = refused.error()
    assert error is not None
    assert error.code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert delivered(send(cluster, topic, [bytes(4000)])) == [0]


def test_a_message_larger_than_the_fetch_still_comes(cluster: Cluster) -> None:
    topic = cluster.create_topic("large")
    value = bytes(200_000)
    delivered(send(cluster, topic, [value, b"next"], batch_num_messages=1))
    options = {"fetch_message_max_bytes": 1000, "fetch_max_bytes": 1_000_000}
    with consumer(cluster, **options) as source:
        source.assign([TopicPartition(topic, 0, 0)])
        assert values(read(source, 2)) == [value, b"next"]


def test_an_unknown_topic_is_made_on_the_way(cluster: Cluster) -> None:
    topic = unique("auto")
    delivered(send(cluster, topic, [b"v"]))
    assert values(read_partition(cluster, topic, 1)) == [b"v"]


def test_an_illegal_topic_is_not(cluster: Cluster) -> None:
    (refused,) = send(cluster, "no such topic", [b"v"])
    error = refused.error()
    assert error is not None
    assert error.code() == KafkaError.TOPIC_EXCEPTION


def test_a_compacted_topic_wants_keys(cluster: Cluster) -> None:
    topic = cluster.create_topic("compacted", configs={"cleanup.policy": "compact"})
    (refused,) = send(cluster, topic, [b"v"])
    error = refused.error()
    assert error is not None
    assert error.code() == KafkaError.INVALID_RECORD


def test_many_partitions_at_once(cluster: Cluster) -> None:
    topic = cluster.create_topic("wide", partitions=12)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for i in range(6000):
        producer.produce(topic, b"%d" % i, b"key %d" % (i % 100))
    assert producer.flush(30) == 0
    last: dict[bytes | None, int] = {}
    with consumer(cluster) as source:
        source.subscribe([topic])
        messages = read(source, 6000)
    assert {int(message.value() or b"-1") for message in messages} == set(range(6000))
    for message in messages:
        number = int(message.value() or b"-1")
        assert last.get(message.key(), -1) < number
        last[message.key()] = number
