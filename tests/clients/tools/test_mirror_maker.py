"""MirrorMaker 2, of Kafka 4.3.1, between two clusters: records, configs and groups' offsets arrive.

``FENCEPOST_TOOLS_ON=kafka`` runs it between two real ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

from tests.clients.tools.playing import REAL
from tests.harness.confluent import delivered, read_partition, send
from tests.harness.java import command
from tests.harness.kafka import start_kafka
from tests.harness.process import Process, start
from tests.harness.served_cluster import Cluster, configs, serving
from tests.harness.wait import wait_until

MAIN: Final = "org.apache.kafka.connect.mirror.MirrorMaker"
VALUES: Final = [b"a", b"b", b"c"]
GROUP: Final = "readers"
_LONG_S: Final = 120.0
_CONFIGS: Final = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[Mapping[str, Cluster]]:
    """Two of one broker each."""
    with ExitStack() as stack:
        found = {}
        for name in ("here", "there"):
            if REAL:
                kafka = start_kafka(tmp_path / name)
                stack.callback(kafka.stop)
                found[name] = kafka.cluster
            else:
                log = tmp_path / f"{name}.log"
                found[name] = stack.enter_context(serving(log, *configs(_CONFIGS), brokers=1))
        yield found


def settings(clusters: Mapping[str, Cluster]) -> str:
    """The file that MirrorMaker is started with."""
    lines = [f"{name}.bootstrap.servers = {each.bootstrap}" for name, each in clusters.items()]
    lines += [
        "clusters = here, there",
        "here->there.enabled = true",
        "there->here.enabled = false",
        "topics = orders",
        "groups = readers",
        "replication.factor = 1",
        "sync.group.offsets.enabled = true",
        *(f"{each}.storage.replication.factor = 1" for each in ("config", "offset", "status")),
        *(f"{each}.topic.replication.factor = 1" for each in ("checkpoints", "heartbeats")),
        "offset-syncs.topic.replication.factor = 1",
        "offset.flush.interval.ms = 500",
        *(
            f"{each}.interval.seconds = 1"
            for each in (
                "emit.checkpoints",
                "sync.group.offsets",
                "refresh.topics",
                "refresh.groups",
                "sync.topic.configs",
                "sync.topic.acls",
            )
        ),
    ]
    return "".join(f"{line}\n" for line in lines)


@pytest.fixture
def mirror(clusters: Mapping[str, Cluster], tmp_path: Path) -> Iterator[Process]:
    file = tmp_path / "mirror.properties"
    file.write_text(settings(clusters))
    process = start("mirror", command(MAIN, str(file)), tmp_path / "mirror.log")
    yield process
    if process.child.poll() is None:
        process.kill()


def commit(cluster: Cluster, offset: int) -> None:
    options = {"bootstrap.servers": cluster.bootstrap, "group.id": GROUP}
    consumer = Consumer(options)
    consumer.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
    consumer.close()


def committed(cluster: Cluster) -> int | None:
    asked = ConsumerGroupTopicPartitions(GROUP, [TopicPartition("here.orders", 0)])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    try:
        found = admin.list_consumer_group_offsets([asked])[GROUP].result()
    except KafkaException:  # the topic is not there yet
        return None
    offset: int = found.topic_partitions[0].offset
    return offset


def retention(cluster: Cluster) -> str | None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, "here.orders")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    try:
        found = admin.describe_configs([resource])[resource].result()
    except KafkaException:
        return None
    value: str = found["retention.ms"].value
    return value


@pytest.mark.timeout(400)
def test_mirror_maker_copies_records_configs_and_offsets(
    clusters: Mapping[str, Cluster], mirror: Process
) -> None:
    here, there = clusters["here"], clusters["there"]
    with here.connect() as connection:
        config = [{"Name": "retention.ms", "Value": "777000"}]
        topic = {"Name": "orders", "NumPartitions": 1, "ReplicationFactor": 1, "Configs": config}
        answer = connection.call("CreateTopics", 7, {"Topics": [topic], "timeoutMs": 20_000})
    assert answer["Topics"][0]["ErrorCode"] == 0, answer
    assert delivered(send(here, "orders", VALUES)) == [0, 1, 2]
    commit(here, 3)
    wait_until("the config has arrived", lambda: retention(there) == "777000", _LONG_S)
    copied = read_partition(there, "here.orders", len(VALUES))
    assert [message.value() for message in copied] == VALUES
    wait_until("the group's offset has arrived", lambda: committed(there) == 3, _LONG_S)
    assert not re.findall(r"^\S+ \S+ ERROR .*", mirror.log_since(0), re.MULTILINE)
