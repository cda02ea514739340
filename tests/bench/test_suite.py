from __future__ import annotations

from pathlib import Path

import pytest

from bench import suite


def test_the_overhead_is_the_difference_by_test(monkeypatch: pytest.MonkeyPatch) -> None:
    took = {"with": 3.0, "without": 2.0}

    def run(folder: Path, name: str, tests: int, workers: int) -> float:
        return took[name] + workers

    monkeypatch.setattr(suite, "_run", run)
    assert suite.overhead(0) == pytest.approx(10.0)
    assert suite.overhead(2) == pytest.approx(10.0)
    assert suite.first_test() == pytest.approx(1000.0)


@pytest.mark.parametrize("workers", [0, 1])
def test_both_suites_pass(tmp_path: Path, workers: int) -> None:
    for name in ("with", "without"):
        assert suite._run(tmp_path / name, name, 3, workers) > 0


def test_a_test_that_fails_is_no_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite, "_SUITE", "def test_nothing(): assert False\n")
    with pytest.raises(suite.SuiteFailed, match="1 failed"):
        suite._run(tmp_path / "with", "with", 1, 0)
