"""The longest pause of the event loop while clients do everything at once.

Beside the clients of :mod:`bench.mixed_client` a raw one asks for ListOffsets without a break. The
pauses are seen from within (:mod:`bench.watched`), and from outside as its longest round trip; both
count what other processes take from the server, the clients above all. The processor time between
two pulses counts nothing but the server.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from bench import process, servers, stats, watched, wire
from bench.mixed_client import PARTITIONS, PATIENCE_S, ROLES, STOP_S, TOPIC, TRANSACTIONS

CONFIGS: Final = ("group.initial.rebalance.delay.ms=0",)
REPLICAS: Final = 3


class RoleFailed(Exception):
    """A client came to nothing, or had an error that it should not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """How often each role did its work, and the errors by name."""

    done: Mapping[str, int]
    errors: Mapping[str, int]

    def check(self) -> None:
        """:raises RoleFailed: When a role did nothing."""
        missing = [role for role in ROLES if not self.done.get(role)]
        if missing:
            raise RoleFailed(f"nothing was {', '.join(missing)}; errors: {dict(self.errors)}")


class Clients:
    """The program of the clients, while it runs."""

    def __init__(self, bootstrap: str, seconds: float) -> None:
        self._seconds = seconds
        command = [sys.executable, "-m", "bench.mixed_client", bootstrap, str(seconds)]
        self._child = subprocess.Popen(command, stdout=subprocess.PIPE)

    @property
    def is_running(self) -> bool:
        return self._child.poll() is None

    def wait(self) -> Moved:
        """Until they end by themselves.

        :raises RoleFailed: When they fail.
        """
        limit = self._seconds + PATIENCE_S + 2 * STOP_S
        try:
            output, _ = self._child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.stop(self._child, at_once=True)
            raise RoleFailed("the clients did not end") from None
        if self._child.returncode:
            raise RoleFailed(f"the clients ended with {self._child.returncode}")
        return Moved(**json.loads(output))


def measure(kind: servers.Kind, seconds: float) -> Mapping[str, float]:
    """Milliseconds, over so many seconds of load.

    :raises RoleFailed: When a client has an error, or does nothing.
    """
    assert isinstance(kind, servers.Fencepost)
    kind = replace(kind, watched=True, configs=CONFIGS)
    with servers.running(kind) as server:
        process.wait_until_idle(server.pid)
        for topic in (TOPIC, TRANSACTIONS):
            server.create((topic,), PARTITIONS, REPLICAS)
        begin = time.monotonic()
        clients = Clients(server.bootstrap, seconds)
        with process.no_collector():
            times = _round_trips(server, clients)
        moved = clients.wait()
        moved.check()
        if moved.errors:
            raise RoleFailed(f"errors: {moved.errors}")
        seen = [each for each in watched.read(server.launch.pulses) if each.at_s > begin]
    return {
        "mixed_pause": max(each.pause_ms for each in seen),
        "mixed_busy": max(each.busy_ms for each in seen),
        "mixed_p50": stats.percentile(times, 50),
        "mixed_p99": stats.percentile(times, 99),
        "mixed_max": max(times) / 1e3,
    }


def _round_trips(server: servers.Server, clients: Clients) -> list[float]:
    """Microseconds of each ListOffsets, one after the other, while the clients run."""
    request = wire.list_offsets_request(TOPIC, 0)
    times = []
    with server.connect_to_leader(TOPIC, 0) as connection:
        while clients.is_running:
            for _ in range(100):
                begin = time.perf_counter_ns()
                answer = connection.ask(request)
                times.append((time.perf_counter_ns() - begin) / 1e3)
            wire.decode_list_offsets(answer)
    return times
