"""What the fault layer, the journal and metrics cost: one server, with them and without.

They are taken away and put back again and again, in a server that is `inside` this process.

There is no network and no client in these times. So what the layers add to a request with a full
batch is set against the time that one takes at the C client's throughput.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from bench import inside, load, process, servers
from bench.inside import BATCH_BYTES, BATCH_RECORDS, TOPIC, Inside, Pair, cost
from fencepost.broker.core.context import Context
from fencepost.broker.handlers import handler_of
from fencepost.broker.node.broker import Broker
from fencepost.broker.server.journal import Exchange, Journal
from fencepost.broker.server.run import tune_garbage_collection
from fencepost.protocol.apis import Api
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from fencepost.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

LOADS_SHARE: Final = 50
"""Of requests with records, one to so many without."""


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
    tune_garbage_collection()
    produce, fetch = produce_request(), fetch_request()
    filled = Inside()
    filled.ask(produce)
    loads = requests // LOADS_SHARE
    return {
        "layers_request": cost(pairs(Inside(), list_offsets_request(), requests)),
        "layers_produce": share(cost(pairs(Inside(), produce, loads)), produced),
        "layers_consume": share(cost(pairs(filled, fetch, loads)), consumed),
    }


def share(cost_us: float, moved: load.Moved) -> float:
    """How many percent a cost is of the time in which a full batch was moved."""
    return cost_us / (BATCH_RECORDS * 1e6 / moved.per_second) * 100


def pairs(server: Inside, request: bytes, count: int) -> list[Pair]:
    """Hand it over so often in all, with the layers and without."""
    each = max(count // (2 * inside.PORTIONS), 1)

    def whole() -> float:
        return inside.mean_us(lambda: server.ask(request), each)

    def stripped() -> float:
        with without_layers():
            return whole()

    return inside.in_turns(whole, stripped)


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


def _handle(_: Broker, api: Api, ctx: Context[Broker], request: object) -> object:
    """Hand a request to its handler, without a look at faults."""
    return handler_of(api).handle(ctx, request)


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
    (Journal, "count_if_many", _nothing),
)

# -- requests -------------------------------------------------------------------------------------


def list_offsets_request() -> bytes:
    """Asks for the end of the only partition."""
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    topic = ListOffsetsTopic(name=TOPIC, partitions=(partition,))
    return inside.frame("list_offsets", 7, ListOffsetsRequest(topics=(topic,)))


def produce_request() -> bytes:
    """A full batch for the only partition, with acks=1."""
    return inside.produce_request(inside.batch_of(BATCH_RECORDS))


def fetch_request() -> bytes:
    """Asks for the first batch of the only partition."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=BATCH_BYTES)
    topic = FetchTopic(topic=TOPIC, partitions=(partition,))
    request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=BATCH_BYTES, topics=(topic,))
    return inside.frame("fetch", 12, request)
