"""confluent-kafka (librdkafka): where logs begin and end, and offsets that groups commit."""

from __future__ import annotations

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from tests.harness.confluent import consumer, delivered, read, send
from tests.harness.served_cluster import Cluster, unique

T = 1_700_000_000_000


def timed_topic(cluster: Cluster) -> str:
    """Ten records, a second apart."""
    topic = cluster.create_topic("timed", configs={"retention.ms": "-1"})
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for i in range(10):
        producer.produce(topic, b"%d" % i, partition=0, timestamp=T + 1000 * i)
    assert producer.flush(30) == 0
    return topic


def test_watermarks(cluster: Cluster) -> None:
    topic = cluster.create_topic("watermarks")
    with consumer(cluster) as source:
        assert source.get_watermark_offsets(TopicPartition(topic, 0), 30) == (0, 0)
        delivered(send(cluster, topic, [b"v"] * 7))
        assert source.get_watermark_offsets(TopicPartition(topic, 0), 30) == (0, 7)


def test_offsets_for_times(cluster: Cluster) -> None:
    topic = timed_topic(cluster)
    with consumer(cluster) as source:
        found = {
            when: source.offsets_for_times([TopicPartition(topic, 0, when)], 30)[0].offset
            for when in (0, T, T + 1, T + 4500, T + 9000, T + 9001)
        }
    end = OFFSET_END
    assert found == {0: 0, T: 0, T + 1: 1, T + 4500: 5, T + 9000: 9, T + 9001: end}


def test_seeking(cluster: Cluster) -> None:
    topic = timed_topic(cluster)
    with consumer(cluster) as source:
        source.assign([TopicPartition(topic, 0, 8)])
        assert [message.offset() for message in read(source, 2)] == [8, 9]
        source.seek(TopicPartition(topic, 0, 3))
        assert [message.offset() for message in read(source, 2)] == [3, 4]
        source.seek(TopicPartition(topic, 0, OFFSET_BEGINNING))
        assert [message.offset() for message in read(source, 1)] == [0]


def test_out_of_range_resets_by_policy(cluster: Cluster) -> None:
    topic = timed_topic(cluster)
    with consumer(cluster, auto_offset_reset="earliest") as source:
        source.assign([TopicPartition(topic, 0, 5000)])
        assert [message.offset() for message in read(source, 1)] == [0]
    with consumer(cluster, auto_offset_reset="error") as source:
        source.assign([TopicPartition(topic, 0, 5000)])
        message = source.poll(30)
        assert message is not None
        error = message.error()
        assert error is not None
        assert error.code() == KafkaError._AUTO_OFFSET_RESET


def test_the_end_of_a_partition_is_told(cluster: Cluster) -> None:
    topic = timed_topic(cluster)
    with consumer(cluster, enable_partition_eof="true") as source:
        source.assign([TopicPartition(topic, 0, 10)])
        message = source.poll(30)
        assert message is not None
        error = message.error()
        assert error is not None
        assert error.code() == KafkaError._PARTITION_EOF
        assert message.offset() == 10


def test_every_record_has_its_leader_epoch(cluster: Cluster) -> None:
    topic = timed_topic(cluster)
    with consumer(cluster) as source:
        source.assign([TopicPartition(topic, 0, 0)])
        assert {message.leader_epoch() for message in read(source, 10)} == {0}


# -- committed offsets --------------------------------------------------------------------------


def committed(source: Consumer, topic: str, partition: int = 0) -> TopicPartition:
    (found,) = source.committed([TopicPartition(topic, partition)], 30)
    assert found.error is None
    return found


def test_nothing_committed_is_no_error(cluster: Cluster) -> None:
    topic = cluster.create_topic("committed")
    with consumer(cluster) as source:
        assert committed(source, topic).offset == OFFSET_INVALID


def test_commit_keeps_metadata_and_leader_epoch(cluster: Cluster) -> None:
    topic = timed_topic(cluster)
    group = unique("group")
    with consumer(cluster, group_id=group) as source:
        offset = TopicPartition(topic, 0, 4, "a note", 0)
        (answer,) = source.commit(offsets=[offset], asynchronous=False)
        assert answer.error is None
    with consumer(cluster, group_id=group) as another:
        found = committed(another, topic)
        assert (found.offset, found.metadata, found.leader_epoch) == (4, "a note", 0)


def test_too_much_metadata_is_refused(cluster: Cluster) -> None:
    topic = timed_topic(cluster)
    with consumer(cluster) as source:
        offset = TopicPartition(topic, 0, 4, "x" * 5000)
        with pytest.raises(KafkaException) as refused:
            source.commit(offsets=[offset], asynchronous=False)
        assert refused.value.args[0].code() == KafkaError.OFFSET_METADATA_TOO_LARGE


def test_a_group_resumes_after_what_it_committed(cluster: Cluster) -> None:
    topic = timed_topic(cluster)
    group = unique("group")
    with consumer(cluster, group_id=group) as source:
        source.subscribe([topic])
        messages = read(source, 4)
        source.commit(message=messages[3], asynchronous=False)
    with consumer(cluster, group_id=group) as source:
        source.subscribe([topic])
        assert [message.offset() for message in read(source, 6)] == [4, 5, 6, 7, 8, 9]


def test_auto_commit_on_close(cluster: Cluster) -> None:
    topic = timed_topic(cluster)
    group = unique("group")
    with consumer(cluster, group_id=group, enable_auto_commit="true") as source:
        source.subscribe([topic])
        read(source, 10)
    with consumer(cluster, group_id=group) as source:
        assert committed(source, topic).offset == 10


def test_latest_sees_only_what_comes_after(cluster: Cluster) -> None:
    topic = timed_topic(cluster)
    with consumer(cluster, auto_offset_reset="latest", enable_partition_eof="true") as source:
        source.subscribe([topic])
        message = source.poll(30)
        assert message is not None
        error = message.error()
        assert error is not None
        assert error.code() == KafkaError._PARTITION_EOF
        delivered(send(cluster, topic, [b"new"]))
        assert [message.value() for message in read(source, 1)] == [b"new"]
