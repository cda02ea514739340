"""A soak: mixed load for long, while leaders change, brokers fail, faults hit and the tier is used.

It goes in cycles. In each the clients of :mod:`bench.mixed_client` work while one disturbance comes
after the other; then they end, the server is looked at (*used*), it is reset, and looked at again
(*empty*). So looks of the same stage can be compared, however long it takes.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench import fixed_work, process, servers, watched
from bench.control import Control
from bench.disturbances import Disturbances
from bench.mixed import Clients, Moved
from bench.mixed_client import PARTITIONS, TOPIC, TRANSACTIONS

VARIABLE: Final = "FENCEPOST_SOAK_S"
HOUR_S: Final = 3600.0
CYCLES: Final = 20
SHORTEST_S: Final = 8.0
"""Of a cycle."""
DISTURB_S: Final = 0.5
SETTLE_S: Final = 2.2
"""Before a look: closed connections are gone, memory is freed, and two lines of pulses written."""
EARLY: Final = 0.1
"""The share of the looks after which nothing may grow any more, nor be imported any more."""
GROWTH: Final = 1.02
AROUND: Final = 3
"""Looks of which the median counts: what the trace has differs from one to the next."""
PAUSE_MS: Final = 10.0
"""Of the loop's own; what the machine adds to it by itself is measured beside it."""
SEGMENT_BYTES: Final = 1 << 20
STAGES: Final = ("used", "empty")
OPTIONS: Final = ("--remote", "memory:", "--max-memory", "1g")
CONFIGS: Final = (
    "group.initial.rebalance.delay.ms=0",
    "log.retention.check.interval.ms=1000",
    "log.initial.task.delay.ms=0",
    "remote.log.manager.task.interval.ms=1000",
)
TOPICS: Final = {
    TOPIC: {
        "remote.storage.enable": "true",
        "segment.bytes": str(SEGMENT_BYTES),
        "local.retention.bytes": str(2 * SEGMENT_BYTES),
        "retention.bytes": str(6 * SEGMENT_BYTES),
    },
    TRANSACTIONS: {
        "segment.bytes": str(SEGMENT_BYTES),
        "retention.bytes": str(2 * SEGMENT_BYTES),
    },
}
"""What bounds them is reached within a short cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The server at the end of a stage.

    :param resident: MiB; ``free``: those of them that the C library keeps free.
    :param pause_ms: The longest pause of the loop since the look before; ``busy_ms``: the most
        processor time of the loop without a pause.
    :param machine_ms: How much longer than usual a piece of work that is always the same took at
        most, in a process of its own.
    """

    stage: str
    at_s: float
    resident: float
    free: float
    descriptors: int
    tasks: int
    pause_ms: float
    busy_ms: float
    machine_ms: float

    @property
    def in_use(self) -> float:
        """MiB of memory that holds something, or that Python's own allocator keeps."""
        return self.resident - self.free


@dataclass(slots=True, kw_only=True)
class Soak:
    """What was seen."""

    looks: list[Look] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    """What clients did."""
    errors: Counter[str] = field(default_factory=Counter)
    """What clients met: they are disturbed."""
    disturbed: Counter[str] = field(default_factory=Counter)
    exceptions: list[str] = field(default_factory=list)
    """Lines of the server's log."""

    def at(self, stage: str) -> list[Look]:
        return [look for look in self.looks if look.stage == stage]

    def problems(self) -> Iterator[str]:
        """What must not be, however fast the machine is."""
        yield from (f"the server logged: {line}" for line in self.exceptions)
        empty = self.at("empty")
        for name in ("descriptors", "tasks"):
            values = [getattr(look, name) for look in empty]
            if max(values) > values[0]:
                yield f"{name} of an empty server rose: {values}"

    def problems_in_time(self) -> Iterator[str]:
        """What must not be in a run that is long enough, on a machine that has nothing else."""
        for stage in STAGES:
            sizes = [look.in_use for look in self.at(stage)]
            early = int(len(sizes) * EARLY)
            then = statistics.median(sizes[early : early + AROUND])
            last = statistics.median(sizes[-AROUND:])
            if last > then * GROWTH:
                yield f"memory of the {stage} server rose from {then:.1f} to {last:.1f} MiB"
        later = self.looks[max(int(len(self.looks) * EARLY), 1) :]
        busy, machine = (max(values) for values in zip(*map(_times, later), strict=True))
        if busy > PAUSE_MS + machine:
            yield (
                f"the loop computed for {busy:.1f} ms at once, where the machine takes up to "
                f"{machine:.1f} ms more than usual for the same work"
            )


def _times(look: Look) -> tuple[float, float]:
    return look.busy_ms, look.machine_ms


def run(seconds: float, say: Callable[[str], None] = lambda _: None) -> Soak:
    """Let a server of its own work for so long.

    :raises bench.mixed.RoleFailed: When a client comes to nothing in a cycle.
    """
    cycle_s = max(seconds / CYCLES, SHORTEST_S)
    end = time.monotonic() + seconds
    kind = servers.Fencepost(watched=True, configs=CONFIGS, options=OPTIONS)
    soak = Soak()
    with (
        servers.running(kind) as server,
        Control(server) as control,
        fixed_work.running(_machine(server)),
    ):
        disturbances = Disturbances(control, seed=1)
        begin = time.monotonic()
        while not soak.looks or time.monotonic() + cycle_s / 2 < end:
            moved = _cycle(server, control, disturbances, cycle_s)
            soak.done.update(moved.done)
            soak.errors.update(moved.errors)
            for stage in STAGES:
                if stage == "empty":
                    control.ask("POST", "/v1/reset")
                since = begin + soak.looks[-1].at_s if soak.looks else begin
                soak.looks.append(_look(server, stage, begin, since))
                say(described(soak.looks[-1]))
        soak.disturbed = disturbances.done
        soak.exceptions += exceptions(server.launch.output.read_text(errors="replace"))
    return soak


def _cycle(
    server: servers.Server, control: Control, disturbances: Disturbances, seconds: float
) -> Moved:
    for name, configs in TOPICS.items():
        topic = {"name": name, "partitions": PARTITIONS, "replication_factor": servers.BROKERS}
        control.ask("POST", "/v1/topics", {**topic, "configs": configs})
    clients = Clients(server.bootstrap, seconds)
    # The last quarter is undisturbed, so that every role comes to its work.
    calm = time.monotonic() + seconds * 3 / 4
    while clients.is_running and time.monotonic() < calm:
        time.sleep(DISTURB_S)
        disturbances.next()
    disturbances.mend()
    control.ask("DELETE", "/v1/faults")
    control.ask("DELETE", "/v1/tier/faults")
    moved = clients.wait()
    moved.check()
    return moved


def _look(server: servers.Server, stage: str, begin: float, since: float) -> Look:
    time.sleep(SETTLE_S)
    seen = [each for each in watched.read(server.launch.pulses) if each.at_s > since]
    of_machine = [each for each in fixed_work.read(_machine(server)) if each.at_s > since]
    return Look(
        stage=stage,
        at_s=time.monotonic() - begin,
        resident=process.memory(server.pid).resident,
        free=seen[-1].free,
        descriptors=len(list(Path(f"/proc/{server.pid}/fd").iterdir())),
        tasks=seen[-1].tasks,
        pause_ms=max(each.pause_ms for each in seen),
        busy_ms=max(each.busy_ms for each in seen),
        machine_ms=max(each.excess_ms for each in of_machine),
    )


def _machine(server: servers.Server) -> Path:
    """What :mod:`bench.fixed_work` writes."""
    return server.launch.directory / "fixed-work"


def exceptions(log: str) -> list[str]:
    """The lines of a server's log that tell of a mistake of its own."""
    found = []
    for line in log.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            found.append(line)  # a traceback, or a warning of Python
            continue
        if entry.get("level") in ("error", "critical") or "exception" in entry:
            found.append(line)
    return found


def described(look: Look) -> str:
    return (
        f"{look.at_s:6.0f} s, {look.stage}: {look.in_use:.1f} MiB of {look.resident:.1f}, "
        f"{look.descriptors} descriptors, {look.tasks} tasks, "
        f"pause {look.pause_ms:.1f} ms, busy {look.busy_ms:.1f} ms, "
        f"machine {look.machine_ms:.1f} ms"
    )


def seconds_wanted(default: float) -> float:
    """Of the environment variable, or the default."""
    return float(os.environ.get(VARIABLE) or default)


def main() -> int:
    """Run for an hour, or as long as the variable says; 1 when something was wrong."""
    soak = run(seconds_wanted(HOUR_S), lambda line: print(line, flush=True))
    for title, counts in (
        ("clients did", soak.done),
        ("clients met", soak.errors),
        ("disturbances", soak.disturbed),
    ):
        print(f"{title}: " + ", ".join(f"{name} {n:,}" for name, n in counts.most_common()))
    problems = [*soak.problems(), *soak.problems_in_time()]
    print("\n".join(problems) or "nothing was wrong")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
