"""confluent-kafka (librdkafka): produce, consume and wait in one call each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.harness.served_cluster import Cluster, unique

WAIT_S: Final = 60.0
_POLL_S: Final = 0.05

Options = dict[str, str | int | float | bool]


def send(
    cluster: Cluster,
    topic: str,
    values: Sequence[bytes],
    *,
    partitions: int = 1,
    **options: str | int,
) -> list[Message]:
    """Produce to the first ``partitions`` in turns, and wait; the answers in order of sending.

    Options have ``_`` for ``.``. Whether each was delivered is for the caller to see.
    """
    producer = Producer({"bootstrap.servers": cluster.bootstrap, **dotted(options)})
    answers: list[Message] = []

    def answered(error: KafkaError | None, message: Message) -> None:
        answers.append(message)

    for i, value in enumerate(values):
        producer.produce(topic, value, partition=i % partitions, on_delivery=answered)
    assert producer.flush(WAIT_S) == 0
    return answers


def delivered(answers: Sequence[Message]) -> list[int]:
    """The offsets, once it is sure that there was no error."""
    assert [message.error() for message in answers] == [None] * len(answers)
    return [offset for message in answers if (offset := message.offset()) is not None]


def dotted(options: dict[str, str | int]) -> Options:
    return {key.replace("_", "."): value for key, value in options.items()}


@contextmanager
def consumer(cluster: Cluster, **options: str | int) -> Iterator[Consumer]:
    """A consumer from the beginning, in a group of its own unless ``group_id`` is given."""
    settings: Options = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": unique("group"),
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        **dotted(options),
    }
    made = Consumer(settings)
    try:
        yield made
    finally:
        made.close()


def poll_until(
    what: str, consumers: Sequence[Consumer], done: Callable[[], bool]
) -> list[tuple[Consumer, Message]]:
    """Keep all of them alive until ``done``; what they received meanwhile, errors too."""
    received: list[tuple[Consumer, Message]] = []
    deadline = time.monotonic() + WAIT_S
    while not done():
        assert time.monotonic() < deadline, f"not within {WAIT_S} s: {what}"
        for each in consumers:
            message = each.poll(_POLL_S)
            if message is not None:
                received.append((each, message))
    return received


def read(source: Consumer, count: int) -> list[Message]:
    """The next ``count`` messages; ends of partitions are passed over."""
    received: list[Message] = []
    deadline = time.monotonic() + WAIT_S
    while len(received) < count:
        assert time.monotonic() < deadline, f"{len(received)} of {count} within {WAIT_S} s"
        for message in source.consume(count - len(received), 1.0):
            error = message.error()
            if error is None:
                received.append(message)
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
    return received


def read_partition(cluster: Cluster, topic: str, count: int, *, start: int = 0) -> list[Message]:
    """Messages of partition 0 from an offset on, without a group's help."""
    with consumer(cluster) as source:
        source.assign([TopicPartition(topic, 0, start)])
        return read(source, count)


def read_committed(cluster: Cluster, topic: str, partitions: int = 1) -> list[list[bytes]]:
    """The values that a read_committed consumer gets of each partition, up to its last stable
    offset.
    """
    found: list[list[bytes]] = [[] for _ in range(partitions)]
    ends: set[int] = set()

    def take(message: Message) -> None:
        error, index, value = message.error(), message.partition(), message.value()
        assert index is not None
        if error is None:
            assert value is not None
            found[index].append(value)
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ends.add(index)

    deadline = time.monotonic() + WAIT_S
    with consumer(cluster, isolation_level="read_committed", enable_partition_eof="true") as source:
        source.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        while len(ends) < partitions:
            assert time.monotonic() < deadline, f"at the end of {ends} alone within {WAIT_S} s"
            for message in source.consume(500, 0.05):
                take(message)
    return found
