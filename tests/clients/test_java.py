"""Kafka's own Java clients and tools, 4.3.1."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from fencepost.protocol.errors import ErrorCode
from tests.harness.java import java, story
from tests.harness.kafka_tools import kafka_tool
from tests.harness.run import Finished
from tests.harness.served_cluster import Cluster, unique
from tests.harness.wire import Value

TOOLS = "org.apache.kafka.tools"


def facts(finished: Finished) -> dict[str, str]:
    """The name=value lines of a story."""
    return dict(line.split("=", 1) for line in finished.lines)


def events(finished: Finished) -> list[dict[str, Value]]:
    """The JSON lines of a verifiable client."""
    return [json.loads(line) for line in finished.lines if line.startswith("{")]


def tool(cluster: Cluster, name: str, *arguments: str, code: int | None = 0) -> Finished:
    bootstrap = ["--bootstrap-server", cluster.bootstrap]
    return kafka_tool(f"{TOOLS}.{name}", *bootstrap, *arguments, code=code)


def verifiable(cluster: Cluster, name: str, *arguments: str) -> Finished:
    """Run a client that goes on until its JVM ends."""
    return java(f"{TOOLS}.{name}", "--bootstrap-server", cluster.bootstrap, *arguments)


def produce(cluster: Cluster, topic: str, count: int, *arguments: str) -> list[dict[str, Value]]:
    options = ["--topic", topic, "--max-messages", str(count), *arguments]
    return events(verifiable(cluster, "VerifiableProducer", *options))


# -- producer and consumer ----------------------------------------------------------------------


@pytest.mark.parametrize("acks", ["-1", "0"])
def test_verifiable_producer_and_consumer(cluster: Cluster, acks: str) -> None:
    topic, group = cluster.create_topic("verifiable", partitions=3), unique("group")
    sent = produce(cluster, topic, 500, "--acks", acks)
    kinds = Counter(event["name"] for event in sent)
    assert kinds["producer_send_success"] == 500
    assert kinds["producer_send_error"] == 0
    arguments = ["--topic", topic, "--group-id", group, "--max-messages", "500"]
    options = [*arguments, "--reset-policy", "earliest", "--verbose"]
    got = events(verifiable(cluster, "VerifiableConsumer", *options))
    values = [int(event["value"]) for event in got if event["name"] == "record_data"]
    assert sorted(values) == list(range(500))
    assert all(event["success"] for event in got if event["name"] == "offsets_committed")
    (assigned,) = [event for event in got if event["name"] == "partitions_assigned"]
    assert len(assigned["partitions"]) == 3


def test_client_story(cluster: Cluster) -> None:
    topic = cluster.create_topic("java")
    told = facts(story("ClientStory", cluster.bootstrap, topic, unique("group")))
    assert told == {
        "offset.none": "99",
        "offset.gzip": "199",
        "offset.snappy": "299",
        "offset.lz4": "399",
        "offset.zstd": "499",
        "read": "500",
        "ordered": "true",
        "last.key": "key",
        "last.header": "zstd",
        "last.epoch": "0",
        "committed": "7 a note 0",
        "beginning": "0",
        "end": "500",
        "lag": "0",
        "first.time": "0",
        "sought": "42",
        "resumed": "7",
    }


def test_the_errors_that_kips_brought_are_the_exceptions_that_they_name() -> None:
    """Those that extend InvalidMetadataException make a client ask for metadata, others do not."""
    stale = "InvalidMetadataException RefreshRetriableException RetriableException"
    exceptions = {
        ErrorCode.FENCED_LEADER_EPOCH: f"FencedLeaderEpochException {stale}",
        ErrorCode.UNKNOWN_LEADER_EPOCH: "UnknownLeaderEpochException RetriableException",
        ErrorCode.OFFSET_NOT_AVAILABLE: "OffsetNotAvailableException RetriableException",
        ErrorCode.LEADER_NOT_AVAILABLE: f"LeaderNotAvailableException {stale}",
    }
    by_code = {str(int(code)): names for code, names in exceptions.items()}
    assert facts(story("ErrorStory", *by_code)) == by_code


# -- admin --------------------------------------------------------------------------------------


def test_admin_story(cluster: Cluster) -> None:
    told = facts(story("AdminStory", cluster.bootstrap, unique("java-admin"), unique("group")))
    assert told == {
        "create.partitions": "2",
        "create.replication": "3",
        "create.retention": "-1",
        "describe.id": "true",
        "describe.internal": "false",
        "describe.partitions": "3",
        "describe.leaders": "true",
        "describe.replicas": "[1, 2, 3]",
        "describe.isr": "[1, 2, 3]",
        "describe.elr": "[][]",
        "list.topics": "true",
        "cluster.nodes": "[1, 2, 3]",
        "cluster.controller": "true",
        "cluster.id": "true",
        "quorum.leader": "true",
        "features.metadata": "true",
        "config.retention": "-1 DYNAMIC_TOPIC_CONFIG",
        "config.segment": "1073741824 DEFAULT_CONFIG",
        "config.changed": "2097152 DYNAMIC_TOPIC_CONFIG",
        "config.type": "INT",
        "config.synonyms": "[segment.bytes:DYNAMIC_TOPIC_CONFIG, log.segment.bytes:DEFAULT_CONFIG]",
        "producers": "1 9",
        "delete.records": "3",
        "offset.earliest": "3 -1",
        "offset.latest": "10 -1",
        "offset.local": "3 -1",
        "offset.max": "9 1009",
        "offset.tiered": "-1 -1",
        "offset.time": "5 1005",
        "log.dirs": "ok",
        "group.state": "Stable range 1",
        "group.assigned": "3",
        "group.coordinator": "true",
        "group.listed": "true",
        "group.busy": "GroupNotEmptyException",
        "group.offset": "5 a note 0",
        "group.altered": "8",
        "group.forgotten": "true",
        "group.gone": "GroupIdNotFoundException",
        "refuse.again": "TopicExistsException",
        "refuse.name": "InvalidTopicException",
        "refuse.replication": "InvalidReplicationFactorException",
        "refuse.fewer": "InvalidPartitionsException",
        "refuse.unknown": "UnknownTopicOrPartitionException",
        "refuse.config": "InvalidConfigurationException",
        "refuse.records": "OffsetOutOfRangeException",
        "delete.again": "UnknownTopicOrPartitionException",
    }


# -- tools --------------------------------------------------------------------------------------


def test_topic_command(cluster: Cluster) -> None:
    configs = {"retention.ms": "777"}
    topic = cluster.create_topic("java", partitions=2, configs=configs)
    head, *partitions = tool(cluster, "TopicCommand", "--describe", "--topic", topic).lines
    fields = [part.strip() for part in head.split("\t")]
    assert fields[0] == f"Topic: {topic}"
    assert fields[2:4] == ["PartitionCount: 2", "ReplicationFactor: 3"]
    assert "retention.ms=777" in fields[4]
    for number, line in enumerate(partitions):
        assert f"Partition: {number}\tLeader: " in line
        assert "\tReplicas: " in line
        assert "\tIsr: " in line
    assert len(partitions) == 2


def test_topic_command_finds_nothing_wrong(cluster: Cluster) -> None:
    topic = cluster.create_topic("java", partitions=2)
    for option in ("--under-replicated-partitions", "--unavailable-partitions"):
        assert not tool(cluster, "TopicCommand", "--describe", "--topic", topic, option).out


@pytest.mark.parametrize(
    ("time", "offset"),
    [
        ("-1", "100"),
        ("-2", "0"),
        ("latest", "100"),
        ("earliest", "0"),
        ("earliest-local", "0"),
        ("latest-tiered", None),
        ("earliest-pending-upload", None),
    ],
)
def test_get_offset_shell(cluster: Cluster, hundred: str, time: str, offset: str | None) -> None:
    lines = tool(cluster, "GetOffsetShell", "--topic", hundred, "--time", time).lines
    assert lines == ([] if offset is None else [f"{hundred}:0:{offset}"])


@pytest.mark.parametrize("time", ["-3", "max-timestamp"])
def test_get_offset_shell_of_the_latest_timestamp(
    cluster: Cluster, hundred: str, time: str
) -> None:
    (line,) = tool(cluster, "GetOffsetShell", "--topic", hundred, "--time", time).lines
    topic, partition, offset = line.split(":")
    assert (topic, partition) == (hundred, "0")
    assert int(offset) in range(100)


@pytest.fixture(scope="module")
def hundred(cluster: Cluster) -> str:
    """A topic with a hundred records."""
    topic = cluster.create_topic("java")
    produce(cluster, topic, 100)
    return topic


def test_consumer_group_command(cluster: Cluster, hundred: str) -> None:
    group = unique("java-group")
    command = "consumer.group.ConsumerGroupCommand"
    arguments = ["--group", group, "--topic", hundred]
    tool(cluster, command, "--reset-offsets", *arguments, "--to-offset", "40", "--execute")
    described = tool(cluster, command, "--describe", "--group", group).out
    (row,) = [line.split() for line in described.splitlines() if line.startswith(group)]
    # GROUP TOPIC PARTITION CURRENT-OFFSET ... LOG-END-OFFSET LAG
    assert row[1:3] == [hundred, "0"]
    assert {"40", "100", "60"} <= set(row)
    assert group in tool(cluster, command, "--list").lines
    tool(cluster, command, "--delete", "--group", group)
    assert group not in tool(cluster, command, "--list").lines


def test_config_command(cluster: Cluster) -> None:
    topic = cluster.create_topic("java")
    main = ["kafka.admin.ConfigCommand", "--bootstrap-server", cluster.bootstrap]
    entity = ["--entity-type", "topics", "--entity-name", topic]
    kafka_tool(*main, *entity, "--alter", "--add-config", "retention.ms=777")
    assert "retention.ms=777" in kafka_tool(*main, *entity, "--describe").out
    kafka_tool(*main, *entity, "--alter", "--delete-config", "retention.ms")
    assert "retention.ms" not in kafka_tool(*main, *entity, "--describe").out


def test_broker_api_versions_command(cluster: Cluster) -> None:
    out = tool(cluster, "BrokerApiVersionsCommand").out
    assert out.count("(id: ") == 3
    assert "Produce(0): 0 to 13 [usable: 13]" in out
    assert "Fetch(1): 4 to 18 [usable: 18]" in out
