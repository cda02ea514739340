"""The report of a simulation: totals, and of each failure the invariant and a small schedule."""

import gc
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct, field

from fencepost.simulation.invariants import INVARIANTS
from fencepost.simulation.runner import Failure, Outcome, run_seed

_WIDTH = 100
_YOUNGEST: Final = 0
"""The generation of all objects that no collection has looked at."""


class RunTotals(Struct, frozen=True, kw_only=True):
    """The results of several seeds."""

    seeds: int = 0
    steps: int = 0
    messages: int = 0
    tainted: int = 0
    """Seeds in which a partition was allowed to lose records."""
    admitted: Counter[str] = field(default_factory=Counter)
    """What the proposals let consumers miss, how often each was met, by name."""
    failures: tuple[tuple[int, Failure], ...] = ()
    """Seeds that broke an invariant."""

    def __add__(self, other: "RunTotals") -> "RunTotals":
        return RunTotals(
            seeds=self.seeds + other.seeds,
            steps=self.steps + other.steps,
            messages=self.messages + other.messages,
            tainted=self.tainted + other.tainted,
            admitted=self.admitted + other.admitted,
            failures=self.failures + other.failures,
        )


def run_seeds(
    seeds: Iterable[int],
    steps: int,
    *,
    consumers: bool = False,
    transactions: bool = False,
    gate: bool = True,
) -> RunTotals:
    """Run seeds one after the other, to the end of all.

    :param consumers: Whether there are applications with consumers.
    :param transactions: Whether there are transactional producers instead.
    :param gate: Whether the gate of KIP-207 is on.
    """
    total = RunTotals()
    with _collector_at_rest():
        for seed in seeds:
            outcome = run_seed(
                seed, steps, consumers=consumers, transactions=transactions, gate=gate
            )
            total += totals_of(seed, outcome)
            gc.collect(_YOUNGEST)
    return total


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Let no garbage be collected unasked.

    While a cluster lives nearly all that it has made is in use: a collector would go through it
    time and again, and find next to nothing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def totals_of(seed: int, outcome: Outcome) -> RunTotals:
    """The result of one seed, counted."""
    return RunTotals(
        seeds=1,
        steps=len(outcome.schedule.actions),
        messages=outcome.messages,
        tainted=int(outcome.tainted > 0),
        admitted=Counter(outcome.admitted),
        failures=() if outcome.failure is None else ((seed, outcome.failure),),
    )


def describe_shrunk(outcome: Outcome, smallest: Outcome) -> str:
    """An invariant that broke: its meaning, the state seen, and a small schedule that shows it."""
    failure, small = outcome.failure, smallest.failure
    if failure is None or small is None:
        return "every invariant held"
    long, short = len(outcome.schedule.actions), len(smallest.schedule.actions)
    lines = [
        *_failure_lines(failure, long),
        f"  a minimal schedule, {short} of {long} actions, after which was seen:",
        *textwrap.wrap(
            small.observed,
            _WIDTH,
            initial_indent=" " * 13,
            subsequent_indent=" " * 13,
            break_on_hyphens=False,
        ),
        textwrap.indent(str(smallest.schedule), "    "),
    ]
    return "\n".join(lines)


def describe_failure(outcome: Outcome) -> str:
    """An invariant that broke: what must hold, and what was seen."""
    if outcome.failure is None:
        return "every invariant held"
    return "\n".join(_failure_lines(outcome.failure, len(outcome.schedule.actions)))


def _failure_lines(failure: Failure, step: int) -> list[str]:
    return [
        f"{failure.invariant} broke at step {step}",
        f"  must hold: {invariant_meaning(failure.invariant)}",
        *textwrap.wrap(
            f"seen:      {failure.observed}",
            _WIDTH,
            initial_indent="  ",
            subsequent_indent=" " * 13,
            break_on_hyphens=False,
        ),
    ]


def invariant_meaning(invariant: str) -> str:
    """What an invariant says, in one sentence."""
    found = next(each for each in INVARIANTS if each.__name__ == invariant)
    return (found.__doc__ or "").partition("\n")[0]


def summary(total: RunTotals, seconds: float, jobs: int) -> str:
    """The last line: how much was run, how fast, and whether all held.

    :param seconds: How long it took.
    :param jobs: How many processes ran it.
    """
    speed = f"{total.steps / max(seconds, 1e-9):,.0f} steps a second in {_count(jobs, 'process')}"
    ran = f"{_count(total.seeds, 'seed')}, {total.steps:,} steps, {total.messages:,} messages"
    if total.admitted:
        met = sorted(total.admitted.items())
        ran += f", admitted {', '.join(f'{name} {count:,}' for name, count in met)}"
    if not total.failures:
        return f"{ran}: every invariant held ({speed})"
    broken = sorted({failure.invariant for _, failure in total.failures})
    return f"{ran}: {', '.join(broken)} broke in {_count(len(total.failures), 'seed')} ({speed})"


def _count(number: int, thing: str) -> str:
    if number == 1:
        return f"1 {thing}"
    return f"{number:,} {thing}{'es' if thing.endswith('s') else 's'}"
