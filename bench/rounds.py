"""The order of a run: round after round of all figures, and within a figure all servers in turn.

So a slow minute of the machine is in one round of some figures, not in all rounds of one; and a
ratio is of two values that were measured one right after the other. The first round has every
figure; the later ones have those that still fit into the time, by how long they took before.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench import figures, load, mixed, process, servers, suite, tools, wire
from bench.catalogue import Figure
from bench.results import OURS, Results

EXPECTED = (
    servers.DidNotStart,
    wire.BadAnswer,
    load.LoadFailed,
    mixed.RoleFailed,
    suite.SuiteFailed,
    OSError,
    subprocess.SubprocessError,
)
"""What a server under test may do to a figure; it costs that value and not the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """In how many rounds a server takes part at most, and as which peer; None is fencepost."""

    kind: servers.Kind
    peer: str | None
    most: int


def run(
    chosen: Sequence[Figure],
    turns: Sequence[Turns],
    scale: figures.Scale,
    results: Results,
    *,
    until: float,
    say: Callable[[str], None],
    now: Callable[[], float] = time.monotonic,
) -> None:
    """Measure.

    :param until: When nothing may be begun any more, or go on, as far as that is known; of ``now``.
    """
    took: dict[str, float] = {}
    for turn in range(max((each.most for each in turns), default=0)):
        for figure in chosen:
            begin = now()
            if begin + took.get(figure.name, 0) > until:
                if turn == 0:
                    results.problems.append(f"{figure.name} was not measured: there was no time")
                continue
            for each in turns:
                if turn < each.most and (each.peer is None or each.peer in figure.peers):
                    _measure(figure, each.kind, turn, scale, results, say)
            took[figure.name] = now() - begin


def _measure(
    figure: Figure,
    kind: servers.Kind,
    turn: int,
    scale: figures.Scale,
    results: Results,
    say: Callable[[str], None],
) -> None:
    label = f"{figure.name} {turn + 1} {kind.key}"
    others = process.Others()
    try:
        values = figure.measure(kind, scale)
    except (*EXPECTED, tools.Missing) as problem:
        say(f"{label}: {problem}")
        results.failed |= kind.key == OURS
        results.problems.append(
            f"{kind.title}, {figure.name}, round {turn + 1}: {type(problem).__name__}"
        )
        return
    results.add(kind.key, turn, values)
    results.others.append(others.share())
    say(f"{label}: " + ", ".join(f"{key} {value:,.2f}" for key, value in values.items()))
