"""kafka-transactions ends transactions that are open: of a producer that lives, and a hanging one.

Sessions have what it prints where none is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Producer

from tests.clients.tools.playing import Ground
from tests.clients.tools.tools import TOOLS
from tests.harness.batches import build, produce_body
from tests.harness.confluent import WAIT_S, read_committed
from tests.harness.kafka_tools import kafka_tool
from tests.harness.served_cluster import Cluster, unique
from tests.harness.wire import Body

VERIFICATION: Final = "transaction.partition.verification.enable"
_SET: Final = 0
_DELETE: Final = 1
"""Operations of IncrementalAlterConfigs."""
HOUR_MS: Final = 3_600_000
TRANSACTIONAL: Final = 0x10
"""The bit of a batch's attributes."""
BROKER: Final = 4
"""The type of a config resource."""


def transactions(brokers: Ground, *arguments: str) -> list[list[str]]:
    """The words of each line that the tool prints, without the heading."""
    server = ["--bootstrap-server", ",".join(brokers.brokers)]
    lines = kafka_tool(TOOLS["kafka-transactions"], *server, *arguments).out.splitlines()
    return [line.split() for line in lines[1:]]


def cluster_of(brokers: Ground) -> Cluster:
    return Cluster(bootstrap=",".join(brokers.brokers))


@contextmanager
def unverified(cluster: Cluster) -> Iterator[None]:
    """Batches are appended though no coordinator knows of their transaction (before KIP-890)."""
    _configure(cluster, _SET)
    try:
        yield
    finally:
        _configure(cluster, _DELETE)  # it would be among the configs that a session describes


def _configure(cluster: Cluster, operation: int) -> None:
    change = {"Name": VERIFICATION, "ConfigOperation": operation, "Value": "false"}
    resource = {"ResourceType": BROKER, "ResourceName": "", "Configs": [change]}
    with cluster.connect() as connection:
        answer = connection.call("IncrementalAlterConfigs", 1, {"Resources": [resource]})
    assert answer["Responses"][0]["ErrorCode"] == 0, answer


def append_late(cluster: Cluster, topic: str, producer_id: int) -> None:
    """Append a batch of a transaction that no coordinator knows, an hour old."""
    record = (int(time.time() * 1000) - HOUR_MS, None, b"late")
    batch = build(
        [record],
        attributes=TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
    )
    body: Body = {**produce_body(topic, batch), "TransactionalId": "late"}
    with cluster.connect(cluster.leader(topic)) as connection:
        answer = connection.call("Produce", 9, body)
    assert answer["Responses"][0]["PartitionResponses"][0]["ErrorCode"] == 0, answer


def test_the_transaction_of_a_producer_is_listed_described_and_aborted(brokers: Ground) -> None:
    # No longer than the title of its column, which a session prints as wide as the longest id.
    cluster, name = cluster_of(brokers), unique("x")
    topic = cluster.create_topic("open")
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": name})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(WAIT_S) == 0
    (listed,) = (row for row in transactions(brokers, "list") if row[0] == name)
    assert listed[-1] == "Ongoing"
    (described,) = transactions(brokers, "describe", "--transactional-id", name)
    assert (described[4], described[-1]) == ("Ongoing", f"{topic}-0")
    at = ["--topic", topic, "--partition", "0"]
    (active,) = transactions(brokers, "describe-producers", *at)
    assert (active[0], active[-1]) == (listed[2], "0")
    transactions(brokers, "abort", *at, "--start-offset", "0")
    (active,) = transactions(brokers, "describe-producers", *at)
    assert active[-1] == "None"
    assert read_committed(cluster, topic) == [[]]


def test_a_transaction_that_no_coordinator_knows_is_found_and_aborted(brokers: Ground) -> None:
    cluster = cluster_of(brokers)
    topic = cluster.create_topic("hanging")
    with unverified(cluster):
        append_late(cluster, topic, producer_id=987_654)
    leader = str(cluster.metadata(topic)["Partitions"][0]["LeaderId"])
    search = ["find-hanging", "--broker-id", leader, "--topic", topic]
    (found,) = transactions(brokers, *search)
    assert found[:3] == [topic, "0", "987654"]
    assert int(found[-1]) >= 59  # minutes
    at = ["--topic", topic, "--partition", "0"]
    transactions(brokers, "abort", *at, "--start-offset", found[5])
    assert transactions(brokers, *search) == []
    assert read_committed(cluster, topic) == [[]]
