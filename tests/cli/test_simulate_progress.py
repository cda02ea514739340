"""How far a simulation is, where standard error is no terminal."""

from __future__ import annotations

import pytest

from fencepost.cli.simulate_progress import LOG_S, Progress
from fencepost.simulation.report import RunTotals


def test_a_line_comes_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    now = [100.0]
    progress = Progress(1000, lambda: now[0])
    progress.show(RunTotals(seeds=20, steps=20_000))
    assert capsys.readouterr().err == ""
    now[0] += LOG_S + 10
    progress.show(RunTotals(seeds=250, steps=400_000))
    progress.show(RunTotals(seeds=270, steps=400_000))
    progress.end()
    assert capsys.readouterr().err == ("250 of 1,000 seeds, 10,000 steps a second, 120 s left\n")
