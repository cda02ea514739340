"""A minute of odd and broken requests on many connections at once."""

from __future__ import annotations

import os
import random
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Final

import pytest

from tests.harness.batches import build, produce_body
from tests.harness.served_cluster import Cluster
from tests.harness.wait import wait_until
from tests.harness.wire import Body, Connection
from tests.robustness.messages import TOPIC, random_request, resized, spoiled

SECONDS: Final = float(os.environ.get("FENCEPOST_FUZZ_SECONDS") or 5)
SEED: Final = int(os.environ.get("FENCEPOST_FUZZ_SEED") or random.SystemRandom().getrandbits(32))
CONNECTIONS: Final = 16
MOST_UNANSWERED: Final = 20
STUCK_S: Final = 30.0
"""A broker that neither answers nor closes for so long is stuck."""
GROWTH_BYTES: Final = 48 << 20
"""What may come and go: the allocator's slack, groups and records that are not yet expired."""


@dataclass(slots=True)
class Score:
    """What became of the requests: only these counts say that anything was tested."""

    sent: int = 0
    answered: int = 0
    closed: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(
            self.sent + other.sent, self.answered + other.answered, self.closed + other.closed
        )


class Attacker:
    """A connection that sends anything.

    A spoiled request is the last that it sends: behind one, others would be read as a part of it,
    or be thrown away with the connection. It then waits until the broker closes, and starts again.
    """

    def __init__(self, address: tuple[str, int], score: Score) -> None:
        self._address = address
        self._score = score
        self.socket = self._open()

    def _open(self) -> socket.socket:
        self.ending = False
        self._unanswered = 0
        self._received = b""
        return socket.create_connection(self._address, STUCK_S)

    def send(self, data: bytes, *, last: bool) -> None:
        """Send a request; the broker may be done with us already."""
        self._score.sent += 1
        self._unanswered += 1
        try:
            self.socket.sendall(data)
            if last or self._unanswered >= MOST_UNANSWERED:
                self.ending = True
                self.socket.shutdown(socket.SHUT_WR)
        except OSError as gone:  # closed; what was said before can still be read
            assert not isinstance(gone, TimeoutError), "the broker does not read"
            self.ending = True

    def close(self) -> None:
        self.socket.close()

    def receive(self) -> None:
        """Take what came: answers, or the end."""
        try:
            chunk = self.socket.recv(1 << 18)
        except ConnectionError:
            chunk = b""
        if not chunk:
            self._score.closed += 1
            self.socket.close()
            self.socket = self._open()
            return
        self._received += chunk
        while len(self._received) >= 4:
            size = 4 + int.from_bytes(self._received[:4], "big")
            if len(self._received) < size:
                break
            self._received = self._received[size:]
            self._score.answered += 1
            self._unanswered -= 1


class Witness:
    """A well-behaved client with a topic of its own, which must not notice anything."""

    def __init__(self, broker: Cluster) -> None:
        configs = {"retention.ms": "-1", "retention.bytes": "-1"}
        self.topic = broker.create_topic("witness", replication_factor=1, configs=configs)
        self.connection: Connection = broker.connect()
        self.produced = 0

    def check(self) -> None:
        record = b"%d" % self.produced
        produce = produce_body(self.topic, build([(self.produced, None, record)]))
        answer = self.connection.call("Produce", 9, produce)["Responses"][0]
        assert answer["PartitionResponses"][0]["BaseOffset"] == self.produced, answer
        wanted = {"Partition": 0, "FetchOffset": self.produced, "PartitionMaxBytes": 1000}
        topics = [{"Topic": self.topic, "Partitions": [wanted]}]
        fetch: Body = {"MaxWaitMs": 5000, "MinBytes": 1, "Topics": topics}
        answer = self.connection.call("Fetch", 12, fetch)["Responses"][0]
        assert record in answer["Partitions"][0]["Records"]
        self.produced += 1


def requests(rng: random.Random) -> Iterator[tuple[bytes, bool]]:
    """Requests without end, and whether each is spoiled: half of them are."""
    while True:
        whole = random_request(rng)
        yield whole, False
        match rng.randrange(10):
            case 0:
                yield spoiled(whole, rng), True
            case 1:
                yield rng.randbytes(rng.randrange(200)), True
            case _:
                yield resized(spoiled(whole, rng, keep=8)), True


def attack(broker: Cluster, witness: Witness, rng: random.Random, seconds: float) -> Score:
    """Send for so long; what became of it."""
    score = Score()
    with ExitStack() as stack:
        attackers = [Attacker(broker.addresses[0], score) for _ in range(CONNECTIONS)]
        for each in attackers:
            stack.callback(each.close)
        deadline = time.monotonic() + seconds
        for data, last in requests(rng):
            free = collect(attackers)
            rng.choice(free).send(data, last=last)
            if score.sent % 200 == 0:
                witness.check()
            if time.monotonic() > deadline:
                break
    witness.check()
    return score


def collect(attackers: list[Attacker]) -> list[Attacker]:
    """Receive whatever came; those that may send, of which there is one at least."""
    while True:
        free = [each for each in attackers if not each.ending]
        by_socket = {each.socket: each for each in attackers}
        wait_s = 0 if free else STUCK_S
        ready = select.select(list(by_socket), [], [], wait_s)[0]
        assert ready or free, f"no connection was closed in {STUCK_S} s"
        for each in ready:
            by_socket[each].receive()
        if free and not ready:
            return free


@pytest.mark.timeout(SECONDS + 120)
def test_odd_and_broken_requests(broker: Cluster) -> None:
    rng = random.Random(SEED)
    witness = Witness(broker)
    with closing(witness.connection):
        prepare(broker)
        first = attack(broker, witness, rng, SECONDS / 3)
        before = resident(broker)
        score = first + attack(broker, witness, rng, SECONDS * 2 / 3)
        grown = resident(broker) - before
    told = f"seed {SEED}: {score}, {grown >> 20} MiB more"
    print(told)  # noqa: T201  # how far it got, for the report
    assert grown < GROWTH_BYTES, told
    # A run whose requests never reach a handler would show nothing.
    assert score.answered > score.sent / 3, told


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
