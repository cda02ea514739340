"""``fencepost simulate``: the core on a virtual clock and a simulated network, driven by seeds.

Seeds are independent of each other, and so shared out to processes. Only here is anything measured
in real time: how fast it goes.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer
from msgspec import Struct

from fencepost.cli.output import complain, show_text
from fencepost.cli.simulate_progress import Progress
from fencepost.cli.usage_errors import WRONG_USE, InvalidUsage

if TYPE_CHECKING:
    from fencepost.simulation.report import RunTotals
    from fencepost.simulation.runner import Outcome

DEFAULT_SEEDS = 1000
DEFAULT_STEPS = 1000
DEFAULT_MINUTES = 10.0
CHUNK = 20
"""Seeds that a process takes at a time."""
INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as a shell has it."""
OPTIONS_BY_MODE: Final[Mapping[str | None, Sequence[str]]] = {
    "record": ("seed", "minutes", "as_is"),
    "schedule": (),
    "transactions": ("seeds", "seed", "steps", "jobs", "no_gate"),
    None: ("seeds", "seed", "steps", "jobs", "consumers", "no_gate"),
}
"""The options that have an effect, by the option that selects the kind of run."""


def register(app: typer.Typer) -> None:
    """Add the command to the others."""
    app.command()(simulate)


def simulate(
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds",
            metavar="N",
            min=1,
            envvar="FENCEPOST_SEEDS",
            help="How many seeds.",
            show_default=f"{DEFAULT_SEEDS}, or 1 with --seed",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="S",
            min=0,
            envvar="FENCEPOST_SEED",
            help="The first seed; without --seeds the only one.",
            show_default="0",
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps",
            metavar="M",
            min=0,
            envvar="FENCEPOST_STEPS",
            help="Steps of each seed.",
            show_default=f"{DEFAULT_STEPS}",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            metavar="N",
            min=1,
            envvar="FENCEPOST_JOBS",
            help="Processes that share the seeds.",
            show_default="as many as there are processors",
        ),
    ] = None,
    consumers: Annotated[
        bool,
        typer.Option(
            "--consumers",
            envvar="FENCEPOST_CONSUMERS",
            help="Each seed has applications with consumers too, of KIP-320 or of its earlier "
            "draft, and logs are truncated more often.",
        ),
    ] = False,
    transactions: Annotated[
        bool,
        typer.Option(
            "--transactions",
            envvar="FENCEPOST_TRANSACTIONS",
            help="Each seed has transactional producers and read_committed consumers too, and "
            "coordinators that fail over.",
        ),
    ] = False,
    no_gate: Annotated[
        bool,
        typer.Option(
            "--no-gate",
            envvar="FENCEPOST_NO_GATE",
            help="Switch the gate of KIP-207 off, to see what it prevents.",
        ),
    ] = False,
    schedule: Annotated[
        Path | None,
        typer.Option(
            "--schedule",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            envvar="FENCEPOST_SCHEDULE",
            help="Run this schedule, as a failing seed prints it, instead of seeds.",
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="DIR",
            file_okay=False,
            envvar="FENCEPOST_RECORD",
            help="Run one seed with every fault on, and write to DIR what a served cluster would: "
            "data, tier and trace.",
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes",
            metavar="M",
            min=0,
            envvar="FENCEPOST_MINUTES",
            help="With --record: the simulated time.",
            show_default=f"{DEFAULT_MINUTES:g}",
        ),
    ] = None,
    as_is: Annotated[
        bool,
        typer.Option(
            "--as-is",
            envvar="FENCEPOST_AS_IS",
            help="With --record: leave all as it is in the end, as by kill -9, instead of mending "
            "it and ending in order.",
        ),
    ] = False,
) -> None:
    """Run simulated clusters under random schedules, and check the invariants at every step.

    Exits with 0 when every invariant held, with 1 when one broke: then a minimal schedule is
    printed that breaks it too. Ctrl-C ends it with what it has so far, and exit code 130.
    """
    _refuse_ignored_options(
        schedule=schedule,
        record=record,
        seeds=seeds,
        seed=seed,
        steps=steps,
        jobs=jobs,
        consumers=consumers or None,
        transactions=transactions or None,
        no_gate=no_gate or None,
        minutes=minutes,
        as_is=as_is or None,
    )
    started = time.perf_counter()
    used = 1
    is_interrupted = False
    if record is not None:
        wanted = DEFAULT_MINUTES if minutes is None else minutes
        total = _record(record, seed or 0, wanted, heals=not as_is)
    elif schedule is not None:
        total = _play(schedule)
    else:
        first = seed or 0
        count = seeds or (DEFAULT_SEEDS if seed is None else 1)
        used = min(jobs or os.cpu_count() or 1, -(-count // CHUNK))
        wanted_steps = DEFAULT_STEPS if steps is None else steps
        kind = _RunKind(
            steps=wanted_steps, consumers=consumers, transactions=transactions, gate=not no_gate
        )
        total, is_interrupted = _run(range(first, first + count), used, kind)
    from fencepost.simulation.report import summary

    show_text(summary(total, time.perf_counter() - started, used))
    raise typer.Exit(1 if total.failures else INTERRUPTED if is_interrupted else 0)


def _refuse_ignored_options(**options: object) -> None:
    """What has no effect on the run that is asked for.

    :param options: None for what was not given.
    :raises InvalidUsage: When something was.
    """
    given = {name for name, value in options.items() if value is not None}
    kind = next((each for each in OPTIONS_BY_MODE if each in given), None)
    unheeded = [name for name in options if name in given - {kind, *OPTIONS_BY_MODE[kind]}]
    if unheeded:
        run = "a run of seeds" if kind is None else f"--{kind}"
        heeded = ", ".join(map(_flag, OPTIONS_BY_MODE[kind])) or "no other option"
        raise InvalidUsage(f"{_flag(unheeded[0])} has no effect on {run}, which heeds {heeded}")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _play(path: Path) -> "RunTotals":
    """Play a schedule from a file."""
    from fencepost.simulation.report import totals_of
    from fencepost.simulation.runner import replay
    from fencepost.simulation.schedule import parse
    from fencepost.simulation.setup import ScheduleError

    try:
        wanted = parse(path.read_text())
    except (ScheduleError, UnicodeDecodeError) as error:
        complain(f"fencepost: {path}: {error}")
        raise typer.Exit(WRONG_USE) from None
    outcome = replay(wanted)
    _show_failure(str(path), outcome)
    show_text(f"trace {outcome.trace:08x}")
    return totals_of(0, outcome)


def _record(directory: Path, seed: int, minutes: float, *, heals: bool) -> "RunTotals":
    """Run one seed for long, and leave behind what a served cluster would."""
    from fencepost.cli.simulate_record import CannotRecord, record
    from fencepost.simulation.report import describe_failure, totals_of

    try:
        outcome = record(directory, seed, minutes, heals=heals)
    except CannotRecord as error:
        complain(f"fencepost: {error}")
        raise typer.Exit(WRONG_USE) from None
    if outcome.failure is not None:
        show_text(f"seed {seed}, recorded: {describe_failure(outcome)}")
    return totals_of(seed, outcome)


_RunT = TypeVar("_RunT")


class _RunKind(Struct, frozen=True, kw_only=True):
    """What the seeds have in common."""

    steps: int
    consumers: bool
    transactions: bool
    gate: bool

    def bind(self, run: "Callable[..., _RunT]") -> "Callable[..., _RunT]":
        """What runs one seed or several, with what they have in common."""
        return partial(
            run,
            steps=self.steps,
            consumers=self.consumers,
            transactions=self.transactions,
            gate=self.gate,
        )

    def command(self, seed: int) -> str:
        """The command that runs one seed again."""
        flags = (
            ("--consumers", self.consumers),
            ("--transactions", self.transactions),
            ("--no-gate", not self.gate),
        )
        given = "".join(f" {flag}" for flag, is_given in flags if is_given)
        return f"fencepost simulate --seed {seed} --steps {self.steps}{given}"


def _run(seeds: range, jobs: int, kind: _RunKind) -> "tuple[RunTotals, bool]":
    """Run seeds until one of them breaks an invariant; show what the first of them broke.

    :returns: What came of it, and whether Ctrl-C has ended it.
    """
    from fencepost.simulation.report import RunTotals, run_seeds, totals_of
    from fencepost.simulation.runner import run_seed

    run_one = kind.bind(run_seed)
    total = RunTotals()
    try:
        if len(seeds) == 1:
            outcome = run_one(seeds[0])
            _show_failure(f"seed {seeds[0]}", outcome)
            show_text(f"trace {outcome.trace:08x}")
            return totals_of(seeds[0], outcome), False
        play = kind.bind(run_seeds)
        with _progress(len(seeds)) as progress:
            for part in _parts(seeds, play, jobs):
                total += part
                progress.show(total)
                if part.failures:
                    break
        if total.failures:
            first = min(seed for seed, _ in total.failures)
            _show_failure(f"seed {first} ({kind.command(first)})", run_one(first))
    except KeyboardInterrupt:
        show_text(f"interrupted: {total.seeds:,} of {len(seeds):,} seeds were run to the end")
        return total, True
    return total, False


@contextmanager
def _progress(seeds: int) -> Iterator[Progress]:
    progress = Progress(seeds)
    try:
        yield progress
    finally:
        progress.end()


def _parts(seeds: range, play: Callable[[range], "RunTotals"], jobs: int) -> Iterator["RunTotals"]:
    """The results of the seeds, in their order, a chunk at a time."""
    chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
    if jobs == 1:
        yield from (play(chunk) for chunk in chunks)
        return
    with ProcessPoolExecutor(jobs, initializer=_leave_interrupts_to_parent) as pool:
        waiting = iter(chunks)
        running = [pool.submit(play, chunk) for chunk in islice(waiting, 2 * jobs)]
        try:
            while running:
                yield running.pop(0).result()
                running += [pool.submit(play, chunk) for chunk in islice(waiting, 1)]
        finally:
            if running:  # what they are at would take a while, and is not needed any more
                for process in multiprocessing.active_children():
                    process.terminate()
            pool.shutdown(cancel_futures=True)


def _leave_interrupts_to_parent() -> None:
    """Ctrl-C reaches every process of a terminal; the parent ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _show_failure(what: str, outcome: "Outcome") -> None:
    from fencepost.simulation.report import describe_shrunk
    from fencepost.simulation.runner import shrink

    if outcome.failure is not None:
        show_text(f"{what}: {describe_shrunk(outcome, shrink(outcome))}")
