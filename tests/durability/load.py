"""Clients at work on a cluster that dies: what they were told, and what there is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

TOPIC: Final = "load"
PARTITIONS: Final = 3
GROUP: Final = "committing"
_OUTSTANDING: Final = 500
_WAIT_S: Final = 60.0


@dataclass(slots=True)
class Acknowledged:
    """What a producer was told is stored, by partition and offset: the record's number."""

    by_partition: list[dict[int, int]] = field(
        default_factory=lambda: [{} for _ in range(PARTITIONS)]
    )
    errors: list[str] = field(default_factory=list)

    def note(self, error: KafkaError | None, message: Message) -> None:
        """A delivery report."""
        if error is not None:
            self.errors.append(str(error))
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        self.by_partition[partition][offset] = number_of(value)

    def ends(self) -> list[int]:
        """By partition, the offset behind the last that was acknowledged."""
        return [max(each, default=-1) + 1 for each in self.by_partition]

    @property
    def count(self) -> int:
        return sum(map(len, self.by_partition))

    def is_above(self, count: int) -> bool:
        return self.count > count


def number_of(value: str | bytes | None) -> int:
    """The number in a record's value."""
    assert isinstance(value, bytes)
    return int(value.split(b" ")[0])


class Producing:
    """An idempotent producer that sends numbers, each once, until it is told to finish."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged = Acknowledged()
        self.sent = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "message.timeout.ms": 120_000,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
                "topic.metadata.refresh.fast.interval.ms": 50,
                "log_level": 0,
            }
        )
        self._done = Event()
        self._thread = Thread(target=self._run, name="producing")
        self._thread.start()

    def finish(self) -> None:
        """Send no more, and wait until all that was sent is acknowledged."""
        self._done.set()
        self._thread.join(_WAIT_S)
        assert self._producer.flush(_WAIT_S) == 0, "not all was acknowledged"

    def _run(self) -> None:
        padding = b" " + b"x" * 100
        while not self._done.is_set():
            if len(self._producer) < _OUTSTANDING:
                self._producer.produce(
                    TOPIC,
                    b"%d" % self.sent + padding * (self.sent % 7),
                    partition=self.sent % PARTITIONS,
                    on_delivery=self.acknowledged.note,
                )
                self.sent += 1
                self._producer.poll(0)
            else:
                self._producer.poll(0.01)


class Committing:
    """A group that commits ever higher offsets, one after the other."""

    def __init__(self, bootstrap: str) -> None:
        self.tried = 0
        self.committed = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )
        self._done = Event()
        self._thread = Thread(target=self._run, name="committing")
        self._thread.start()

    def finish(self) -> None:
        self._done.set()
        self._thread.join(_WAIT_S)
        self._consumer.close()

    def _run(self) -> None:
        while not self._done.wait(0.02):
            self.tried += 1
            place = TopicPartition(TOPIC, 0, self.tried)
            try:
                self._consumer.commit(offsets=[place], asynchronous=False)
            except KafkaException:
                continue
            self.committed = self.tried


@contextmanager
def reader(bootstrap: str) -> Iterator[Consumer]:
    """A consumer that chooses its partitions itself."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "reading",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": 20,
    }
    with closing(Consumer(settings)) as consumer:
        yield consumer


def read(bootstrap: str, starts: list[int], ends: list[int]) -> list[dict[int, int]]:
    """The numbers of every partition by offset, from its start to its end at least.

    :raises AssertionError: When an end is not there within a time.
    """
    found: list[dict[int, int]] = [{} for _ in range(PARTITIONS)]
    wanted = {p for p in range(PARTITIONS) if ends[p] > starts[p]}
    if not wanted:
        return found
    deadline = time.monotonic() + _WAIT_S
    with reader(bootstrap) as consumer:
        consumer.assign([TopicPartition(TOPIC, p, starts[p]) for p in wanted])
        while wanted:
            assert time.monotonic() < deadline, f"{wanted} are not there up to {ends}"
            for message in consumer.consume(1000, 0.1):
                assert message.error() is None, message.error()
                partition, offset, value = message.partition(), message.offset(), message.value()
                assert partition is not None
                assert offset is not None
                found[partition][offset] = number_of(value)
                if offset + 1 >= ends[partition]:
                    wanted.discard(partition)
    return found


def committed(bootstrap: str) -> int:
    """What the group has committed; 0 where there is nothing."""
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})) as consumer:
        (place,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=_WAIT_S)
    return max(place.offset, 0)
