"""Idempotent producers on brokers 0, 1 and 2, while one of them is down: kcat, librdkafka, Java."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

import pytest

from fencepost.verbs.methods import Verbs
from fencepost.verbs.remote import Remote
from tests.harness.confluent import delivered, send
from tests.harness.kafka_tools import kafka_tool
from tests.harness.require import tool
from tests.harness.run import run
from tests.harness.served_cluster import Cluster, serving, unique

VALUES = [b"a", b"b", b"c"]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("broker-ids")
    options = ["--broker-ids", "0,1,2", "--data-dir", str(folder / "data")]
    with serving(folder / "log", *options) as cluster:
        yield cluster


def with_kcat(cluster: Cluster, topic: str) -> None:
    command = [tool("kcat"), "-b", cluster.bootstrap, "-P", "-t", topic, "-p", "0"]
    text = b"".join(value + b"\n" for value in VALUES)
    run([*command, "-X", "enable.idempotence=true"], stdin=text, timeout_s=60)


def with_librdkafka(cluster: Cluster, topic: str) -> None:
    delivered(send(cluster, topic, VALUES, enable_idempotence="true"))


def with_java(cluster: Cluster, topic: str) -> None:
    properties = [f"bootstrap.servers={cluster.bootstrap}", "delivery.timeout.ms=60000"]
    sizes = ["--num-records", str(len(VALUES)), "--record-size", "1", "--throughput", "-1"]
    options = ["--topic", topic, *sizes, "--producer-props", *properties, "linger.ms=0"]
    kafka_tool("org.apache.kafka.tools.ProducerPerformance", *options)


@pytest.fixture(scope="module")
def verbs(brokers: Cluster) -> Iterator[Verbs]:
    assert brokers.control is not None
    with closing(Remote(brokers.control)) as remote:
        yield Verbs(remote)


@pytest.mark.parametrize("down", [0, 1, 2])
@pytest.mark.parametrize("produce", [with_kcat, with_librdkafka, with_java])
def test_an_idempotent_producer_is_served_while_a_broker_is_down(
    brokers: Cluster, verbs: Verbs, produce: Callable[[Cluster, str], None], down: int
) -> None:
    topic = unique("ids")
    verbs.create_topic(topic, assignments=[[down, *others(down)]])
    verbs.kill_broker(down)
    try:
        produce(brokers, topic)
    finally:
        verbs.start_broker(down)
    state = verbs.partition(topic, 0)
    assert state.leader in others(down)
    assert state.high_watermark == len(VALUES)
    replica = next(each for each in state.replicas if each.broker == state.leader)
    assert replica.log_end_offset == len(VALUES)


def others(down: int) -> Sequence[int]:
    return [broker for broker in (0, 1, 2) if broker != down]
