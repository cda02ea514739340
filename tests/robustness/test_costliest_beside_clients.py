"""All costliest requests at once, beside a producer and a consumer that must not notice.

``FENCEPOST_FUZZ_SECONDS`` is how long they are sent.
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Final, Self
from uuid import UUID

import pytest
from confluent_kafka import Consumer, Producer

from fencepost.protocol.apis import APIS
from tests.harness.served_cluster import Cluster
from tests.robustness.costliest import TOPICS, Shape, shapes

SECONDS: Final = float(os.environ.get("FENCEPOST_FUZZ_SECONDS") or (5))
SEED: Final = int(os.environ.get("FENCEPOST_FUZZ_SEED") or random.SystemRandom().getrandbits(32))
SIZES: Final = (1_000, 20_000, 200_000)
ANSWER_S: Final = 60.0
GROWTH_BYTES: Final = 160 << 20
"""What may come and go: the journal's 64 MiB, and what the allocator keeps of the largest answers.
It does not grow with `SECONDS`."""
WITHOUT_END: Final = frozenset({"join_group", "sync_group"})
"""Answered when others join: only sent."""


class Pair:
    """A producer and a consumer of one topic, each record with the next number."""

    def __init__(self, broker: Cluster) -> None:
        configs = {"retention.ms": "-1", "retention.bytes": "-1"}
        self.topic = broker.create_topic("pair", replication_factor=1, configs=configs)
        self._bootstrap = "{}:{}".format(*broker.addresses[0])
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=each) for each in (self._produce, self._consume)]
        self.sent = 0
        self.failed: list[str] = []
        self.received: list[int] = []

    def __enter__(self) -> Self:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for each in self._threads:
            each.join()

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "acks": "all", "linger.ms": 5})

        def delivered(error: object, _: object) -> None:
            if error is not None:
                self.failed.append(str(error))

        while not self._ended.is_set():
            producer.produce(self.topic, str(self.sent).encode(), on_delivery=delivered)
            self.sent += 1
            producer.poll(0.002)
        assert producer.flush(ANSWER_S) == 0

    def _consume(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "pair",
                "auto.offset.reset": "earliest",
            }
        )
        with closing(consumer):
            consumer.subscribe([self.topic])
            deadline = time.monotonic() + SECONDS + ANSWER_S
            while time.monotonic() < deadline:
                message = consumer.poll(0.1)
                if message is not None and message.error() is None:
                    value = message.value()
                    assert value is not None
                    self.received.append(int(value))
                elif self._ended.is_set() and len(self.received) == self.sent:
                    return


def attacks(rng: random.Random) -> Iterator[Shape]:
    """Shapes of all APIs and versions, in any order, without end."""
    while True:
        api = rng.choice(APIS)
        of_api = [*shapes(api, rng.randint(api.min_version, api.max_version))]
        if of_api:  # a request without fields has no shape
            yield rng.choice(of_api)


def send(broker: Cluster, frame: bytes, *, wait: bool) -> None:
    """Send a request on a connection of its own; read its answer, or that the broker closes."""
    with socket.create_connection(broker.addresses[0], ANSWER_S) as connection:
        try:
            connection.sendall(frame)
            connection.shutdown(socket.SHUT_WR)
            while wait and connection.recv(1 << 20):
                pass
        except ConnectionError:
            pass


@pytest.mark.timeout(SECONDS + 180)
def test_nothing_is_lost_and_memory_is_given_back(broker: Cluster) -> None:
    rng = random.Random(SEED)
    names = [broker.create_topic("known", replication_factor=1) for _ in range(TOPICS)]
    ids = {name: UUID(int=index + 1) for index, name in enumerate(names)}
    source = attacks(rng)

    def attack(seconds: float) -> int:
        sent, deadline = 0, time.monotonic() + seconds
        while time.monotonic() < deadline:
            shape = next(source)
            if shape.api.name in ("delete_topics", "create_topics", "create_partitions"):
                frame = shape.frame(SIZES[0], ids)
            else:
                frame = shape.frame(rng.choice(SIZES), ids)
            send(broker, frame, wait=shape.api.name not in WITHOUT_END)
            sent += 1
        return sent

    assert broker.process is not None
    with Pair(broker) as pair:
        attack(SECONDS / 3)
        before = broker.process.resident_bytes()
        sent = attack(SECONDS * 2 / 3)
        grown = broker.process.resident_bytes() - before
    told = f"seed {SEED}: {sent} requests, {pair.sent} records, {grown >> 20} MiB more"
    print(told)  # noqa: T201  # how far it got, for the report
    assert not pair.failed, told
    assert pair.received == list(range(pair.sent)), told
    assert grown < GROWTH_BYTES, told
