"""Transactional producers of three clients in several partitions: what they commit is read, what
they abort is not. librdkafka does the same in test_exactly_once.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaError, TopicPartition
from kafka import KafkaProducer

from tests.harness.confluent import consumer
from tests.harness.java import story
from tests.harness.served_cluster import Cluster, unique

TRANSACTIONS: Final = 6
PARTITIONS: Final = 3
WAIT_S: Final = 30


def committed() -> list[bytes]:
    """The records of every other transaction, the first one's as well, in order of partitions."""
    return [
        b"%d-%d" % (number, partition)
        for partition in range(PARTITIONS)
        for number in range(0, TRANSACTIONS, 2)
    ]


def read_committed(cluster: Cluster, topic: str) -> list[bytes]:
    """All that a read_committed consumer gets, up to the last stable offset of each partition."""
    found: dict[int, list[bytes]] = {index: [] for index in range(PARTITIONS)}
    ends: set[int] = set()
    deadline = time.monotonic() + WAIT_S
    with consumer(cluster, isolation_level="read_committed", enable_partition_eof="true") as source:
        source.assign([TopicPartition(topic, index, 0) for index in found])
        while len(ends) < PARTITIONS:
            assert time.monotonic() < deadline, f"partitions {ends} are read, and no others"
            for message in source.consume(100, 1.0):
                index, value, error = message.partition(), message.value(), message.error()
                assert index is not None
                if error is None and value is not None:
                    found[index].append(value)
                else:
                    assert error is not None
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    ends.add(index)
    return [value for index in range(PARTITIONS) for value in found[index]]


def transact(
    begin: Callable[[], object],
    send: Callable[[bytes, int], object],
    end: Callable[[bool], object],
) -> None:
    """Commit and abort in turn."""
    for number in range(TRANSACTIONS):
        begin()
        for partition in range(PARTITIONS):
            send(b"%d-%d" % (number, partition), partition)
        end(number % 2 == 0)


def test_java_commits_and_aborts_and_a_zombie_is_fenced(cluster: Cluster) -> None:
    topic, name = cluster.create_topic("java", partitions=PARTITIONS), unique("txn")
    told = story(
        "TransactionStory", cluster.bootstrap, topic, str(PARTITIONS), name, str(TRANSACTIONS)
    )
    assert told.lines == ["fenced", "Empty", "1"]
    assert read_committed(cluster, topic) == committed()


async def test_aiokafka_commits_and_aborts(cluster: Cluster) -> None:
    topic = cluster.create_topic("aiokafka", partitions=PARTITIONS)
    producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id=unique("txn"))
    await producer.start()
    try:
        for number in range(TRANSACTIONS):
            await producer.begin_transaction()
            for partition in range(PARTITIONS):
                await producer.send(topic, b"%d-%d" % (number, partition), partition=partition)
            if number % 2 == 0:
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()
    finally:
        await producer.stop()
    assert read_committed(cluster, topic) == committed()


def test_kafka_python_commits_and_aborts(cluster: Cluster) -> None:
    topic = cluster.create_topic("python", partitions=PARTITIONS)
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id=unique("txn"))
    try:
        producer.init_transactions()
        transact(
            producer.begin_transaction,
            lambda value, partition: producer.send(topic, value, partition=partition),
            lambda commits: (
                producer.commit_transaction() if commits else producer.abort_transaction()
            ),
        )
    finally:
        producer.close()
    assert read_committed(cluster, topic) == committed()
