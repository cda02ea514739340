"""Runs of pytest with the plugin, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from typing import Final

from tests.harness.run import Finished, run

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
    deadline, pids = time.monotonic() + GONE_S, folder / "pids"
    while True:
        found = pids.read_text().split() if pids.exists() else []
        if len(found) >= count:
            return [int(each) for each in found]
        out = folder / "out"
        said = out.read_text() if out.exists() else ""
        assert time.monotonic() < deadline, f"{found} is not {count}\n{said}"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """Whether there is such a process, and not only what nobody has asked after since its end."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def all_gone(pids: Sequence[int]) -> bool:
    """Whether processes end soon."""
    deadline = time.monotonic() + GONE_S
    while any(map(is_running, pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
