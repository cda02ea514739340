"""A server in this process, without a network: what it takes for a request, and nothing else.

Two processes, even of the same program, differ by some percent and some microseconds for as long as
they live, and round trips over the network by far more than what is looked for here. So requests
are handed to a connection of a server in this process, as its transport would, and what it writes
is thrown away: what is timed is all that fencepost does for a request. What is compared takes turns
in portions, and each portion is compared with the one beside it.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench import load
from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.scheduler import ManualClock
from fencepost.broker.metadata.image import Address
from fencepost.broker.node.cluster import Cluster, ClusterOptions
from fencepost.broker.server.asyncio_connection import AsyncioConnection
from fencepost.broker.server.listener import Listener
from fencepost.broker.server.server import Server
from fencepost.client.batches import NewRecord, encode_records
from fencepost.protocol.apis import BY_NAME
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.codec import encode_request
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

BATCH_BYTES: Final = 1_000_000
"""Of records in a request and in an answer: nearly librdkafka's limit of both."""
BATCH_RECORDS: Final = BATCH_BYTES // load.RECORD_BYTES
PORTIONS: Final = 100
"""Of each sort of request, with what is looked at and as many without."""
SETTLING: Final = 0.2
"""Of a portion, before it: an interpreter has to get used to functions that were replaced."""
IDLE_EVERY: Final = 32
"""Requests between two idle moments of the loop, in which the journal does what it put off."""
TOPIC: Final = "bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """What a request took in two portions, one right after the other, microseconds.

    ``whole`` is with what is looked at, ``stripped`` without it.
    """

    whole: float
    stripped: float


def cost(pairs: Sequence[Pair]) -> float:
    """What is added to a request, microseconds: the median of the pairs."""
    return statistics.median(pair.whole - pair.stripped for pair in pairs)


def throughput(pairs: Sequence[Pair]) -> float:
    """Requests in a time with what is looked at, over those without: the median of the pairs."""
    return statistics.median(pair.stripped / pair.whole for pair in pairs)


def in_turns(
    whole: Callable[[], float], stripped: Callable[[], float], portions: int = PORTIONS
) -> list[Pair]:
    """Measure portions of both, microseconds a request; each is first as often as second."""
    return [_pair(whole, stripped, portion % 2 == 0) for portion in range(portions)]


def _pair(whole: Callable[[], float], stripped: Callable[[], float], whole_first: bool) -> Pair:
    if whole_first:
        taken = whole()
        return Pair(whole=taken, stripped=stripped())
    taken = stripped()
    return Pair(whole=whole(), stripped=taken)


def once_us(send: Callable[[], object]) -> float:
    """What one took, microseconds."""
    begin = time.perf_counter_ns()
    send()
    return (time.perf_counter_ns() - begin) / 1e3


def median_us(send: Callable[[], object], count: int) -> float:
    """What most of so many took, microseconds, once it has settled."""
    _settle(send, count)
    return statistics.median(once_us(send) for _ in range(count))


def mean_us(send: Callable[[], object], count: int) -> float:
    """What one of so many took, microseconds, once it has settled."""
    _settle(send, count)
    begin = time.perf_counter_ns()
    for _ in range(count):
        send()
    return (time.perf_counter_ns() - begin) / 1e3 / count


def _settle(send: Callable[[], object], count: int) -> None:
    for _ in range(int(count * SETTLING) + 1):
        send()


class Inside:
    """A server with one broker and one connection, without a network and without a loop.

    :param topics: What there is besides :data:`TOPIC`, each of one partition, with its configs.
    """

    def __init__(self, topics: Mapping[str, Mapping[str, str]] | None = None) -> None:
        address = Address(host="127.0.0.1", port=9092, advertised_host="")
        self._cluster = Cluster(ClusterOptions(addresses=(address,)), ManualClock())
        self.server = Server(self._cluster, self._cluster.scheduler.clock, [])
        self._transport = _Transport()
        broker = self._cluster.brokers[1]
        listener = Listener(self.server, broker, address, None)  # type: ignore[arg-type]  # never started
        self._connection = AsyncioConnection(listener)
        self._connection.connection_made(self._transport)
        self._since_idle = 0
        for name, configs in {TOPIC: {}, **(topics or {})}.items():
            self._cluster.controller.create_topic(NewTopic(name=name, configs=configs))
        self._cluster.scheduler.run_due()

    def ask(self, frame: Buffer) -> int:
        """Hand a request over, as it comes in from the network; the size of its answer."""
        self._transport.written = 0
        connection, at = self._connection, 0
        while at < len(frame):
            room = connection.get_buffer(-1)
            count = min(len(room), len(frame) - at)
            room[:count] = frame[at : at + count]
            connection.buffer_updated(count)
            at += count
        self._cluster.scheduler.run_due()
        self._since_idle += 1
        if self._since_idle >= IDLE_EVERY:
            self._since_idle = 0
            self.server.journal.count_if_many()
        return self._transport.written

    def log_end(self, topic: str) -> int:
        """Where the only partition of a topic ends, exclusive."""
        return self._cluster.brokers[1].replicas[topic, 0].log.log_end_offset


class _Transport(asyncio.Transport):
    """Where answers go; counts their bytes."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 50_000), "sockname": ("192.0.2.2", 9092)})
        self.written = 0

    def writelines(self, list_of_data: Iterable[Buffer]) -> None:
        self.written += sum(map(len, list_of_data))


def batch_of(records: int) -> bytes:
    """A batch of so many records of the load's size."""
    record = NewRecord(timestamp=0, key=None, value=bytes(load.RECORD_BYTES))
    return bytes(encode_records([record] * records))


def produce_request(batch: bytes, topic: str = TOPIC) -> bytes:
    """Brings a batch for a topic's only partition, with acks=1."""
    partition = PartitionProduceData(index=0, records=batch)
    data = TopicProduceData(name=topic, partition_data=(partition,))
    return frame("produce", 9, ProduceRequest(acks=1, timeout_ms=30_000, topic_data=(data,)))


def frame(name: str, version: int, request: object) -> bytes:
    """A whole request."""
    return b"".join(encode_request(BY_NAME[name], version, 1, "bench", request))
