"""What the pytest plugin adds to a suite: one with a fresh cluster a test, beside one without."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = 100
TIMEOUT_S = 120.0
_FIXTURES = {
    "without": "import pytest\n@pytest.fixture\ndef fencepost():\n    return None\n",
    "with": "",
}
_SUITE = (
    "import pytest\n"
    "{fixture}"
    "@pytest.mark.parametrize('number', range({tests}))\n"
    "def test_nothing(fencepost, number):\n"
    "    pass\n"
)


class SuiteFailed(Exception):
    """Not every test passed."""


def overhead(workers: int) -> float:
    """Milliseconds that a test costs more with a cluster of its own, start and end of all included.

    :param workers: Of xdist; 0 runs the tests in one process, without it.
    """
    return _cost(TESTS, workers) / TESTS


def first_test() -> float:
    """Milliseconds that a run of one test costs more with a cluster: imports and a start."""
    return _cost(1, workers=0)


def _cost(tests: int, workers: int) -> float:
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as folder:
        took = {name: _run(Path(folder) / name, name, tests, workers) for name in _FIXTURES}
    return (took["with"] - took["without"]) * 1e3


def _run(folder: Path, name: str, tests: int, workers: int) -> float:
    """Seconds of a whole run of pytest, with no plugin but ours and xdist."""
    folder.mkdir()
    (folder / "test_suite.py").write_text(_SUITE.format(fixture=_FIXTURES[name], tests=tests))
    plugins = ["-p", "no:cacheprovider", "-p", "fencepost.testing"]
    # Else pytest deletes what other runs have left, which may take longer than all of its tests.
    plugins += ["--basetemp", str(folder / "base")]
    if workers:
        plugins += ["-p", "xdist", "-n", str(workers)]
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins],
        check=False,
        capture_output=True,
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        text=True,
        timeout=TIMEOUT_S,
    )
    took = time.perf_counter() - begin
    if done.returncode or f"{tests} passed" not in done.stdout:
        raise SuiteFailed(f"{done.stdout}\n{done.stderr}")
    return took
