"""kafka-python 3: producer, consumer, groups, admin."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import pytest
from kafka import (
    ConsumerRebalanceListener,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    TopicPartition,
)
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic, OffsetSpec
from kafka.errors import (
    MessageSizeTooLargeError,
    TopicAlreadyExistsError,
)
from kafka.structs import OffsetAndMetadata

from tests.harness import batches
from tests.harness.served_cluster import Cluster, unique
from tests.harness.wait import wait_until

T = 1_700_000_000_000
VALUES = [b"value %d, and more of the same, and more of the same" % i for i in range(300)]
WAIT_S = 30

Record = Any
"""A ConsumerRecord; the library has no types."""


@pytest.fixture(autouse=True)
def _wakeup_sockets() -> Iterator[None]:
    """The library leaves its pair of wake-up sockets to the garbage collector: let it, quietly."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@contextmanager
def producer(cluster: Cluster, **options: object) -> Iterator[Any]:
    made = KafkaProducer(bootstrap_servers=cluster.bootstrap, **options)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def consumer(cluster: Cluster, *topics: str, **options: object) -> Iterator[Any]:
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False, **options}
    made = KafkaConsumer(*topics, bootstrap_servers=cluster.bootstrap, **settings)
    try:
        # It may lead its group before it knows the topic, and then assigns nothing for minutes.
        for topic in topics:
            assert made.partitions_for_topic(topic)
        yield made
    finally:
        made.close(autocommit=False)


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[KafkaAdminClient]:
    made = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    yield made
    made.close()


def send(cluster: Cluster, topic: str, values: list[bytes], **options: object) -> None:
    with producer(cluster, **options) as source:
        futures = [source.send(topic, value, partition=0) for value in values]
        for future in futures:
            future.get(WAIT_S)


def read(source: KafkaConsumer, count: int) -> list[Record]:
    received: list[Record] = []

    def enough() -> bool:
        for records in source.poll(200, max_records=count - len(received)).values():
            received.extend(records)
        return len(received) >= count

    wait_until(f"{count} records", enough)
    return received


# -- records ------------------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_records_come_back_in_order(cluster: Cluster, acks: int | str) -> None:
    topic = cluster.create_topic("kp")
    send(cluster, topic, VALUES, acks=acks, enable_idempotence=False)
    with consumer(cluster, topic) as source:
        records = read(source, 300)
    assert [record.value for record in records] == VALUES
    assert [record.offset for record in records] == list(range(300))


@pytest.mark.parametrize("codec", ["gzip"])
def test_codecs_arrive_compressed(cluster: Cluster, codec: str) -> None:
    topic = cluster.create_topic(f"kp-{codec}")
    send(cluster, topic, VALUES, compression_type=codec, linger_ms=50)
    stored, _ = batches.parse(cluster.stored(topic))
    assert {batch.codec for batch in stored} == {codec}
    with consumer(cluster, topic) as source:
        assert [record.value for record in read(source, 300)] == VALUES


def test_key_headers_and_timestamp(cluster: Cluster) -> None:
    topic = cluster.create_topic("kp")
    headers = [("a", b"1"), ("b", b"")]
    with producer(cluster) as source:
        future = source.send(topic, None, b"k", headers, 0, T)
        assert future.get(WAIT_S).offset == 0
    with consumer(cluster, topic) as reader:
        (record,) = read(reader, 1)
    assert (record.key, record.value, record.timestamp) == (b"k", None, T)
    assert list(record.headers) == headers


def test_idempotent_producer(cluster: Cluster) -> None:
    topic = cluster.create_topic("kp")
    send(cluster, topic, VALUES, enable_idempotence=True)
    stored, _ = batches.parse(cluster.stored(topic))
    assert len({batch.producer_id for batch in stored}) == 1
    assert stored[0].producer_id >= 0
    assert [batch.base_sequence for batch in stored] == [batch.base_offset for batch in stored]


def test_too_large_for_the_topic(cluster: Cluster) -> None:
    topic = cluster.create_topic("kp", configs={"max.message.bytes": "5000"})
    with pytest.raises(MessageSizeTooLargeError):
        send(cluster, topic, [bytes(6000)])


# -- offsets ------------------------------------------------------------------------------------


def test_beginning_end_and_times(cluster: Cluster) -> None:
    topic = cluster.create_topic("kp", configs={"retention.ms": "-1"})
    partition = TopicPartition(topic, 0)
    with producer(cluster) as source:
        for i in range(5):
            source.send(topic, b"v", partition=0, timestamp_ms=T + 1000 * i).get(WAIT_S)
    with consumer(cluster) as reader:
        assert reader.beginning_offsets([partition]) == {partition: 0}
        assert reader.end_offsets([partition]) == {partition: 5}
        found = reader.offsets_for_times({partition: T + 1500})[partition]
        assert (found.offset, found.timestamp) == (2, T + 2000)
        assert reader.offsets_for_times({partition: T + 9000}) == {partition: None}


def test_committed_offsets_and_metadata(cluster: Cluster) -> None:
    topic, group = cluster.create_topic("kp"), unique("group")
    partition = TopicPartition(topic, 0)
    send(cluster, topic, VALUES[:10])
    with consumer(cluster, topic, group_id=group) as reader:
        assert reader.committed(partition) is None
        read(reader, 4)
        reader.commit({partition: OffsetAndMetadata(4, "a note", 0)})
        found = reader.committed(partition, metadata=True)
        assert (found.offset, found.metadata, found.leader_epoch) == (4, "a note", 0)
    with consumer(cluster, topic, group_id=group) as reader:
        assert [record.offset for record in read(reader, 6)] == [4, 5, 6, 7, 8, 9]


# -- groups -------------------------------------------------------------------------------------


class Member(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
    """A group member that is polled by a thread of its own, as one is in a program.

    Polled in turns, for moments, two members can make each other rejoin for ever: this client
    forgets a join that its poll did not live to see complete.
    """

    def __init__(self, source: KafkaConsumer, topic: str) -> None:
        super().__init__()
        self.owned: frozenset[TopicPartition] = frozenset()
        self._source = source
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        # It may lead its group before it knows the topic, and then assigns nothing for minutes.
        assert source.partitions_for_topic(topic)
        source.subscribe([topic], listener=self)

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self.owned = frozenset(assigned)

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self.owned = frozenset()

    def _poll(self) -> None:
        while not self._ended.is_set():
            self._source.poll(2000)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def test_a_second_member_takes_its_share(cluster: Cluster) -> None:
    topic, group = cluster.create_topic("kp", partitions=4), unique("group")
    options = {"group_id": group, "heartbeat_interval_ms": 200}
    with consumer(cluster, **options) as one, Member(one, topic) as first:
        wait_until("all are its own", lambda: len(first.owned) == 4)
        with consumer(cluster, **options) as another, Member(another, topic) as second:

            def shared() -> bool:
                return len(first.owned) == len(second.owned) == 2

            wait_until("they share", shared)
            assert not first.owned & second.owned
        wait_until("all are its own again", lambda: len(first.owned) == 4)


# -- admin --------------------------------------------------------------------------------------


def test_topics(cluster: Cluster, admin: KafkaAdminClient) -> None:
    topic = unique("kp-admin")
    (created,) = admin.create_topics([NewTopic(topic, 2, 3)])["topics"]
    assert (created["error_code"], created["num_partitions"]) == (0, 2)
    wait_until("it is there", lambda: len(cluster.metadata(topic)["Partitions"]) == 2)
    (described,) = admin.describe_topics([topic])
    assert (described["name"], described["topic_id"]) == (topic, created["topic_id"])
    admin.create_partitions({topic: NewPartitions(3)})
    wait_until("it has three", lambda: len(cluster.metadata(topic)["Partitions"]) == 3)
    (again,) = admin.describe_topic_partitions([topic])["topics"]
    assert [each["partition_index"] for each in again["partitions"]] == [0, 1, 2]
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics([NewTopic(topic, 2, 3)])
    (deleted,) = admin.delete_topics([topic])["topics"]
    assert deleted["topic_id"] == created["topic_id"]
    wait_until("it is gone", lambda: cluster.metadata(topic)["ErrorCode"] == 3)


def test_configs(cluster: Cluster, admin: KafkaAdminClient) -> None:
    topic = cluster.create_topic("kp")

    def retention() -> tuple[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        found = admin.describe_configs([resource], config_filter="all")["topic"][topic]
        entry = found["retention.ms"]
        return entry["value"], entry["config_source"]

    assert retention() == ("604800000", "DEFAULT_CONFIG")
    change = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "777"})
    assert admin.alter_configs([change]) == {"topic": {topic: "OK"}}
    wait_until("it is set", lambda: retention() == ("777", "DYNAMIC_TOPIC_CONFIG"))
    assert admin.reset_configs([change]) == {"topic": {topic: "OK"}}
    wait_until("it is unset", lambda: retention() == ("604800000", "DEFAULT_CONFIG"))


def test_cluster(admin: KafkaAdminClient) -> None:
    found = admin.describe_cluster()
    assert sorted(broker["broker_id"] for broker in found["brokers"]) == [1, 2, 3]
    assert found["controller_id"] in (1, 2, 3)


def test_records_offsets_and_producers(cluster: Cluster, admin: KafkaAdminClient) -> None:
    topic = cluster.create_topic("kp")
    partition = TopicPartition(topic, 0)
    send(cluster, topic, VALUES[:10], enable_idempotence=True)
    assert admin.delete_records({partition: 3})[partition]["low_watermark"] == 3
    for spec, offset in ((OffsetSpec.EARLIEST, 3), (OffsetSpec.LATEST, 10)):
        assert admin.list_partition_offsets({partition: spec})[partition].offset == offset
    (producer,) = admin.describe_producers([partition])[partition].active_producers
    assert (producer.last_sequence, producer.producer_epoch) == (9, 0)


def test_log_dirs(cluster: Cluster, admin: KafkaAdminClient) -> None:
    topic = cluster.create_topic("kp", partitions=2)
    send(cluster, topic, VALUES)
    for answer in admin.describe_log_dirs():
        (folder,) = answer["log_dirs"]
        assert folder["error_code"] == 0
        (entry,) = [each for each in folder["topics"] if each["name"] == topic]
        sizes = {each["partition_index"]: each["partition_size"] for each in entry["partitions"]}
        assert sorted(sizes) == [0, 1]
        assert sizes[0] > 300 * len(VALUES[0])
        assert sizes[1] == 0


def test_groups(cluster: Cluster, admin: KafkaAdminClient) -> None:
    topic, group = cluster.create_topic("kp"), unique("group")
    partition = TopicPartition(topic, 0)
    wanted = OffsetAndMetadata(5, "a note", 0)
    admin.alter_group_offsets(group, {partition: wanted})
    assert admin.list_group_offsets({group: [partition]}) == {group: {partition: wanted}}
    (listed,) = [each for each in admin.list_groups() if each["group_id"] == group]
    assert (listed["group_state"], listed["group_type"]) == ("Empty", "classic")
    assert admin.describe_groups([group])[group]["group_state"] == "Empty"
    admin.delete_group_offsets(group, [partition])
    assert admin.list_group_offsets({group: None}) == {group: {}}
    assert admin.delete_groups([group]) == {group: "OK"}
    assert admin.describe_groups([group])[group]["group_state"] == "Dead"
