"""What the fault layer, the journal and metrics cost: fencepost beside itself without them.

Both run at the same time and do the same work in short turns, one right after the other, so that a
slow moment of the machine meets both. A cost is of two values of the same turn. Of two servers that
are the same, the one that started first is slower by some percent, and so each is the first for
half of the turns.
"""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bench import load, process, servers, stats, wire

PRODUCE_TURNS = 15
"""Of each half, in which all of its records are produced: many short ones tell more than a few long
ones, since two turns of one and the same server differ by a tenth."""
CONSUME_TURNS = 8
CONSUMED_SHARE = 3
"""A turn consumes one part in so many of all records."""
PORTIONS = 40
"""Of round trips."""
WARM_UP = 3_000
BARE = "bench.bare"

Work = Callable[[servers.Server], load.Moved]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One load on one server: records a second, and the server's CPU seconds."""

    per_second: float
    cpu: float


def measure(kind: servers.Fencepost, *, records: int, requests: int) -> Mapping[str, float]:
    """Costs in percent, and in microseconds a request; below 0 where they drown in noise.

    :param records: Of all turns together, for each server.
    :param requests: For each server.
    """
    bare = dataclasses.replace(kind, key="bare", title="fencepost, bare", module=BARE)
    halves = [
        _half(kinds, records=records // 2, requests=requests // 2)
        for kinds in ((kind, bare), (bare, kind))
    ]
    produced = [pair for half in halves for pair in half.produced]
    consumed = [pair for half in halves for pair in half.consumed]
    request = statistics.mean(half.request for half in halves)
    return {
        "layers_request": request,
        "layers_produce": slowdown(produced),
        "layers_produce_cpu": extra_cpu(produced),
        "layers_consume": slowdown(consumed),
        "layers_consume_cpu": extra_cpu(consumed),
    }


Pairs = Sequence[tuple[Turn, Turn]]
"""With the layers, without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Half:
    """What was measured while one of the two was the first to start."""

    request: float
    produced: Pairs
    consumed: Pairs


def _half(kinds: Sequence[servers.Fencepost], *, records: int, requests: int) -> Half:
    with servers.running(kinds[0]) as first, servers.running(kinds[1]) as second:
        for server in (first, second):
            process.wait_until_idle(server.pid)
            server.create_bench_topic()
            load.produce(load.Client.C, server, WARM_UP)
        pair = (second, first) if kinds[0].module == BARE else (first, second)
        request = _request_cost(pair, requests)
        produced, consumed = _loads(pair, records)
    return Half(request=request, produced=produced, consumed=consumed)


def slowdown(pairs: Pairs) -> float:
    """By how many percent throughput is lower with the layers: the median of the turns."""
    return statistics.median(
        (1 - whole.per_second / stripped.per_second) * 100 for whole, stripped in pairs
    )


def extra_cpu(pairs: Pairs) -> float:
    """How many percent more CPU time the layers take, over all turns: single ones are short.

    :raises ZeroDivisionError: When there was too little work to take any.
    """
    whole = sum(turn.cpu for turn, _ in pairs)
    stripped = sum(turn.cpu for _, turn in pairs)
    return (whole / stripped - 1) * 100


def _loads(pair: Sequence[servers.Server], records: int) -> tuple[Pairs, Pairs]:
    """All records produced, a few in each turn; then again and again the first of them consumed."""
    produce = partial(_produce, records=records // PRODUCE_TURNS)
    consume = partial(_consume, records=records // CONSUMED_SHARE)
    produced = [_both(pair, turn, produce) for turn in range(PRODUCE_TURNS)]
    consumed = [_both(pair, turn, consume) for turn in range(CONSUME_TURNS)]
    return produced, consumed


def _produce(server: servers.Server, *, records: int) -> load.Moved:
    return load.produce(load.Client.C, server, records)


def _consume(server: servers.Server, *, records: int) -> load.Moved:
    return load.consume(load.Client.C, server, records)


def _both(pair: Sequence[servers.Server], turn: int, work: Work) -> tuple[Turn, Turn]:
    """Each server is the first as often as the other."""
    found = {}
    for server in pair if turn % 2 == 0 else reversed(pair):
        before = process.cpu_seconds(server.pid)
        moved = work(server)
        cpu = process.cpu_seconds(server.pid) - before
        found[server.pid] = Turn(per_second=moved.per_second, cpu=cpu)
    whole, stripped = (found[server.pid] for server in pair)
    return whole, stripped


def _request_cost(pair: Sequence[servers.Server], requests: int) -> float:
    """How many microseconds longer a round trip of ListOffsets takes, at the median."""
    request = wire.list_offsets_request(servers.TOPIC, 0)
    times: tuple[list[float], list[float]] = ([], [])
    with contextlib.ExitStack() as opened, process.no_collector():
        connections = [
            opened.enter_context(server.connect_to_leader(servers.TOPIC, 0)) for server in pair
        ]
        both = list(zip(connections, times, strict=True))
        for portion in range(PORTIONS):
            for connection, found in both if portion % 2 == 0 else reversed(both):
                for _ in range(requests // PORTIONS):
                    begin = time.perf_counter_ns()
                    connection.ask(request)
                    found.append((time.perf_counter_ns() - begin) / 1e3)
    whole, stripped = (stats.percentile(found, 50) for found in times)
    return whole - stripped
