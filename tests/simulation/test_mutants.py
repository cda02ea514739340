"""Every rule that is switched off makes an invariant fail, within a thousand seeds.

``FENCEPOST_SIMULATION_REPLAYS`` says how far each failing schedule is shrunk; without it only until
it is shorter.
"""

import os
import sys
from typing import Final

import pytest

from fencepost.simulation.report import describe_shrunk
from fencepost.simulation.runner import Outcome, replay, run_seed, shrink
from fencepost.simulation.schedule import parse
from tests.simulation.mutant import Mutant
from tests.simulation.mutants import MUTANTS

SEEDS: Final = 1000
_ASKED: Final = os.environ.get("FENCEPOST_SIMULATION_REPLAYS")
REPLAYS: Final = (int(_ASKED),) if _ASKED else (4, 20)
"""The most of them in each attempt to shrink a schedule."""

pytestmark = [pytest.mark.unmeasured, pytest.mark.timeout(600)]


def first_failure(mutant: Mutant) -> Outcome | None:
    for seed in (*range(mutant.first_seed, SEEDS), *range(mutant.first_seed)):
        outcome = run_seed(seed, consumers=mutant.consumers, transactions=mutant.transactions)
        if outcome.failure is not None and outcome.failure.invariant in mutant.breaks:
            return outcome
    return None


def shortened(outcome: Outcome) -> Outcome:
    """The first attempt that has fewer actions."""
    attempts = (shrink(outcome, most_replays=most) for most in REPLAYS)
    before = len(outcome.schedule.actions)
    shorter = (each for each in attempts if len(each.schedule.actions) < before)
    return next(shorter, outcome)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_without_a_rule_an_invariant_fails(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.inject(monkeypatch)
    outcome = first_failure(mutant)
    assert outcome is not None, f"{SEEDS} seeds hold without {mutant.name}"
    smallest = shortened(outcome)
    sys.stdout.write(f"{describe_shrunk(outcome, smallest)}\n")
    assert len(smallest.schedule.actions) < len(outcome.schedule.actions)
    again = replay(parse(str(smallest.schedule)))
    assert again.failure == smallest.failure
    monkeypatch.undo()
    assert replay(smallest.schedule).failure is None, "it fails with the rule as well"
