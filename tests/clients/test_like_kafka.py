"""Clients of today find what a release of Kafka served, and do without what it had not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin import NewTopic as NewClientTopic

from tests.harness.confluent import consumer, delivered, read, send
from tests.harness.kafka_tools import kafka_tool
from tests.harness.served_cluster import Cluster, configs, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOOLS: Final = "org.apache.kafka.tools"
VALUES: Final = [b"value %d" % i for i in range(20)]


@pytest.fixture(params=["0.11", "2.0", "2.8", "4.0"])
def release(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def old(release: str, tmp_path: Path) -> Iterator[Cluster]:
    settings = configs({"offsets.topic.num.partitions": "1"})
    with serving(tmp_path / "log", "--like-kafka", release, *settings) as started:
        yield started


def test_a_client_writes_reads_and_commits(old: Cluster) -> None:
    admin = AdminClient({"bootstrap.servers": old.bootstrap})
    admin.create_topics([NewClientTopic("t", 1, 3)])["t"].result(30)
    assert delivered(send(old, "t", VALUES, enable_idempotence="true")) == list(range(20))
    reader: Consumer
    with consumer(old, group_id="g", auto_offset_reset="earliest") as reader:
        reader.subscribe(["t"])
        messages = read(reader, 20)
        assert [message.value() for message in messages] == VALUES
        committed = reader.commit(asynchronous=False)
        assert committed is not None
        assert [each.offset for each in committed] == [20]


def test_what_came_later_is_not_there(old: Cluster, release: str) -> None:
    admin = AdminClient({"bootstrap.servers": old.bootstrap})
    entry = ConfigEntry("log.retention.ms", "1000000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
    (changed,) = admin.incremental_alter_configs([resource]).values()
    if release in ("2.8", "4.0"):
        assert changed.result(30) is None
        return
    with pytest.raises(KafkaException) as refused:
        changed.result(30)
    assert refused.value.args[0].code() == KafkaError._UNSUPPORTED_FEATURE


def test_without_topic_ids_clients_produce_and_consume_by_name(tmp_path: Path) -> None:
    with serving(tmp_path / "log", "--api-max", "metadata=9", "--topic", "t:1:3") as started:
        arguments = ["--topic", "t", "--num-records", "3", "--record-size", "1"]
        properties = [f"bootstrap.servers={started.bootstrap}", "delivery.timeout.ms=60000"]
        rest = ["--throughput", "-1", "--producer-props", *properties, "linger.ms=0"]
        ended = kafka_tool(f"{TOOLS}.ProducerPerformance", *arguments, *rest)
        assert "3 records sent" in ended.out
        assert delivered(send(started, "t", VALUES)) == list(range(3, 23))
        options = ["--topic", "t", "--num-records", "23", "--bootstrap-server", started.bootstrap]
        ended = kafka_tool(f"{TOOLS}.ConsumerPerformance", *options, "--timeout", "60000")
        assert ", 23, " in ended.out
    log = (tmp_path / "log").read_text()
    assert "versions_lowered" in log
    assert "Metadata is served up to version 9" in log
