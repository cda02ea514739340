"""Many seeds, each of which decides everything about its run, and decides it again."""

import os
import re
import sys
from typing import Final

import pytest

from fencepost.simulation.runner import replay, run_seed
from fencepost.simulation.schedule import ActionKind, parse
from tests.harness.run import run

SEEDS: Final = int(os.environ.get("FENCEPOST_SIMULATION_SEEDS", "500"))
"""How many of them to run; 10000 take some four minutes on two idle processors."""
STEPS: Final = 400


@pytest.mark.timeout(max(300, SEEDS))
def test_every_invariant_holds_whatever_the_seed() -> None:
    command = [sys.executable, "-m", "fencepost", "simulate", "--seeds", str(SEEDS)]
    done = run(command, code=0, timeout_s=max(300, SEEDS))
    last = done.lines[-1]
    assert re.match(rf"{SEEDS:,} seeds?, [\d,]+ steps, .*: every invariant held", last), last


@pytest.mark.parametrize("seed", range(5))
def test_a_seed_does_the_same_again(seed: int) -> None:
    one, other = run_seed(seed, STEPS), run_seed(seed, STEPS)
    assert one.schedule == other.schedule
    assert one.trace == other.trace


def test_seeds_differ() -> None:
    assert len({run_seed(seed, STEPS).trace for seed in range(10)}) == 10


@pytest.mark.parametrize("seed", range(5))
def test_a_printed_schedule_does_what_its_seed_did(seed: int) -> None:
    outcome = run_seed(seed, STEPS)
    again = replay(parse(str(outcome.schedule)))
    assert again.schedule == outcome.schedule
    assert again.trace == outcome.trace


def test_a_seed_does_the_same_however_python_hashes() -> None:
    command = [sys.executable, "-m", "fencepost", "simulate", "--seed", "3", f"--steps={STEPS}"]
    traces = {
        run(command, env={**os.environ, "PYTHONHASHSEED": value}).lines[0]
        for value in ("0", "1", "4711")
    }
    assert traces == {f"trace {run_seed(3, STEPS).trace:08x}"}


@pytest.mark.unmeasured
def test_seeds_come_to_all_that_may_happen() -> None:
    done = {action.kind for seed in range(40) for action in run_seed(seed, 300).schedule.actions}
    assert done == set(ActionKind) - {ActionKind.COMMIT}  # which recorded runs alone do


@pytest.mark.unmeasured
def test_some_seeds_lose_records_and_most_do_not() -> None:
    tainted = sum(run_seed(seed, STEPS).tainted > 0 for seed in range(40))
    assert 1 <= tainted <= 20
