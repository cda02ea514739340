"""A minute of odd and broken requests on many connections at once."""

from __future__ import annotations

import os
import random
import select
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

import pytest

from tests.harness import batches
from tests.harness.cluster import Cluster, wait_until
from tests.harness.require import under_ci
from tests.harness.wire import Body, Connection
from tests.robustness.messages import TOPIC, random_request, resized, spoiled

SECONDS: Final = float(os.environ.get("FENCEPOST_FUZZ_SECONDS") or (60 if under_ci() else 5))
SEED: Final = int(os.environ.get("FENCEPOST_FUZZ_SEED") or random.SystemRandom().getrandbits(32))
CONNECTIONS: Final = 16
MOST_UNANSWERED: Final = 20
GROWTH_BYTES: Final = 48 << 20
"""What may come and go: the allocator's slack, groups and records that are not yet expired."""


@dataclass(eq=False)
class Attacker:
    """A connection that sends anything, and starts anew when it was closed or is stuck."""

    address: tuple[str, int]
    socket: socket.socket = field(init=False)
    unanswered: int = field(init=False)
    opened: int = 0

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        self.socket = socket.create_connection(self.address, 10)
        self.socket.setblocking(False)
        self.unanswered = 0
        self.opened += 1

    def reopen(self) -> None:
        self.socket.close()
        self.open()

    def send(self, data: bytes) -> None:
        if self.unanswered >= MOST_UNANSWERED:
            self.reopen()
        try:
            sent = self.socket.send(data)
        except BlockingIOError:
            self.reopen()
        except ConnectionError:
            self.reopen()
        else:
            self.unanswered += 1
            if sent < len(data):
                self.reopen()

    def receive(self) -> None:
        try:
            chunk = self.socket.recv(1 << 18)
        except ConnectionError:
            chunk = b""
        if chunk:
            self.unanswered = 0
        else:
            self.reopen()


class Witness:
    """A well-behaved client with a topic of its own, which must not notice anything."""

    def __init__(self, broker: Cluster) -> None:
        configs = {"retention.ms": "-1", "retention.bytes": "-1"}
        self.topic = broker.create_topic("witness", replication_factor=1, configs=configs)
        self.connection: Connection = broker.connect()
        self.produced = 0

    def check(self) -> None:
        record = b"%d" % self.produced
        sent = {"Index": 0, "Records": batches.build([(self.produced, None, record)])}
        data = [{"Name": self.topic, "PartitionData": [sent]}]
        produce: Body = {"Acks": -1, "TimeoutMs": 5000, "TopicData": data}
        answer = self.connection.call("Produce", 9, produce)["Responses"][0]
        assert answer["PartitionResponses"][0]["BaseOffset"] == self.produced
        wanted = {"Partition": 0, "FetchOffset": self.produced, "PartitionMaxBytes": 1000}
        topics = [{"Topic": self.topic, "Partitions": [wanted]}]
        fetch: Body = {"MaxWaitMs": 5000, "MinBytes": 1, "Topics": topics}
        answer = self.connection.call("Fetch", 12, fetch)["Responses"][0]
        assert record in answer["Partitions"][0]["Records"]
        self.produced += 1


def requests(rng: random.Random) -> Iterator[bytes]:
    """Whole, spoiled and senseless, without end."""
    while True:
        whole = random_request(rng)
        yield whole
        yield resized(spoiled(whole, rng, keep=8))
        if rng.random() < 0.2:
            yield spoiled(whole, rng)
        if rng.random() < 0.05:
            yield rng.randbytes(rng.randrange(200))


def attack(broker: Cluster, witness: Witness, rng: random.Random, seconds: float) -> int:
    """Send for so long; the number of requests sent."""
    attackers = [Attacker(broker.addresses[0]) for _ in range(CONNECTIONS)]
    by_socket = {}
    sent = 0
    deadline = time.monotonic() + seconds
    try:
        for data in requests(rng):
            rng.choice(attackers).send(data)
            sent += 1
            if sent % 20 == 0:
                by_socket = {each.socket: each for each in attackers}
                for ready in select.select(list(by_socket), [], [], 0)[0]:
                    by_socket[ready].receive()
            if sent % 200 == 0:
                witness.check()
            if time.monotonic() > deadline:
                break
    finally:
        for each in attackers:
            each.socket.close()
    witness.check()
    return sent


@pytest.mark.timeout(SECONDS + 120)
def test_odd_and_broken_requests(broker: Cluster) -> None:
    rng = random.Random(SEED)
    witness = Witness(broker)
    with closing(witness.connection):
        prepare(broker)
        sent = attack(broker, witness, rng, SECONDS / 3)
        before = resident(broker)
        sent += attack(broker, witness, rng, SECONDS * 2 / 3)
        grown = resident(broker) - before
    print(f"seed {SEED}: {sent} requests, {grown >> 20} MiB more")  # noqa: T201
    assert grown < GROWTH_BYTES, f"seed {SEED}: {grown >> 20} MiB more after {sent} requests"


def prepare(broker: Cluster) -> None:
    """The topic that the requests are about."""
    topic = {"Name": TOPIC, "NumPartitions": 3, "ReplicationFactor": 1}
    with broker.connect() as connection:
        body: Body = {"Topics": [topic], "timeoutMs": 5000}
        assert connection.call("CreateTopics", 7, body)["Topics"][0]["ErrorCode"] in (0, 36)
    wait_until("it is served", lambda: broker.metadata(TOPIC)["ErrorCode"] == 0)


def resident(broker: Cluster) -> int:
    assert broker.process is not None
    return broker.process.resident_bytes()
