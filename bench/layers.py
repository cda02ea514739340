"""What the fault layer, the journal and metrics cost: one server, with them and without.

Two processes, even of the same program, differ by some percent and some microseconds for as long as
they live, and round trips over the network by far more than what is looked for here. So requests
are handed to a connection of a server in this process, as its transport would, and what it writes
is thrown away: what is timed is all that fencepost does for a request, and nothing else. The layers
are taken away and put back again and again, and each portion of requests with them is compared with
the one beside it without.

There is no network and no client in these times. So what the layers add to a request with a full
batch is set against the time that one takes at the C client's throughput.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench import load, process, servers
from fencepost.broker.broker import Broker, handler_of
from fencepost.broker.cluster import Address, Cluster, ClusterOptions
from fencepost.broker.context import Context
from fencepost.broker.refusals import ControllerUnreachable
from fencepost.broker.scheduler import ManualClock
from fencepost.broker.server.connection import Connection
from fencepost.broker.server.journal import Exchange, Journal
from fencepost.broker.server.listener import Listener
from fencepost.broker.server.run import spare_the_collector
from fencepost.broker.server.server import Server
from fencepost.broker.topic_plans import NewTopic
from fencepost.client.batches import NewRecord, encode_records
from fencepost.protocol.apis import BY_NAME, Api
from fencepost.protocol.buffers import Buffer
from fencepost.protocol.codec import encode_request
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

BATCH_BYTES: Final = 1_000_000
"""Of records in a request and in an answer: nearly librdkafka's limit of both."""
BATCH_RECORDS: Final = BATCH_BYTES // load.RECORD_BYTES
PORTIONS: Final = 100
"""Of each sort of request, with the layers and as many without."""
LOADS_SHARE: Final = 50
"""Of requests with records, one to so many without."""
SETTLING: Final = 0.2
"""Of a portion, before it: an interpreter has to get used to functions that were replaced."""
IDLE_EVERY: Final = 32
"""Requests between two idle moments of the loop, in which the journal does what it put off."""
_TOPIC: Final = "bench"


def measure(kind: servers.Kind, *, records: int, requests: int) -> Mapping[str, float]:
    """Costs in microseconds a request, and in percent of the C client's throughput.

    :param records: Produced and consumed by the C client.
    :param requests: How many of ListOffsets; fewer of those with records.
    """
    with servers.running(kind) as server:
        process.wait_until_idle(server.pid)
        server.create_bench_topic()
        produced = load.produce(load.Client.C, server, records)
        consumed = load.consume(load.Client.C, server, records)
    spare_the_collector()
    produce, fetch = produce_request(), fetch_request()
    filled = Inside()
    filled.ask(produce)
    loads = requests // LOADS_SHARE
    return {
        "layers_request": cost(Inside().pairs(list_offsets_request(), requests)),
        "layers_produce": share(cost(Inside().pairs(produce, loads)), produced),
        "layers_consume": share(cost(filled.pairs(fetch, loads)), consumed),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """What a request took in two portions, one right after the other, microseconds."""

    whole: float
    stripped: float


def cost(pairs: Sequence[Pair]) -> float:
    """What the layers add to a request, microseconds: the median of the pairs."""
    return statistics.median(pair.whole - pair.stripped for pair in pairs)


def share(cost_us: float, moved: load.Moved) -> float:
    """How many percent a cost is of the time in which a full batch was moved."""
    return cost_us / (BATCH_RECORDS * 1e6 / moved.per_second) * 100


class Inside:
    """A server with one broker and one connection, without a network and without a loop."""

    def __init__(self) -> None:
        address = Address(host="127.0.0.1", port=9092, advertised_host="")
        self._cluster = Cluster(ClusterOptions(addresses=(address,)), ManualClock())
        self.server = Server(self._cluster, self._cluster.scheduler.clock, [])
        self._transport = _Transport()
        broker = self._cluster.brokers[1]
        listener = Listener(self.server, broker, None)  # type: ignore[arg-type]  # never started
        self._connection = Connection(listener)
        self._connection.connection_made(self._transport)
        self._since_idle = 0
        self._cluster.controller.create_topic(NewTopic(name=_TOPIC, configs={}))
        self._cluster.scheduler.run_due()

    def ask(self, frame: bytes) -> int:
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
            self.server.journal.count_in_passing()
        return self._transport.written

    def pairs(self, frame: bytes, count: int) -> list[Pair]:
        """Hand it over so often in all; the layers are there first as often as second."""
        each = max(count // (2 * PORTIONS), 1)
        return [self._pair(frame, each, portion) for portion in range(PORTIONS)]

    def _pair(self, frame: bytes, count: int, portion: int) -> Pair:
        means = {}
        for layers in (True, False) if portion % 2 == 0 else (False, True):
            with contextlib.nullcontext() if layers else without_layers():
                means[layers] = self._mean_us(frame, count)
        return Pair(whole=means[True], stripped=means[False])

    def _mean_us(self, frame: bytes, count: int) -> float:
        for _ in range(int(count * SETTLING) + 1):
            self.ask(frame)
        begin = time.perf_counter_ns()
        for _ in range(count):
            self.ask(frame)
        return (time.perf_counter_ns() - begin) / 1e3 / count


class _Transport(asyncio.Transport):
    """Where answers go; counts their bytes."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 50_000), "sockname": ("192.0.2.2", 9092)})
        self.written = 0

    def writelines(self, list_of_data: Iterable[Buffer]) -> None:
        self.written += sum(map(len, list_of_data))


# -- without the layers ---------------------------------------------------------------------------


@contextlib.contextmanager
def without_layers() -> Iterator[None]:
    """The fault layer, the journal and what is counted for metrics, replaced by nothing."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in _NOTHING]
    for owner, name, function in _NOTHING:
        setattr(owner, name, function)
    try:
        yield
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


def _handle(_: Broker, api: Api, ctx: Context, request: object) -> object:
    """Hand a request to its handler, without a look at faults."""
    handler = handler_of(api)
    try:
        return handler.handle(ctx, request)
    except ControllerUnreachable:
        return handler.refuse(request, ErrorCode.REQUEST_TIMED_OUT)


def _nothing(*_: object) -> None:
    pass


def _close(
    _: Journal, exchange: Exchange, chunks: list[Buffer] | None, _answer: object, _now_ms: int
) -> None:
    """As much as a connection needs to send answers in their order."""
    exchange.chunks = chunks
    exchange.done = True
    exchange.wait = None


def _observe(*_: object) -> Callable[..., None]:
    return _nothing


_NOTHING: Final = (
    (Broker, "handle", _handle),
    (Journal, "open", _nothing),
    (Journal, "close", _close),
    (Journal, "abandon", _nothing),
    (Journal, "observe", _observe),
    (Journal, "count_in_passing", _nothing),
)

# -- requests -------------------------------------------------------------------------------------


def list_offsets_request() -> bytes:
    """Asks for the end of the only partition."""
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    topic = ListOffsetsTopic(name=_TOPIC, partitions=(partition,))
    return _frame("list_offsets", 7, ListOffsetsRequest(topics=(topic,)))


def produce_request() -> bytes:
    """A full batch for the only partition, with acks=1."""
    record = NewRecord(timestamp=0, key=None, value=bytes(load.RECORD_BYTES))
    batch = encode_records([record] * BATCH_RECORDS)
    partition = PartitionProduceData(index=0, records=batch)
    topic = TopicProduceData(name=_TOPIC, partition_data=(partition,))
    return _frame("produce", 9, ProduceRequest(acks=1, timeout_ms=30_000, topic_data=(topic,)))


def fetch_request() -> bytes:
    """Asks for the first batch of the only partition."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=BATCH_BYTES)
    topic = FetchTopic(topic=_TOPIC, partitions=(partition,))
    request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=BATCH_BYTES, topics=(topic,))
    return _frame("fetch", 12, request)


def _frame(name: str, version: int, request: object) -> bytes:
    return b"".join(encode_request(BY_NAME[name], version, 1, "bench", request))
