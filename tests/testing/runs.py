"""Runs of pytest with the plugin, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from typing import Final

from tests.harness.run import Finished, run
from tests.harness.wait import wait_until

ALONE: Final = ("-p", "fencepost.testing", "-p", "no:cacheprovider", "-W", "error")
"""With no other plugin than this: none that runs async tests, none that shuffles."""
UNDER_XDIST: Final = (*ALONE, "-p", "xdist")
GONE_S: Final = 30.0


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", *arguments]


def environment(*, autoload: bool = False) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return kept if autoload else {**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def write(folder: Path, source: str, name: str = "test_it.py") -> None:
    (folder / name).write_text(dedent(source))


def pytest_run(
    folder: Path, source: str, *options: str, plugins: Sequence[str] = ALONE, code: int = 0
) -> Finished:
    """Run a test file to its end."""
    write(folder, source)
    return run(command(*plugins, *options), code=code, cwd=folder, env=environment())


def start(folder: Path, source: str, *options: str) -> subprocess.Popen[bytes]:
    """Start a run of a test file, which is the caller's to end."""
    write(folder, source)
    with (folder / "out").open("wb") as out:
        return subprocess.Popen(
            command(*options), cwd=folder, env=environment(), stdout=out, stderr=out
        )


def numbers(folder: Path, count: int) -> list[int]:
    """The pids that tests have written down, once they are so many."""
    pids, out = folder / "pids", folder / "out"

    def enough() -> list[int]:
        found = pids.read_text().split() if pids.exists() else []
        return [int(each) for each in found] if len(found) >= count else []

    try:
        return wait_until(f"{count} pids are written", enough, GONE_S)
    except AssertionError as late:
        raise AssertionError(f"{late}\n{out.read_text() if out.exists() else ''}") from None
