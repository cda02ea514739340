"""Where a scenario is run: with which seed, and on what."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from fencepost.scenario import runner
from fencepost.scenario.formatting import describe_failure
from fencepost.scenario.model import Scenario
from fencepost.scenario.runner import run
from fencepost.verbs.serving import CannotServe, ClusterBody
from tests.scenario.scenarios import Told, scenario

SEEDED = "summary: It has a seed.\ncluster: {seed: 7}\nsteps:\n"
UNSEEDED = "summary: It has none.\nsteps:\n"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[ClusterBody]:
    """Clusters that were to be served; none is."""
    wanted: list[ClusterBody] = []

    def refuse(cluster: ClusterBody, log: Path) -> NoReturn:
        wanted.append(cluster)
        raise CannotServe(f"no room for {log.name}")

    monkeypatch.setattr(runner, "start", refuse)
    return wanted


@pytest.mark.parametrize(
    ("head", "asked", "used"), [(UNSEEDED, None, 0), (SEEDED, None, 7), (SEEDED, 3, 3)]
)
def test_the_seed_is_fixed_unless_the_file_or_the_caller_has_one(
    head: str, asked: int | None, used: int, served: list[ClusterBody]
) -> None:
    outcome = run(steps(head), Told(), seed=asked)
    assert served[0].seed == outcome.seed == used
    assert f"--seed={used}" in served[0].arguments()
    seed_line = f"The seed of its random choices: {used} (--seed {used})"
    assert describe_failure(outcome) == ["no room for log", seed_line]


def steps(head: str) -> Scenario:
    return scenario("- reset", head)
