"""Faults of connections as real clients meet them: librdkafka, kcat and Kafka's Java tools."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from fencepost.testing import Cluster
from tests.harness.kafka_tools import kafka_tool
from tests.harness.require import tool
from tests.harness.run import run

pytestmark = pytest.mark.fencepost(brokers=3, topics=["orders:1:3"])

SIZE: Final = 10_000
"""Bytes of a record."""
QUIET: Final = {"log_level": 0, "socket.connection.setup.timeout.ms": 1000}
OFFSETS: Final = "org.apache.kafka.tools.GetOffsetShell"


def produce(fencepost: Cluster, *values: str, bootstrap: str | None = None) -> None:
    servers = bootstrap or fencepost.bootstrap
    producer = Producer(
        {"bootstrap.servers": servers, "client.id": "shop", "linger.ms": 0, **QUIET}
    )
    for value in values:
        producer.produce("orders", value)
    assert producer.flush(30) == 0


@contextmanager
def consumer(fencepost: Cluster) -> Iterator[Consumer]:
    made = Consumer(
        {
            "bootstrap.servers": fencepost.bootstrap,
            "client.id": "ship",
            "group.id": "shipping",
            "auto.offset.reset": "earliest",
            **QUIET,
        }
    )
    made.subscribe(["orders"])
    try:
        yield made
    finally:
        made.close()


def consume(source: Consumer) -> str:
    message = source.poll(30)
    assert message is not None
    assert message.error() is None
    value = message.value()
    assert value is not None
    return value.decode()


def brokers_of(bootstrap: str, *, within_s: float = 30) -> int:
    """How many brokers a client hears of. :raises KafkaException: When none answers."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    return len(admin.list_topics(timeout=within_s).brokers)


def first(fencepost: Cluster) -> str:
    """The address of broker 1 alone."""
    return fencepost.bootstrap.split(",")[0]


# -- bandwidth ----------------------------------------------------------------------------------


def test_a_producer_on_a_slow_line_is_answered_when_its_bytes_have_come(
    fencepost: Cluster,
) -> None:
    produce(fencepost, "warm")
    fault = fencepost.add_fault("Produce", client_id="shop", action={"bandwidth": 4 * SIZE})
    begun = time.monotonic()
    produce(fencepost, "x" * SIZE)
    assert time.monotonic() - begun >= 0.25
    assert fencepost.fault(fault.id).hits == 1


def test_a_consumer_on_a_slow_line_gets_its_records_late_and_whole(fencepost: Cluster) -> None:
    produce(fencepost, "x" * SIZE)
    fencepost.add_fault("Fetch", client_id="ship", count=None, action={"bandwidth": 4 * SIZE})
    begun = time.monotonic()
    with consumer(fencepost) as source:
        assert consume(source) == "x" * SIZE
    assert time.monotonic() - begun >= 0.25


# -- pieces -------------------------------------------------------------------------------------


def test_clients_read_answers_that_come_in_pieces(fencepost: Cluster) -> None:
    fencepost.add_fault("*", source="clients", count=None, action={"pieces": 40})
    produce(fencepost, "one", "two")
    with consumer(fencepost) as source:
        assert [consume(source), consume(source)] == ["one", "two"]
    kcat = [tool("kcat"), "-b", fencepost.bootstrap, "-C", "-q", "-e", "-t", "orders"]
    assert run(kcat).lines == ["one", "two"]
    java = kafka_tool(OFFSETS, "--bootstrap-server", fencepost.bootstrap, "--topic", "orders")
    assert java.out.strip() == "orders:0:2"


# -- silent -------------------------------------------------------------------------------------


def test_a_client_of_a_silent_broker_gives_up_and_is_served_once_it_answers(
    fencepost: Cluster,
) -> None:
    fault = fencepost.add_fault("*", broker=1, count=None, action="silent")
    with pytest.raises(KafkaException) as raised:
        brokers_of(first(fencepost), within_s=1)
    assert raised.value.args[0].code() == KafkaError._TRANSPORT
    assert fencepost.fault(fault.id).hits > 0
    fencepost.remove_fault(fault.id)
    assert brokers_of(first(fencepost)) == 3


def test_clients_that_need_the_other_brokers_do_not_notice_a_silent_one(
    fencepost: Cluster,
) -> None:
    fencepost.elect("orders", 0, leader=2)
    fencepost.add_fault("*", broker=1, count=None, action="silent")
    others = fencepost.bootstrap.partition(",")[2]
    produce(fencepost, "one", bootstrap=others)
    kcat = [tool("kcat"), "-b", others, "-C", "-q", "-e", "-t", "orders"]
    assert run(kcat).lines == ["one"]


def test_a_java_client_of_a_silent_broker_times_out(fencepost: Cluster, tmp_path: Path) -> None:
    fencepost.add_fault("*", broker=1, count=None, action="silent")
    config = tmp_path / "client.properties"
    config.write_text("request.timeout.ms=1000\ndefault.api.timeout.ms=1500\n")
    wanted = ("--bootstrap-server", first(fencepost), "--command-config", str(config))
    assert "TimeoutException" in kafka_tool(OFFSETS, *wanted, code=1).err


# -- refuse -------------------------------------------------------------------------------------


def test_clients_go_on_with_the_other_brokers_while_a_port_refuses(fencepost: Cluster) -> None:
    fencepost.elect("orders", 0, leader=2)
    fault = fencepost.add_fault("*", broker=1, action="refuse")
    with pytest.raises(KafkaException):
        brokers_of(first(fencepost), within_s=1)
    produce(fencepost, "one")
    java = kafka_tool(OFFSETS, "--bootstrap-server", fencepost.bootstrap, "--topic", "orders")
    assert java.out.strip() == "orders:0:1"
    kcat = [tool("kcat"), "-b", fencepost.bootstrap, "-C", "-q", "-e", "-t", "orders"]
    assert run(kcat).lines == ["one"]
    fencepost.remove_fault(fault.id)
    assert brokers_of(first(fencepost)) == 3


def test_a_producer_delivers_once_the_port_of_its_leader_accepts_again(
    fencepost: Cluster,
) -> None:
    fencepost.elect("orders", 0, leader=1)
    fault = fencepost.add_fault("*", broker=1, action="refuse")
    producer = Producer({"bootstrap.servers": fencepost.bootstrap, "linger.ms": 0, **QUIET})
    producer.produce("orders", "late")
    assert producer.flush(0.3) == 1, "its leader is up, and refuses"
    fencepost.remove_fault(fault.id)
    assert producer.flush(30) == 0
    fencepost.verify("Produce", count={"at_least": 1}, topic="orders", broker=1)
