"""Forked programs behave as started ones do."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.harness.forkserver import can_fork
from tests.harness.process import start
from tests.harness.run import run
from tests.harness.served_cluster import serve, serving

FENCEPOST: Final = (sys.executable, "-m", "fencepost")


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_it_is_a_process_of_its_own_that_this_one_did_not_start(tmp_path: Path) -> None:
    one = serve(tmp_path / "one", brokers=1)
    with serving(tmp_path / "two", brokers=1) as two:
        assert one.process is not None
        assert two.process is not None
        assert one.process.pid != two.process.pid
        assert parent(one.process.pid) == parent(two.process.pid) != os.getpid()
        assert os.getsid(one.process.pid) == one.process.pid
        one.process.child.kill()
        assert one.process.child.stdout is not None
        assert one.process.child.stdout.read() == b""  # the other has no copy of the pipe
        one.process.stop(expect=-signal.SIGKILL)


def test_it_has_its_own_arguments_environment_and_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("no scenario")
    assert (
        "mine.yaml" in run([*FENCEPOST, "scenario", "run", "mine.yaml"], cwd=tmp_path, code=2).err
    )
    assert "mine.yaml" in run([*FENCEPOST, "scenario", "run", "mine.yaml"], code=2).err
    wrong = {**os.environ, "FENCEPOST_BROKERS": "none"}
    assert "FENCEPOST_BROKERS" in run([*FENCEPOST, "serve"], env=wrong, code=2).err
    assert "FENCEPOST_BROKERS" not in run([*FENCEPOST, "serve", "--nonsense"], code=2).err


def test_what_it_is_given_and_prints_is_whole() -> None:
    assert run([*FENCEPOST, "--version"]).out.startswith("fencepost ")
    with pytest.raises(AssertionError, match=r"ended with 2, not 0[\s\S]*nonsense"):
        run([*FENCEPOST, "nonsense"])
    with pytest.raises(AssertionError, match=r"ran over 0\.5 s"):
        run([*FENCEPOST, "serve", "--port", "0", "--control-port", "0"], timeout_s=0.5)


def test_it_is_killed_and_its_end_is_known(tmp_path: Path) -> None:
    command = [*FENCEPOST, "serve", "--port", "0", "--control-port", "0"]
    process = start("fencepost", command, tmp_path / "log")
    assert process.child.poll() is None
    process.first_line(30)
    process.kill()
    assert process.child.returncode == -9
    assert not Path(f"/proc/{process.pid}").exists()


@pytest.mark.parametrize("variable", ["PYTHONHASHSEED", "PYTHONUNBUFFERED", "LC_ALL"])
def test_what_python_reads_when_it_starts_starts_it(variable: str) -> None:
    command = [*FENCEPOST, "--version"]
    assert can_fork(command, os.environ)
    assert not can_fork(command, {**os.environ, variable: "7"})
    assert not can_fork([sys.executable, "-X", "dev", *command[1:]], os.environ)
    assert not can_fork([sys.executable, "-m", "pytest"], os.environ)
