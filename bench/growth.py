"""What the work costs as it grows: for each kind of growth a curve of the cost of a unit.

A level curve is a cost that grows as the work does; one that ends above where it was before
(:data:`STEEP`) is worse than linear. Costs are the server's processor time, but where time is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from bench import busy, disk, group_members, plot, process, report, servers, stats, wire
from bench.results import OURS
from bench.rounds import EXPECTED
from bench.wire_records import batch, decode_produce, produce_request

STEEP: Final = 1.5
"""How many times the lowest cost before makes the last one worse than linear."""
WORTH_S: Final = 0.3
"""Processor time that is enough to be measured: the kernel counts it in hundredths of a second."""
TOPIC_PARTITIONS: Final = 1_000
"""Of each of many topics."""
LOOKS: Final = 7
ROUNDS: Final = 400
"""The fewest of busy connections."""

BEGIN: Final = "<!-- growth: written by the benchmarks, do not edit -->"
END: Final = "<!-- end of growth -->"

Measure = Callable[[servers.Kind, int], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A cost of a unit: by what, in what, at which points, and beside which peers."""

    name: str
    title: str
    x_title: str
    y_title: str
    points: Sequence[int]
    small: Sequence[int]
    measure: Measure
    has_peer: bool = True


def is_steep(costs: Mapping[float, float]) -> bool:
    """Whether the last cost of a unit is above the lowest before it, by more than noise."""
    *before, last = [cost for _, cost in sorted(costs.items())]
    return bool(before) and last > STEEP * min(before)


def _spent(server: servers.Server, work: Callable[[], int]) -> float:
    """Microseconds of the server's processor for one of what ``work`` says that it has done.

    It is done again until that can be measured.
    """
    begin, done = process.cpu_seconds(server.pid), 0
    while True:
        done += work()
        spent = process.cpu_seconds(server.pid) - begin
        if spent >= WORTH_S:
            return spent * 1e6 / done


def _waiting_for_members(kind: servers.Kind) -> servers.Kind:
    """One whose first generation has all members that join within half a second."""
    if not isinstance(kind, servers.Fencepost):
        return kind
    return replace(kind, configs=("group.initial.rebalance.delay.ms=500",))


def _create(server: servers.Server, partitions: int) -> None:
    """Topics of at most :data:`TOPIC_PARTITIONS` partitions, one after the other."""
    for index, first in enumerate(range(0, partitions, TOPIC_PARTITIONS)):
        server.create((f"wide-{index}",), min(TOPIC_PARTITIONS, partitions - first))


def creation(kind: servers.Kind, partitions: int) -> float:
    """Microseconds of processor time a partition; Metadata of each new topic is part of it."""
    with servers.running(kind) as server:
        process.wait_until_idle(server.pid)
        before = process.cpu_seconds(server.pid)
        _create(server, partitions)
        return max(process.cpu_seconds(server.pid) - before, 0.01) * 1e6 / partitions


def metadata(kind: servers.Kind, partitions: int) -> float:
    """Microseconds of processor time a partition, of Metadata of all of them again and again."""
    request = wire.metadata_request(None)
    with servers.running(kind) as server:
        process.wait_until_idle(server.pid)
        _create(server, partitions)
        with server.connect() as connection:

            def work() -> int:
                for _ in range(LOOKS):
                    connection.ask(request)
                return LOOKS

            return _spent(server, work) / partitions


def produce_beside(kind: servers.Kind, partitions: int) -> float:
    """Microseconds a Produce of one record, in a cluster with so many partitions."""
    with servers.running(kind) as server:
        process.wait_until_idle(server.pid)
        _create(server, partitions)
        server.create_bench_topic()
        process.wait_until_idle(server.pid)
        return _produced(server, batch(1, 100))


def connections(kind: servers.Kind, count: int) -> float:
    """Microseconds a request, of so many connections that produce and fetch at once."""
    with servers.running(kind) as server:
        process.wait_until_idle(server.pid)
        server.create_bench_topic()
        with busy.clients(server, count, busy.RECORD_BYTES) as clients:
            busy.rounds(clients, 2 * count)

            def work() -> int:
                busy.rounds(clients, max(2 * count, ROUNDS))
                return 2 * max(2 * count, ROUNDS)

            return _spent(server, work)


def record_size(kind: servers.Kind, size: int) -> float:
    """Nanoseconds a byte, of batches with one record; most of a small one is its request."""
    return _produced_alone(kind, batch(1, size)) * 1e3 / size


def batch_size(kind: servers.Kind, records: int) -> float:
    """Microseconds a record of 100 bytes, of batches with so many."""
    return _produced_alone(kind, batch(records, 100)) / records


def _produced_alone(kind: servers.Kind, records: bytes) -> float:
    with servers.running(kind) as server:
        process.wait_until_idle(server.pid)
        server.create_bench_topic()
        return _produced(server, records)


def _produced(server: servers.Server, records: bytes) -> float:
    """Microseconds a batch, one after the other to one partition."""
    request = produce_request(servers.TOPIC, 0, records)
    with server.connect_to_leader(servers.TOPIC, 0) as connection:

        def work() -> int:
            for _ in range(50):
                answer = connection.ask(request)
            decode_produce(answer)
            return 50

        work()
        return _spent(server, work)


def members(kind: servers.Kind, count: int) -> float:
    """Microseconds a member, of a classic group in which all join at once.

    kfake has no part in it: its first generation had the first member alone.
    """
    with servers.running(_waiting_for_members(kind)) as server:
        process.wait_until_idle(server.pid)
        before = process.cpu_seconds(server.pid)
        group_members.rebalance(server, count)
        return max(process.cpu_seconds(server.pid) - before, 0.01) * 1e6 / count


def _opened(row: str) -> Measure:
    """Milliseconds a MiB of log, until a server that starts has answered where it ends."""

    def measure(kind: servers.Kind, mebibytes: int) -> float:
        return disk.measure(kind, mebibytes << 10)[row] / mebibytes

    return measure


CURVES: Final = (
    Curve(
        name="partitions-created",
        title="CreateTopics",
        x_title="partitions",
        y_title="us of CPU a partition",
        points=(10, 100, 1_000, 10_000, 50_000),
        small=(10, 100, 1_000),
        measure=creation,
    ),
    Curve(
        name="partitions-metadata",
        title="Metadata of all partitions",
        x_title="partitions",
        y_title="us of CPU a partition",
        points=(10, 100, 1_000, 10_000, 50_000),
        small=(10, 100, 1_000),
        measure=metadata,
    ),
    Curve(
        name="partitions-produce",
        title="Produce of one record beside idle partitions",
        x_title="partitions",
        y_title="us of CPU a request",
        points=(10, 1_000, 10_000, 50_000),
        small=(10, 1_000),
        measure=produce_beside,
    ),
    Curve(
        name="connections",
        title="Connections that produce and fetch at once",
        x_title="connections",
        y_title="us of CPU a request",
        points=(1, 10, 100, 1_000, 5_000),
        small=(1, 10, 100),
        measure=connections,
    ),
    Curve(
        name="record-size",
        title="Produce of one record",
        x_title="bytes of the record",
        y_title="ns of CPU a byte",
        points=(10, 100, 1_000, 10_000, 100_000, 1_000_000),
        small=(10, 1_000, 100_000),
        measure=record_size,
    ),
    Curve(
        name="batch-size",
        title="Produce of batches",
        x_title="records of 100 bytes in a batch",
        y_title="us of CPU a record",
        points=(1, 10, 100, 1_000, 9_000),
        small=(1, 100, 1_000),
        measure=batch_size,
    ),
    Curve(
        name="group-members",
        title="A rebalance of a group",
        x_title="members",
        y_title="us of CPU a member",
        points=(1, 10, 100, 1_000),
        small=(1, 10, 100),
        measure=members,
        has_peer=False,
    ),
    Curve(
        name="log-opened",
        title="Start with a log that was closed in order",
        x_title="MiB in files",
        y_title="ms a MiB",
        points=(10, 100, 1_000, 5_000),
        small=(10, 50),
        measure=_opened("files_open"),
        has_peer=False,
    ),
    Curve(
        name="log-recovered",
        title="Start with a log after kill -9",
        x_title="MiB in files",
        y_title="ms a MiB",
        points=(10, 100, 1_000, 5_000),
        small=(10, 50),
        measure=_opened("files_recover"),
        has_peer=False,
    ),
)


def digits(value: float) -> str:
    """Three of them, without an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def described(curve: Curve, costs: Mapping[str, Mapping[float, float]]) -> str:
    """A line for the page: the first and the last cost of each server, and whether it is worse."""
    parts = []
    for name, points in costs.items():
        if len(points) > 1:
            first, last = min(points), max(points)
            text = f"{name} {digits(points[first])} at {first:,.0f}"
            text += f" and {digits(points[last])} at {last:,.0f}"
            parts.append(f"{text}, **worse than linear**" if is_steep(points) else text)
    return f"{curve.title}, {curve.y_title}: {'; '.join(parts) or 'not measured'}."


def fastest(measure: Callable[[], float], rounds: int) -> float:
    """The lowest of some: what else runs on the machine only adds."""
    return stats.Spread.of([measure() for _ in range(rounds)]).low


def page(curves: Mapping[str, Mapping[str, Mapping[float, float]]], head: str) -> str:
    """What stands between the markers of the page, of the costs by curve and server."""
    parts = [head]
    for curve in CURVES:
        costs = curves.get(curve.name)
        if costs:
            parts.append(f"![{curve.title}](growth/{curve.name}.svg)\n\n{described(curve, costs)}")
    return "\n\n".join(parts)


def write(
    page_path: Path, curves: Mapping[str, Mapping[str, Mapping[float, float]]], head: str
) -> None:
    """Write a picture a curve into ``growth/`` beside the page, and the page's section."""
    folder = page_path.parent / "growth"
    folder.mkdir(exist_ok=True)
    for curve in CURVES:
        costs = curves.get(curve.name)
        if costs:
            picture = plot.svg(curve.title, curve.x_title, curve.y_title, costs)
            (folder / f"{curve.name}.svg").write_text(picture)
    report.write(page_path, page(curves, head), BEGIN, END)


def run(
    chosen: Sequence[Curve],
    kinds: Sequence[servers.Kind],
    *,
    small: bool,
    rounds: int,
    say: Callable[[str], None],
) -> dict[str, dict[str, dict[float, float]]]:
    """Measure the curves; a point that a server fails at is left out, and said."""
    found: dict[str, dict[str, dict[float, float]]] = {}
    for curve in chosen:
        by_kind = found.setdefault(curve.name, {})
        for x in curve.small if small else curve.points:
            for kind in kinds:
                if kind.key != OURS and not curve.has_peer:
                    continue
                try:
                    cost = fastest(partial(curve.measure, kind, x), rounds)
                except EXPECTED as problem:
                    say(f"{curve.name} {x} {kind.key}: {problem}")
                    continue
                by_kind.setdefault(kind.title, {})[x] = cost
                say(f"{curve.name} {x} {kind.key}: {cost:,.3f} {curve.y_title}")
        found[curve.name] = {name: points for name, points in by_kind.items() if points}
    return found
