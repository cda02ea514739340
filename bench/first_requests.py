"""ListOffsets from the first request on: nothing is warmed up, as for a test that just began.

The clock of each round trip is the client's. The requests go over one connection, one after the
other, first as soon as the server says that it is ready, then five seconds after that.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from bench import process, servers, stats, wire

LATER_S: Final = 5.0


def measure(kind: servers.Kind, requests: int) -> Mapping[str, float]:
    """Microseconds; the topic is there from the start, so that no request comes before these.

    But for Metadata, by which the harness sees the server begin and the client finds its leader.
    """
    if isinstance(kind, servers.Fencepost):
        topic = f"{servers.TOPIC}:{servers.PARTITIONS}:1"
        kind = replace(kind, topics=(topic,), seeds_topic=True)
    with servers.running(kind) as server:
        server.wait_until_ready()
        begin = time.monotonic()
        first = _round_trips(server, requests)
        time.sleep(max(begin + LATER_S - time.monotonic(), 0))
        later = _round_trips(server, requests)
    return {
        f"{name}_{statistic}": stats.percentile(times, percent)
        for name, times in (("first_requests", first), ("later_requests", later))
        for statistic, percent in (("p50", 50), ("p99", 99), ("p999", 99.9))
    }


def _round_trips(server: servers.Server, count: int) -> list[float]:
    """Microseconds of each, the first one included."""
    request = wire.list_offsets_request(servers.TOPIC, 0)
    times = []
    with server.connect_to_leader(servers.TOPIC, 0) as connection, process.no_collector():
        for _ in range(count):
            begin = time.perf_counter_ns()
            answer = connection.ask(request)
            times.append((time.perf_counter_ns() - begin) / 1e3)
    wire.decode_list_offsets(answer)
    return times
