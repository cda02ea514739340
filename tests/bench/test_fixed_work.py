"""How much longer the machine takes at times for a piece of work that is always the same."""

from __future__ import annotations

import time
from pathlib import Path

from bench import fixed_work
from tests.harness.wait import wait_until


def test_seconds_are_written_while_it_runs(tmp_path: Path) -> None:
    path, begin = tmp_path / "seconds", time.monotonic()
    assert list(fixed_work.read(path)) == []
    with fixed_work.running(path):
        wait_until("a second", lambda: any(each.at_s > begin for each in fixed_work.read(path)))
    seen = list(fixed_work.read(path))
    assert all(each.excess_ms >= 0 for each in seen)
