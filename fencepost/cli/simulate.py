"""``fencepost simulate``: the core on a virtual clock and a simulated network, driven by seeds.

Seeds are independent of each other, and so shared out to processes. Only here is anything measured
in real time: how fast it goes.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fencepost.cli.output import complain, show_text
from fencepost.cli.usage_errors import WRONG_USE, InvalidUsage

if TYPE_CHECKING:
    from fencepost.simulation.report import RunTotals
    from fencepost.simulation.runner import Outcome

DEFAULT_SEEDS = 1000
DEFAULT_STEPS = 1000
DEFAULT_MINUTES = 10.0
CHUNK = 20
"""Seeds that a process takes at a time."""
OPTIONS_BY_MODE: Final[Mapping[str | None, Sequence[str]]] = {
    "record": ("seed", "minutes", "as_is"),
    "schedule": (),
    None: ("seeds", "seed", "steps", "jobs", "consumers"),
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
    printed that breaks it too.
    """
    _refuse_ignored_options(
        schedule=schedule,
        record=record,
        seeds=seeds,
        seed=seed,
        steps=steps,
        jobs=jobs,
        consumers=consumers or None,
        minutes=minutes,
        as_is=as_is or None,
    )
    started = time.perf_counter()
    used = 1
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
        total = _run(range(first, first + count), wanted_steps, used, consumers=consumers)
    from fencepost.simulation.report import summary

    show_text(summary(total, time.perf_counter() - started, used))
    raise typer.Exit(1 if total.failures else 0)


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
    from fencepost.simulation.schedule import ScheduleError, parse

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


def _run(seeds: range, steps: int, jobs: int, *, consumers: bool) -> "RunTotals":
    """Run seeds until one of them breaks an invariant; show what the first of them broke."""
    from fencepost.simulation.report import RunTotals, run_seeds, totals_of
    from fencepost.simulation.runner import run_seed

    if len(seeds) == 1:
        outcome = run_seed(seeds[0], steps, consumers=consumers)
        _show_failure(f"seed {seeds[0]}", outcome)
        show_text(f"trace {outcome.trace:08x}")
        return totals_of(seeds[0], outcome)
    total = RunTotals()
    play = partial(run_seeds, steps=steps, consumers=consumers)
    for part in _parts(seeds, play, jobs):
        total += part
        if part.failures:
            first = min(seed for seed, _ in part.failures)
            again = f"fencepost simulate --seed {first} --steps {steps}"
            again += " --consumers" if consumers else ""
            outcome = run_seed(first, steps, consumers=consumers)
            _show_failure(f"seed {first} ({again})", outcome)
            break
    return total


def _parts(seeds: range, play: Callable[[range], "RunTotals"], jobs: int) -> Iterator["RunTotals"]:
    """The results of the seeds, in their order, a chunk at a time."""
    chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
    if jobs == 1:
        yield from (play(chunk) for chunk in chunks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        waiting = iter(chunks)
        running = [pool.submit(play, chunk) for chunk in islice(waiting, 2 * jobs)]
        try:
            while running:
                yield running.pop(0).result()
                running += [pool.submit(play, chunk) for chunk in islice(waiting, 1)]
        finally:
            pool.shutdown(cancel_futures=True)


def _show_failure(what: str, outcome: "Outcome") -> None:
    from fencepost.simulation.report import describe_shrunk
    from fencepost.simulation.runner import shrink

    if outcome.failure is not None:
        show_text(f"{what}: {describe_shrunk(outcome, shrink(outcome))}")
