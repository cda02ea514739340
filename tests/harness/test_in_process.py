"""``--in-process``: whatever way a test starts a process, it is skipped."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import pytest

from docs.generate import ROOT
from tests.harness.run import run

CONFTEST: Final = """
from tests.harness.process_guard import InProcess

def pytest_configure(config):
    config.pluginmanager.register(InProcess())
"""
IMPORTS: Final = """
import asyncio, multiprocessing, os, subprocess, sys, threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.util import spawnv_passfds

import pytest
import uvloop

CODE = [sys.executable, "-c", "pass"]

async def wait_for_one():
    await (await asyncio.create_subprocess_exec(*CODE)).wait()
"""


STARTS: Final = (
    "subprocess.run(CODE)",
    "os.system('true')",
    "os.posix_spawn(CODE[0], CODE, {})",
    "os.fork()",
    "multiprocessing.get_context('fork').Process(target=print).start()",
    "multiprocessing.get_context('spawn').Process(target=print).start()",
    "list(ProcessPoolExecutor(1).map(abs, [1]))",
    "asyncio.run(wait_for_one())",
    "uvloop.run(wait_for_one())",
)


def outcomes(folder: Path, text: str) -> list[str]:
    """What a run of a test file prints, a test a line."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]")
    (folder / "test_it.py").write_text(IMPORTS + text)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"]
    # Most plugins take long to load and have no use.
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return run(command, cwd=folder, env=env, code=None).lines


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """One run of a test for each way to start a process, as a run takes a second."""
    tests = (f"def test_{number}(): {start}\n" for number, start in enumerate(STARTS))
    return outcomes(tmp_path_factory.mktemp("starts"), "".join(tests))


def test_a_test_that_starts_none_is_run(tmp_path: Path) -> None:
    assert " 1 passed in " in outcomes(tmp_path, "def test_it(): assert os.getpid()")[-1]


@pytest.mark.parametrize("number", range(len(STARTS)), ids=STARTS)
def test_a_test_that_starts_one_is_skipped(told: list[str], number: int) -> None:
    (line,) = (each for each in told if each.startswith(f"test_it.py::test_{number} "))
    assert line.split()[1] == "SKIPPED"


def test_a_test_that_has_one_forked_is_skipped(tmp_path: Path) -> None:
    text = """
from tests.harness.run import run

COMMAND = [sys.executable, "-m", "fencepost", "--version"]
run(COMMAND)

def test_it():
    run(COMMAND)
"""
    assert " 1 skipped in " in outcomes(tmp_path, text)[-1]


def test_a_fixture_that_starts_one_skips_all_that_use_it(tmp_path: Path) -> None:
    text = """
@pytest.fixture(scope="module")
def started():
    subprocess.run(CODE)

def test_one(started): pass
def test_other(started): pass
def test_neither(): pass
"""
    assert " 1 passed, 2 skipped in " in outcomes(tmp_path, text)[-1]


def test_one_that_is_started_unseen_is_an_error(tmp_path: Path) -> None:
    text = """
def test_it():
    os.waitpid(spawnv_passfds(CODE[0].encode(), CODE, []), 0)
"""
    assert " 1 passed, 1 error in " in outcomes(tmp_path, text)[-1]
