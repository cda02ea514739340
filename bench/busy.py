"""Many connections that are busy at once: each produces a record, fetches it, and begins again.

One thread serves all of them with epoll, and its own work is part of the time; the processor time
of the server is not.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Final

from bench import process, servers, wire
from bench.wire_records import batch, decode_fetch, decode_produce, fetch_request, produce_request

RECORD_BYTES: Final = 1024
FEW: Final = 10
TIMEOUT_S: Final = 60.0


class Client:
    """A connection that is asked for one round after the other: a Produce, then its Fetch."""

    def __init__(self, address: tuple[str, int], topic: str, partition: int, size: int) -> None:
        self.socket = socket.create_connection(address, TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._topic, self._partition = topic, partition
        self._produce = produce_request(topic, partition, batch(1, size))
        self._received = bytearray()
        self._fetches = False

    def begin(self) -> None:
        self._fetches = False
        self.socket.sendall(self._produce)

    def read(self) -> bool:
        """Take what has come; whether a round is complete.

        :raises bench.wire.BadAnswer: When it is an error, or the record does not come.
        """
        data = self.socket.recv(1 << 16)
        if not data:
            raise wire.BadAnswer("the server closed a busy connection")
        self._received += data
        received = self._received
        if len(received) < 4 or len(received) < 4 + struct.unpack_from(">i", received)[0]:
            return False
        self._received = bytearray()
        if self._fetches:
            if not decode_fetch(received[4:]):
                raise wire.BadAnswer("a record that was acknowledged was not fetched")
            return True
        self._fetches = True
        offset = decode_produce(received[4:])
        self.socket.sendall(fetch_request(self._topic, self._partition, offset, 1))
        return False


@contextmanager
def clients(server: servers.Server, count: int, size: int) -> Iterator[list[Client]]:
    """So many connections, on the partitions of the bench topic in turn."""
    with server.connect() as connection:
        found = connection.metadata((servers.TOPIC,))
    leaders = {p.index: found.brokers[p.leader] for p in found.topics[servers.TOPIC]}
    with ExitStack() as opened:
        made = []
        for index in range(count):
            partition = index % len(leaders)
            client = Client(leaders[partition], servers.TOPIC, partition, size)
            opened.enter_context(client.socket)
            made.append(client)
        yield made


def rounds(busy: list[Client], count: int) -> float:
    """Let them do so many rounds together, each as fast as it is answered; seconds."""
    poll = select.epoll()
    by_descriptor = {client.socket.fileno(): client for client in busy}
    for descriptor in by_descriptor:
        poll.register(descriptor, select.EPOLLIN)
    begin = time.perf_counter()
    for client in busy:
        client.begin()
    begun, done = len(busy), 0
    with poll, process.no_collector():
        while done < begun:
            ready = poll.poll(TIMEOUT_S)
            if not ready:
                raise wire.BadAnswer(f"no busy connection was answered for {TIMEOUT_S:.0f} s")
            for descriptor, _ in ready:
                client = by_descriptor[descriptor]
                if client.read():
                    done += 1
                    if begun < count:
                        begun += 1
                        client.begin()
    return time.perf_counter() - begin


def measure(kind: servers.Kind, *, connections: int, requests: int) -> Mapping[str, float]:
    """Requests a second and the server's CPU time of each, by few connections and by many.

    Both are on one server, first the few; each is warmed up by a tenth of its requests.
    """
    rate, cpu = {}, {}
    with servers.running(kind) as server:
        process.wait_until_idle(server.pid)
        server.create_bench_topic()
        for count in (FEW, connections):
            with clients(server, count, RECORD_BYTES) as busy:
                rounds(busy, max(requests // 20, count))
                before = process.cpu_seconds(server.pid)
                done = max(requests // 2, count)
                rate[count] = 2 * done / rounds(busy, done)
                cpu[count] = (process.cpu_seconds(server.pid) - before) / (2 * done) * 1e6
    return {
        "busy_few": rate[FEW] / 1e3,
        "busy_many": rate[connections] / 1e3,
        "busy_share": rate[connections] / rate[FEW],
        "busy_few_cpu": cpu[FEW],
        "busy_many_cpu": cpu[connections],
        "busy_cpu_share": cpu[connections] / cpu[FEW],
    }
