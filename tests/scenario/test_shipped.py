"""The shipped scenarios: each is told for newcomers, passes, and fails where a broker is wrong."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest

from docs.generate import ROOT
from fencepost.scenario.formatting import success_note
from fencepost.scenario.loader import read, shipped
from fencepost.scenario.runner import run
from fencepost.verbs import serving
from tests.harness.process import Process, start
from tests.scenario.mutant import MUTANTS, broken_consumer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fencepost.scenario.model import Scenario, ScenarioOutcome, Step, StepOutcome

NAMES: Final = tuple(shipped())
LONGEST_LINE: Final = 110
ROWS: Final = ("latest", "earliest", "closest")
COLUMNS: Final = ("initialization", "too-low", "precise", "unknown")
"""Of the reset table in KIP-320's earlier draft."""


class Silent:
    """A listener that prints nothing."""

    def begins(self, scenario: Scenario) -> None: ...

    def step_begins(self, step: Step, number: int, of: int) -> None: ...

    def step_ended(self, outcome: StepOutcome) -> None: ...

    def ended(self, outcome: ScenarioOutcome) -> None: ...


def test_there_is_one_for_everything_that_is_promised() -> None:
    assert set(NAMES) >= {
        *("kip-207-going-back", "kip-207-gate", "kip-320-unclean-truncation"),
        *("kafka-6880-zombie", "kip-232-stale-metadata", "leader-change-during-produce"),
        *("broker-restart", "coordinator-moves", "disconnect-after-append", "throttling"),
        *("slow-broker", "corrupt-record", "partition-unavailable", "rebalance-storm"),
        *("kip-405-still-local", "kip-405-below-log-start", "kip-405-moved-to-tier"),
        *("kip-1023-bootstrap", "kip-1023-disabled", "kip-1023-nothing-tiered"),
        *("kip-1023-leader-does-not-know", "kip-1023-stale-tier", "kip-1023-worked-example"),
        *("kip-27-competing-writers", "kip-27-bulk-load", "kip-27-unmodified-client"),
        *("kip-27-per-key", "kip-1023-metadata-version"),
        *(f"kip-320-draft-{row}-{column}" for row in ROWS for column in COLUMNS),
        *("kip-320-draft-zombie", "kip-320-draft-ignored"),
        *("kip-98-zombie-producer", "kip-447-coordinator-failover"),
        *("kip-664-hanging-transaction", "kip-890-late-write"),
    }


@pytest.mark.parametrize("name", NAMES)
def test_its_first_lines_tell_what_it_teaches(name: str) -> None:
    lines = shipped()[name].read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("summary: ")
    assert lines[1] == "teaches: |"
    scenario = read(name)
    assert scenario.summary.endswith(".")
    assert len(scenario.teaches.split("\n\n")) >= 2
    assert max(map(len, lines)) <= LONGEST_LINE
    assert sum(step.say is not None for step in scenario.steps) >= len(scenario.steps) / 3


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """The control API of a cluster as a scenario wants it: scenarios that want the same share one.

    A scenario resets it first. That each has one of its own, where none is named, is shown by
    tests/cli/test_scenario.py.
    """
    logs = tmp_path_factory.mktemp("clusters")
    with ExitStack() as running:

        @cache
        def served(cluster: tuple[str, ...]) -> str:
            log = logs / f"{served.cache_info().misses}.log"
            return running.enter_context(serving.start(cluster, log)).control

        yield lambda name: served(tuple(read(name).cluster.arguments()))


@pytest.fixture(scope="module")
def outcomes(clusters: Callable[[str], str]) -> Callable[[str], ScenarioOutcome]:
    """How a scenario ends, which is played when it is first asked for."""
    return cache(lambda name: run(read(name), Silent(), against=clusters(name), reset=True))


@pytest.mark.parametrize("name", NAMES)
def test_it_passes(name: str, outcomes: Callable[[str], ScenarioOutcome]) -> None:
    outcome = outcomes(name)
    assert outcome.passed, told(outcome)


CELLS: Final = {
    ("latest", "initialization"): "draft: went on at 10 | final: went on at 10",
    ("latest", "too-low"): "draft: went on at 10 | final: went on at 10",
    ("latest", "precise"): (
        "draft: truncation located at 10, went on at 10"
        " | final: truncation located at 10, went on at 10"
    ),
    ("latest", "unknown"): (
        "draft: truncation not located, went on at 25"
        " | final: truncation located at 10, went on at 10"
    ),
    ("earliest", "initialization"): "draft: went on at 3 | final: went on at 3",
    ("earliest", "too-low"): "draft: went on at 5 | final: went on at 5",
    ("earliest", "precise"): (
        "draft: truncation located at 10, went on at 10"
        " | final: truncation located at 10, went on at 10"
    ),
    ("earliest", "unknown"): (
        "draft: truncation not located, went on at 3"
        " | final: truncation located at 10, went on at 10"
    ),
    ("closest", "initialization"): (
        "draft: went on at 3 | final: raised NoOffsetForPartitionError"
    ),
    ("closest", "too-low"): (
        "draft: went on at 5 | final: raised OffsetOutOfRangeError, stays at 2"
    ),
    ("closest", "precise"): (
        "draft: truncation located at 10, went on at 10"
        " | final: raised LogTruncationError, truncation located at 10, stays at 20"
    ),
    ("closest", "unknown"): (
        "draft: truncation not located, went on at 4"
        " | draft-2: truncation not located, went on at 6"
        " | final: raised LogTruncationError, truncation located at 3, stays at 6"
    ),
}
"""What each cell of that table prints in the end."""


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("row", ROWS)
def test_the_drafts_reset_table_is_printed_beside_the_final_kip(
    row: str, column: str, outcomes: Callable[[str], ScenarioOutcome]
) -> None:
    last = outcomes(f"kip-320-draft-{row}-{column}").steps[-1]
    assert success_note(last.step, last.answer) == CELLS[row, column]


def test_every_one_has_a_mutant() -> None:
    assert set(MUTANTS) == set(NAMES)


@pytest.fixture
def mutant(name: str, tmp_path: Path, clusters: Callable[[str], str]) -> Iterator[str]:
    """The control API of a cluster, where it or its consumers do what this scenario says that none
    does.
    """
    if MUTANTS[name].is_consumer:
        with broken_consumer(name):
            yield clusters(name)
        return
    served = serve(name, read(name).cluster.arguments(), tmp_path / "log")
    ready = json.loads(served.first_line(30.0))
    yield ready["control"]
    served.stop()


def serve(name: str, options: list[str], log: Path) -> Process:
    command = [sys.executable, "-m", "tests.scenario.mutant", name, "serve"]
    command += ["--port=0", "--control-port=0", *options]
    return start(f"mutant of {name}", command, log, env={"PYTHONPATH": str(ROOT)})


@pytest.mark.parametrize("name", NAMES)
def test_it_fails_where_a_broker_or_a_consumer_does_it_wrong_and_at_that_point(
    name: str, mutant: str
) -> None:
    outcome = run(read(name), Silent(), against=mutant, reset=True)
    assert not outcome.passed, MUTANTS[name].does
    assert outcome.problem is None, told(outcome)
    last = outcome.steps[-1]
    assert MUTANTS[name].noticed in told_last(outcome), told(outcome)
    assert last.problem is None, told(outcome)
    assert last.mismatches


def told_last(outcome: ScenarioOutcome) -> str:
    """What the scenario said last before it failed."""
    return next((each.step.say for each in reversed(outcome.steps) if each.step.say), "")


def told(outcome: ScenarioOutcome) -> str:
    """The failure as text."""
    from fencepost.scenario.formatting import describe_failure

    return "\n".join(describe_failure(outcome)) or outcome.scenario.name
