"""Every rule that is switched off makes an invariant fail, within a thousand seeds.

``FENCEPOST_SIMULATION_REPLAYS`` says how far each failing schedule is shrunk.
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
MOST_REPLAYS: Final = int(os.environ.get("FENCEPOST_SIMULATION_REPLAYS", "20"))

pytestmark = [pytest.mark.unmeasured, pytest.mark.timeout(600)]


def first_failure(mutant: Mutant) -> Outcome | None:
    for seed in (*range(mutant.first_seed, SEEDS), *range(mutant.first_seed)):
        outcome = run_seed(seed, consumers=mutant.consumers, transactions=mutant.transactions)
        if outcome.failure is not None and outcome.failure.invariant in mutant.breaks:
            return outcome
    return None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_without_a_rule_an_invariant_fails(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.inject(monkeypatch)
    outcome = first_failure(mutant)
    assert outcome is not None, f"{SEEDS} seeds hold without {mutant.name}"
    smallest = shrink(outcome, most_replays=MOST_REPLAYS)
    sys.stdout.write(f"{describe_shrunk(outcome, smallest)}\n")
    assert len(smallest.schedule.actions) < len(outcome.schedule.actions)
    again = replay(parse(str(smallest.schedule)))
    assert again.failure == smallest.failure
    monkeypatch.undo()
    assert replay(smallest.schedule).failure is None, "it fails with the rule as well"
