"""Brokers stop, die and come back under clients that are at work: what was acknowledged stays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.clients.stories import TOPIC, Stage, stage
from tests.harness import java
from tests.harness.confluent import consumer, read
from tests.harness.dialogue import Dialogue
from tests.harness.served_cluster import Cluster
from tests.harness.wait import wait_until

BROKERS = (1, 2, 3)
GROUP = "shipping"
TERMINATED = 143
"""What a Java program ends with when it is asked to end."""
EACH = 100
"""Records that have to be acknowledged between two commands."""


@pytest.fixture
def cluster_of_three(tmp_path: Path) -> Iterator[Stage]:
    """Each broker leads one partition of the topic."""
    with stage(tmp_path) as made:
        made.play("restart-before")
        yield made


def test_an_idempotent_producer_and_a_group(cluster_of_three: Stage) -> None:
    cluster = cluster_of_three.cluster
    acknowledged: list[tuple[int, int, bytes]] = []

    def answered(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        acknowledged.append(_place(message))

    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    sent = 0

    def send() -> None:
        """What was sent before is acknowledged, and more is on its way."""
        nonlocal sent
        assert producer.flush(60) == 0
        assert len(acknowledged) == sent
        for number in range(sent, sent + EACH):
            producer.produce(TOPIC, b"%d" % number, partition=number % 3, on_delivery=answered)
        sent += EACH
        producer.poll(0)

    with _Group(cluster) as group:
        send()
        # Both are at work: librdkafka may wait minutes for metadata that a lost connection owes it.
        wait_until("the group reads", lambda: len(group.seen) == sent)
        send()
        for broker in BROKERS:
            cluster_of_three.play("restart", after_each=send, BROKER=broker)
        assert producer.flush(60) == 0
        wait_until("the group has read all", lambda: len(group.seen) == sent, 60)
    assert sorted(int(value) for _, _, value in acknowledged) == list(range(sent))
    assert _stored(cluster) == sorted(acknowledged)
    assert group.seen == set(acknowledged)
    for broker in BROKERS:
        cluster_of_three.play("restart", BROKER=broker)
    with consumer(cluster, group_id=GROUP) as member:
        everywhere = [TopicPartition(TOPIC, index) for index in range(3)]
        committed = member.committed(everywhere, 30)
        ends = [_end(member, index) for index in range(3)]
        assert [each.offset for each in committed] == ends


def test_a_java_producer(cluster_of_three: Stage, tmp_path: Path) -> None:
    cluster = cluster_of_three.cluster
    settings = tmp_path / "producer.properties"
    # The tool itself sets retries=0, which is no way to get over the end of a broker.
    settings.write_text("retries=1000000\nenable.idempotence=true\n")
    options = ["--bootstrap-server", cluster.bootstrap, "--topic", TOPIC, "--acks", "-1"]
    # Keys, so that it writes to all partitions all the time.
    options += ["--throughput", "1000", "--repeating-keys", "12", "--command-config", str(settings)]
    program = java.command("org.apache.kafka.tools.VerifiableProducer", *options)
    told: list[str] = []
    with Dialogue(program, tmp_path / "producer.log") as producer:

        def progress() -> None:
            """Some were acknowledged since the last command."""
            told.extend(producer.pending())
            for _ in range(EACH):
                told.extend(producer.hear_until(lambda line: "producer_send_success" in line))

        # A broker that does not know a producer takes any of its batches for the first, as a real
        # one does, and could miss the one before: let all partitions know it.
        while {event["partition"] for event in _acknowledged(told)} != {0, 1, 2}:
            progress()
        for broker in BROKERS:
            cluster_of_three.play("restart", after_each=progress, BROKER=broker)
        producer.terminate()
        told += producer.end(code=TERMINATED)
    assert [line for line in told if "producer_send_error" in line] == []
    acknowledged = {
        (event["partition"], event["offset"], event["value"].encode())
        for event in _acknowledged(told)
    }
    stored = _stored(cluster)
    assert acknowledged <= set(stored)
    assert len({value for _, _, value in stored}) == len(stored)


def _acknowledged(told: list[str]) -> list[dict[str, Any]]:
    """What a verifiable producer tells of the records that were acknowledged."""
    events = map(json.loads, told)
    return [event for event in events if event["name"] == "producer_send_success"]


class _Group:
    """A member of a group that reads and commits all the time."""

    def __init__(self, cluster: Cluster) -> None:
        self.seen: set[tuple[int, int, bytes]] = set()
        self._cluster = cluster
        self._ended = Event()
        self._thread = Thread(target=self._poll)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _poll(self) -> None:
        with consumer(self._cluster, group_id=GROUP, enable_auto_commit="true") as member:
            member.subscribe([TOPIC])
            while not self._ended.is_set():
                message = member.poll(0.1)
                if message is not None and message.error() is None:
                    self.seen.add(_place(message))


def _place(message: Message) -> tuple[int, int, bytes]:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return partition, offset, message.value() or b""


def _stored(cluster: Cluster) -> list[tuple[int, int, bytes]]:
    """All that the topic holds, in order."""
    with consumer(cluster) as source:
        count = sum(_end(source, index) for index in range(3))
        source.assign([TopicPartition(TOPIC, index, 0) for index in range(3)])
        return sorted(map(_place, read(source, count)))


def _end(source: Consumer, index: int) -> int:
    _, end = source.get_watermark_offsets(TopicPartition(TOPIC, index), 30)
    return int(end)
