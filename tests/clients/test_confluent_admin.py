"""confluent-kafka (librdkafka): everything of its AdminClient that needs no security."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

import pytest
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.harness.confluent import WAIT_S, consumer, delivered, poll_until, read, send
from tests.harness.served_cluster import Cluster, unique
from tests.harness.wait import wait_until

K = TypeVar("K")
V = TypeVar("V")


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[AdminClient]:
    made = AdminClient({"bootstrap.servers": cluster.bootstrap})
    yield made
    made.poll(0)


def only(futures: Mapping[K, Future[V]]) -> V:
    """The one answer of a call for one thing."""
    (future,) = futures.values()
    return future.result(WAIT_S)


def refusal(futures: Mapping[K, Future[V]]) -> int:
    """The code that the one thing was refused with."""
    with pytest.raises(KafkaException) as refused:
        only(futures)
    error: KafkaError = refused.value.args[0]
    return error.code()


# -- topics -------------------------------------------------------------------------------------


def test_create_and_delete_topics(admin: AdminClient) -> None:
    topic = unique("created")
    assert only(admin.create_topics([NewTopic(topic, 3, 2)])) is None

    def described() -> bool:
        found = admin.list_topics(topic, 10).topics[topic]
        return found.error is None and len(found.partitions) == 3

    wait_until("it is listed", described)
    assert only(admin.delete_topics([topic])) is None
    wait_until("it is gone", lambda: topic not in admin.list_topics(timeout=10).topics)


def test_create_as_assigned_and_configured(admin: AdminClient) -> None:
    topic = unique("assigned")
    new = NewTopic(
        topic,
        num_partitions=2,
        replica_assignment=[[3, 1], [2, 3]],
        config={"retention.ms": "12345", "cleanup.policy": "compact,delete"},
    )
    only(admin.create_topics([new]))

    def replicas() -> list[list[int]]:
        found = admin.list_topics(topic, 10).topics[topic].partitions
        return [found[i].replicas for i in sorted(found)]

    wait_until("it is listed", lambda: replicas() == [[3, 1], [2, 3]])
    entries = only(admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))
    assert entries["retention.ms"].value == "12345"
    assert entries["cleanup.policy"].value == "compact,delete"


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (NewTopic("no such name", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("x" * 250, 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("few", 1, 7), KafkaError.INVALID_REPLICATION_FACTOR),
        (NewTopic("few", 0, 1), KafkaError.INVALID_PARTITIONS),
        (NewTopic("few", 1, 1, config={"no.such": "1"}), KafkaError.INVALID_CONFIG),
        (NewTopic("few", 1, 1, config={"retention.ms": "x"}), KafkaError.INVALID_CONFIG),
        (NewTopic("few", 1, replica_assignment=[[1, 1]]), KafkaError.INVALID_REPLICA_ASSIGNMENT),
        (
            NewTopic("few", 2, replica_assignment=[[1, 2], [3]]),
            KafkaError.INVALID_REPLICA_ASSIGNMENT,
        ),
        (NewTopic("few", 1, replica_assignment=[[9]]), KafkaError.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_topics_that_cannot_be(admin: AdminClient, new: NewTopic, code: int) -> None:
    assert refusal(admin.create_topics([new])) == code


def test_a_topic_twice(cluster: Cluster, admin: AdminClient) -> None:
    topic = cluster.create_topic("twice")
    code = refusal(admin.create_topics([NewTopic(topic, 1, 1)]))
    assert code == KafkaError.TOPIC_ALREADY_EXISTS


def test_validate_only_creates_nothing(admin: AdminClient) -> None:
    topic = unique("validated")
    only(admin.create_topics([NewTopic(topic, 1, 1)], validate_only=True))
    assert topic not in admin.list_topics(timeout=10).topics


def test_delete_what_is_not_there(admin: AdminClient) -> None:
    code = refusal(admin.delete_topics([unique("missing")]))
    assert code == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_topic_that_comes_again_is_another(cluster: Cluster, admin: AdminClient) -> None:
    topic = cluster.create_topic("again")
    delivered(send(cluster, topic, [b"old"]))
    before = only(admin.describe_topics(TopicCollection([topic]))).topic_id
    only(admin.delete_topics([topic]))

    def created() -> bool:
        (future,) = admin.create_topics([NewTopic(topic, 1, 1)]).values()
        error = future.exception(WAIT_S)
        return error is None

    wait_until("it is created again", created)
    wait_until("it is served", lambda: cluster.metadata(topic)["ErrorCode"] == 0)
    assert str(only(admin.describe_topics(TopicCollection([topic]))).topic_id) != str(before)
    wait_until("it is empty", lambda: cluster.end_offset(topic) == 0)


def test_create_partitions(cluster: Cluster, admin: AdminClient) -> None:
    topic = cluster.create_topic("wider", partitions=2)
    assert only(admin.create_partitions([NewPartitions(topic, 5)])) is None
    wait_until("there are five", lambda: len(cluster.metadata(topic)["Partitions"]) == 5)
    for fewer in (5, 3):
        code = refusal(admin.create_partitions([NewPartitions(topic, fewer)]))
        assert code == KafkaError.INVALID_PARTITIONS
    code = refusal(admin.create_partitions([NewPartitions(unique("missing"), 5)]))
    assert code == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_describe_topics(cluster: Cluster, admin: AdminClient) -> None:
    topic = cluster.create_topic("described", partitions=2)
    found = only(admin.describe_topics(TopicCollection([topic])))
    assert (found.name, found.is_internal, len(found.partitions)) == (topic, False, 2)
    assert found.topic_id is not None
    for partition in found.partitions:
        assert partition.leader is not None
        assert sorted(node.id for node in partition.replicas) == [1, 2, 3]
        assert sorted(node.id for node in partition.isr) == [1, 2, 3]
    code = refusal(admin.describe_topics(TopicCollection([unique("missing")])))
    assert code == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_delete_records(cluster: Cluster, admin: AdminClient) -> None:
    topic = cluster.create_topic("deleted")
    delivered(send(cluster, topic, [b"v"] * 10))
    assert only(admin.delete_records([TopicPartition(topic, 0, 4)])).low_watermark == 4
    with consumer(cluster) as source:
        assert source.get_watermark_offsets(TopicPartition(topic, 0), 30) == (4, 10)
        source.assign([TopicPartition(topic, 0, 0)])
        assert [message.offset() for message in read(source, 6)] == [4, 5, 6, 7, 8, 9]
    code = refusal(admin.delete_records([TopicPartition(topic, 0, 11)]))
    assert code == KafkaError.OFFSET_OUT_OF_RANGE


def test_list_offsets(cluster: Cluster, admin: AdminClient) -> None:
    topic = cluster.create_topic("offsets")
    delivered(send(cluster, topic, [b"v"] * 10))
    only(admin.delete_records([TopicPartition(topic, 0, 4)]))

    def asked(spec: OffsetSpec, isolation: IsolationLevel) -> int:
        request = {TopicPartition(topic, 0): spec}
        return int(only(admin.list_offsets(request, isolation_level=isolation)).offset)

    for isolation in (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED):
        assert asked(OffsetSpec.earliest(), isolation) == 4
        assert asked(OffsetSpec.latest(), isolation) == 10
        assert asked(OffsetSpec.max_timestamp(), isolation) in range(10)
        assert asked(OffsetSpec.for_timestamp(0), isolation) == 4


# -- the cluster and its configs ----------------------------------------------------------------


def test_describe_cluster(admin: AdminClient) -> None:
    found = admin.describe_cluster().result(WAIT_S)
    assert sorted(node.id for node in found.nodes) == [1, 2, 3]
    assert found.controller.id in (1, 2, 3)
    assert found.cluster_id


def configs(admin: AdminClient, resource: ConfigResource) -> Mapping[str, ConfigEntry]:
    return only(admin.describe_configs([resource]))


def source(entry: ConfigEntry) -> ConfigSource:
    return ConfigSource(entry.source)


def test_configs_have_values_sources_and_kinds(cluster: Cluster, admin: AdminClient) -> None:
    topic = cluster.create_topic("configured", configs={"segment.bytes": "2000000"})
    found = configs(admin, ConfigResource(ResourceType.TOPIC, topic))
    assert found["segment.bytes"].value == "2000000"
    assert source(found["segment.bytes"]) is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert found["segment.bytes"].is_default is False
    assert found["max.message.bytes"].value == "1048588"
    assert found["max.message.bytes"].is_default is True
    assert len(found) >= 25


def test_broker_configs(admin: AdminClient) -> None:
    found = configs(admin, ConfigResource(ResourceType.BROKER, "1"))
    # Kafka 4.3's own names for some settings of every broker.
    assert found["num.partitions"].value is not None
    assert found["log.retention.hours"].value == "168"
    assert "127.0.0.1" in (found["advertised.listeners"].value or "")
    assert source(found["advertised.listeners"]) is ConfigSource.STATIC_BROKER_CONFIG
    assert len(found) >= 50


def test_incremental_changes(cluster: Cluster, admin: AdminClient) -> None:
    topic = cluster.create_topic("changed", configs={"segment.bytes": "2000000"})

    def change(name: str, value: str | None, operation: AlterConfigOpType) -> ConfigResource:
        entry = ConfigEntry(name, value, incremental_operation=operation)
        return ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])

    def has(name: str, value: str) -> bool:
        found = configs(admin, ConfigResource(ResourceType.TOPIC, topic))
        return bool(found[name].value == value)

    for name, operand, operation, expected in (
        ("retention.ms", "777", AlterConfigOpType.SET, "777"),
        ("cleanup.policy", "compact", AlterConfigOpType.APPEND, "delete,compact"),
        ("cleanup.policy", "delete", AlterConfigOpType.SUBTRACT, "compact"),
        ("retention.ms", None, AlterConfigOpType.DELETE, "604800000"),
    ):
        assert only(admin.incremental_alter_configs([change(name, operand, operation)])) is None
        reached = partial(has, name, expected)
        wait_until(f"{name} is {expected}", reached)
    assert has("segment.bytes", "2000000")


@pytest.mark.parametrize(
    ("name", "value"),
    [("no.such.config", "1"), ("retention.ms", "soon"), ("min.insync.replicas", "0")],
)
def test_changes_that_cannot_be(
    cluster: Cluster, admin: AdminClient, name: str, value: str
) -> None:
    topic = cluster.create_topic("unchanged")
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    assert refusal(admin.incremental_alter_configs([resource])) == KafkaError.INVALID_CONFIG


def test_a_full_alter_replaces(cluster: Cluster, admin: AdminClient) -> None:
    topic = cluster.create_topic("altered", configs={"segment.bytes": "2000000"})
    resource = ConfigResource(ResourceType.TOPIC, topic, set_config={"retention.ms": "777"})
    with pytest.warns(DeprecationWarning, match="incremental"):
        futures = admin.alter_configs([resource])
    assert only(futures) is None

    def replaced() -> bool:
        found = configs(admin, ConfigResource(ResourceType.TOPIC, topic))
        return found["retention.ms"].value == "777" and found["segment.bytes"].is_default

    wait_until("the new set is all there is", replaced)


def test_a_changed_limit_is_enforced(cluster: Cluster, admin: AdminClient) -> None:
    topic = cluster.create_topic("limited")
    delivered(send(cluster, topic, [bytes(6000)]))
    entry = ConfigEntry("max.message.bytes", "5000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    only(admin.incremental_alter_configs([resource]))

    def refused() -> bool:
        (answer,) = send(cluster, topic, [bytes(6000)])
        error = answer.error()
        return error is not None and error.code() == KafkaError.MSG_SIZE_TOO_LARGE

    wait_until("it is enforced", refused)


# -- groups -------------------------------------------------------------------------------------


@pytest.fixture
def idle_group(cluster: Cluster) -> tuple[str, str]:
    """A topic of ten records and a group without members that has committed 6."""
    topic, group = cluster.create_topic("group"), unique("group")
    delivered(send(cluster, topic, [b"v"] * 10))
    with consumer(cluster, group_id=group) as source:
        source.subscribe([topic])
        messages = read(source, 6)
        source.commit(message=messages[5], asynchronous=False)
    return topic, group


def test_list_and_describe_groups(cluster: Cluster, admin: AdminClient) -> None:
    topic, group = cluster.create_topic("group", partitions=2), unique("group")
    with consumer(cluster, group_id=group, client_id="describer") as source:
        source.subscribe([topic])
        poll_until("it has both", [source], lambda: len(source.assignment()) == 2)
        listed = admin.list_consumer_groups().result(WAIT_S).valid
        (entry,) = [each for each in listed if each.group_id == group]
        assert (entry.state, entry.is_simple_consumer_group) == (ConsumerGroupState.STABLE, False)
        found = only(admin.describe_consumer_groups([group]))
        assert (found.state, found.partition_assignor) == (ConsumerGroupState.STABLE, "range")
        assert found.coordinator.id in (1, 2, 3)
        (one,) = found.members
        assert one.client_id == "describer"
        assert one.host in ("/127.0.0.1", "127.0.0.1")
        places = [(each.topic, each.partition) for each in one.assignment.topic_partitions]
        assert sorted(places) == [(topic, 0), (topic, 1)]


def test_groups_by_state(admin: AdminClient, idle_group: tuple[str, str]) -> None:
    _, group = idle_group

    def listed(state: ConsumerGroupState) -> set[str]:
        found = admin.list_consumer_groups(states={state}).result(WAIT_S).valid
        return {each.group_id for each in found}

    wait_until("it is empty", lambda: group in listed(ConsumerGroupState.EMPTY))
    assert group not in listed(ConsumerGroupState.STABLE)


def test_a_group_that_nobody_used(admin: AdminClient) -> None:
    found = only(admin.describe_consumer_groups([unique("missing")]))
    assert (found.state, list(found.members)) == (ConsumerGroupState.DEAD, [])


def test_delete_groups(admin: AdminClient, idle_group: tuple[str, str]) -> None:
    _, group = idle_group
    assert only(admin.delete_consumer_groups([group])) is None
    code = refusal(admin.delete_consumer_groups([group]))
    assert code == KafkaError.GROUP_ID_NOT_FOUND


def test_a_group_in_use_is_not_deleted(cluster: Cluster, admin: AdminClient) -> None:
    topic, group = cluster.create_topic("group"), unique("group")
    with consumer(cluster, group_id=group) as source:
        source.subscribe([topic])
        poll_until("it has its share", [source], lambda: bool(source.assignment()))
        code = refusal(admin.delete_consumer_groups([group]))
        assert code == KafkaError.NON_EMPTY_GROUP


def test_list_and_alter_offsets_of_a_group(admin: AdminClient, idle_group: tuple[str, str]) -> None:
    topic, group = idle_group

    def offset() -> int:
        asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])
        (found,) = only(admin.list_consumer_group_offsets([asked])).topic_partitions
        return int(found.offset)

    assert offset() == 6
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 2)])
    (changed,) = only(admin.alter_consumer_group_offsets([wanted])).topic_partitions
    assert changed.error is None
    assert offset() == 2


def test_all_offsets_of_a_group(admin: AdminClient, idle_group: tuple[str, str]) -> None:
    topic, group = idle_group
    asked = ConsumerGroupTopicPartitions(group)
    found = only(admin.list_consumer_group_offsets([asked])).topic_partitions
    assert [(each.topic, each.partition, each.offset) for each in found] == [(topic, 0, 6)]
