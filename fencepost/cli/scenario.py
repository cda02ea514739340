"""``fencepost scenario``: lists, prints and runs scenarios."""

import json
import os
import signal
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fencepost.cli.output import (
    BAD,
    GOOD,
    QUIET,
    STRONG,
    Table,
    Text,
    complain,
    line,
    show,
    show_json,
    show_text,
)
from fencepost.cli.typer_options import AsJson, ControlToken, control_token, option, scenarios
from fencepost.cli.usage_errors import InvalidUsage

if TYPE_CHECKING:
    from fencepost.scenario.model import Listener, Scenario, ScenarioOutcome, Step, StepOutcome

FAILED: Final = 1
WRONG_USE: Final = 2
_WIDTH: Final = 78
_MAX_DIGITS: Final = 40

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME|FILE...",
        help="A shipped scenario by its name, or a file.",
        autocompletion=scenarios,
    ),
]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE",
        help="A shipped scenario by its name, or a file.",
        autocompletion=scenarios,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the others."""
    group = typer.Typer(
        name="scenario",
        help="Run scenarios: files of actions, requests and expected results.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    group.command("list")(list_shipped)
    group.command("run")(run)
    group.command("show")(show_one)
    group.command("schema")(show_schema)
    app.add_typer(group)


def list_shipped(as_json: AsJson = False) -> None:
    """List the shipped scenarios."""
    from fencepost.scenario.loader import shipped

    found = [_read(name) for name in shipped()]
    if as_json:
        show_json(json.dumps([{"name": each.name, "summary": each.summary} for each in found]))
        return
    show([Table(("name", "what it shows"), tuple((each.name, each.summary) for each in found))])


def show_one(name: Name) -> None:
    """Print a scenario's file, to read it or to start one's own from it."""
    scenario = _read(name)
    show_text(Path(scenario.document.file).read_text(encoding="utf-8").removesuffix("\n"))


def show_schema() -> None:
    """Print the JSON Schema of scenario files, for an editor."""
    from fencepost.scenario.json_schema import scenario_schema

    show_json(json.dumps(scenario_schema()))


def run(
    names: Names,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="URL",
            help="The control API of a cluster to play them on.",
            show_default="a cluster of its own for each",
        ),
    ] = None,
    token: ControlToken = None,
    reset: Annotated[
        bool, typer.Option("--reset", help="Let the cluster of --against forget everything first.")
    ] = False,
    seed: Annotated[
        str | None,
        option(
            "seed",
            "N|random",
            "The seed of the cluster's random choices, which that of --against must have.",
            unset="the file's, or else always the same",
        ),
    ] = None,
    allow_run: Annotated[
        bool,
        typer.Option("--allow-run", help="Let steps start processes on this machine (run)."),
    ] = False,
    junit: Annotated[
        Path | None,
        typer.Option(
            "--junit",
            metavar="FILE",
            dir_okay=False,
            writable=True,
            help="Also write a JUnit XML report to this file.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Run scenarios: exits with 0 when all passed, with 1 when an expectation failed.

    With 2 when a file is wrong, which is found before anything is done, or when the cluster is
    another one than a scenario takes.
    """
    from fencepost.scenario.formatting import junit_xml, outcome_to_dict

    if reset and against is None:
        raise InvalidUsage("--reset is for the cluster of --against; others are new")
    used_seed = _parse_seed(seed)
    wanted = [_read(name) for name in names]
    if not allow_run:
        _refuse_processes(wanted)
    # As Ctrl-C does, it ends what was begun: clients, the served cluster, its directory.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    listener: Listener = _SilentListener() if as_json else _ProgressListener()
    used_token = None if against is None else control_token(token)
    outcomes = [
        _run(
            each,
            listener,
            allow_run=allow_run,
            against=against,
            token=used_token,
            reset=reset,
            seed=used_seed,
        )
        for each in wanted
    ]
    if junit is not None:
        junit.write_text(junit_xml(outcomes), encoding="utf-8")
    if as_json:
        show_json(json.dumps([outcome_to_dict(each) for each in outcomes]))
    elif len(outcomes) > 1:
        _sum_up(outcomes)
    raise typer.Exit(0 if all(each.passed for each in outcomes) else FAILED)


def _read(name: str) -> "Scenario":
    from fencepost.scenario.document import ScenarioFileError
    from fencepost.scenario.loader import ScenarioNotFound, read

    try:
        return read(name)
    except (ScenarioFileError, ScenarioNotFound) as error:
        raise _wrong(error) from None


def _parse_seed(text: str | None) -> int | None:
    if text is None:
        return None
    if text == "random":
        return int.from_bytes(os.urandom(4))
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS:
        return int(text)
    raise InvalidUsage(f"--seed {text!r} is no whole number from 0 on, and not random")


def _run(
    scenario: "Scenario",
    listener: "Listener",
    *,
    allow_run: bool,
    against: str | None,
    token: str | None,
    reset: bool,
    seed: int | None,
) -> "ScenarioOutcome":
    from fencepost.scenario.cluster_requirements import RequirementsNotMet
    from fencepost.scenario.runner import run as run_one

    try:
        return run_one(
            scenario,
            listener,
            allow_run=allow_run,
            against=against,
            token=token,
            reset=reset,
            seed=seed,
        )
    except RequirementsNotMet as error:
        raise _wrong(error) from None


def _refuse_processes(scenarios: Sequence["Scenario"]) -> None:
    from fencepost.scenario.document import ScenarioFileError
    from fencepost.scenario.runner import refuse_processes

    try:
        for each in scenarios:
            refuse_processes(each)
    except ScenarioFileError as error:
        raise _wrong(error) from None


def _wrong(error: Exception) -> typer.Exit:
    complain(f"fencepost: {error}")
    return typer.Exit(WRONG_USE)


def _sum_up(outcomes: Sequence["ScenarioOutcome"]) -> None:
    failed = [each.scenario.name for each in outcomes if not each.passed]
    passed = Text(f"{len(outcomes) - len(failed)} passed", GOOD)
    if failed:
        show([line(passed, ", ", Text(f"{len(failed)} failed", BAD), f": {', '.join(failed)}")])
    else:
        show([line(passed)])


class _SilentListener:
    """Prints nothing while a scenario runs."""

    def begins(self, scenario: "Scenario") -> None:
        """A scenario begins."""

    def step_begins(self, step: "Step", number: int, of: int) -> None:
        """A step begins."""

    def step_ended(self, outcome: "StepOutcome") -> None:
        """A step is over."""

    def ended(self, outcome: "ScenarioOutcome") -> None:
        """A scenario is over."""


class _ProgressListener:
    """Prints each step and its result."""

    def __init__(self) -> None:
        self._number = ""

    def begins(self, scenario: "Scenario") -> None:
        """Say what it is about."""
        blocks = [line(Text(scenario.name, STRONG)), line(scenario.summary), line()]
        for paragraph in scenario.teaches.split("\n\n"):
            text = " ".join(paragraph.split())
            blocks += [*map(line, textwrap.wrap(text, _WIDTH)), line()] if text else []
        show(blocks)

    def step_begins(self, step: "Step", number: int, of: int) -> None:
        """Say what is about to happen."""
        self._number = f"{number:>{len(str(of))}}/{of}"
        if step.say:
            show([line(text) for text in textwrap.wrap(step.say, _WIDTH)])

    def step_ended(self, outcome: "StepOutcome") -> None:
        """Say what was done, and whether it went well."""
        from fencepost.scenario.formatting import describe_step, success_note

        word = Text("ok    ", GOOD) if outcome.passed else Text("FAILED", BAD)
        does = describe_step(outcome.step)
        ms = Text(f"  {outcome.elapsed_ms} ms", QUIET)
        show([line("  ", Text(self._number, QUIET), " ", word, " ", does, ms)])
        told = success_note(outcome.step, outcome.answer) if outcome.passed else None
        if told is not None:
            show([line(" " * (len(self._number) + 10), told)])

    def ended(self, outcome: "ScenarioOutcome") -> None:
        """Say how it went."""
        from fencepost.scenario.formatting import describe_failure

        if outcome.passed:
            passed = Text("passed", GOOD)
            show([line(passed, f": {outcome.scenario.name} in {outcome.elapsed_ms} ms"), line()])
            return
        told = [line(text) for each in describe_failure(outcome) for text in each.split("\n")]
        show([line(Text("FAILED", BAD), f": {outcome.scenario.name}"), *told, line()])
