"""A run leaves no process behind, however it ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final

from tests.harness.process import is_running, wait_until_gone
from tests.testing.runs import ALONE, UNDER_XDIST, numbers, pytest_run, start

SOURCE: Final = """
    import os
    import signal
    import threading
    from pathlib import Path

    def note(*pids):
        with Path("pids").open("a") as file:
            file.write("".join(f"{pid} " for pid in pids))

    def test_that_hangs(fencepost, fencepost_session, _fencepost_server, _fencepost_session_server):
        note(_fencepost_server.serving.pid, _fencepost_session_server.serving.pid, os.getpid())
        threading.Event().wait()
"""
DIES: Final = """
    import os
    import signal
    from pathlib import Path

    import pytest

    @pytest.mark.parametrize("ends", [False, True, False])
    def test_that_dies(fencepost, _fencepost_server, ends):
        with Path("pids").open("a") as file:
            file.write(f"{_fencepost_server.serving.pid} ")
        fencepost.create_topic("orders")
        if ends:
            os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_run_that_is_killed(tmp_path: Path) -> None:
    child = start(tmp_path, SOURCE, *ALONE)
    *servers, itself = numbers(tmp_path, 3)
    assert itself == child.pid
    assert all(map(is_running, servers))
    child.send_signal(signal.SIGKILL)
    assert child.wait(30) == -signal.SIGKILL
    wait_until_gone(servers)


def test_a_run_that_is_interrupted(tmp_path: Path) -> None:
    child = start(tmp_path, SOURCE, *ALONE)
    *servers, _ = numbers(tmp_path, 3)
    child.send_signal(signal.SIGINT)
    assert child.wait(30) == 2
    assert not any(map(is_running, servers))


def test_a_run_under_xdist_that_is_killed(tmp_path: Path) -> None:
    child = start(tmp_path, SOURCE, *UNDER_XDIST, "-n1")
    pids = numbers(tmp_path, 3)
    assert child.pid not in pids
    child.send_signal(signal.SIGKILL)
    child.wait(30)
    wait_until_gone(pids)


def test_a_worker_that_is_killed(tmp_path: Path) -> None:
    done = pytest_run(tmp_path, DIES, "-n1", plugins=UNDER_XDIST, code=1)
    assert "worker 'gw0' crashed" in done.out
    assert "1 failed, 2 passed" in done.out
    pids = numbers(tmp_path, 3)
    assert len(set(pids)) == 2
    wait_until_gone(pids)


def test_a_server_that_dies_costs_one_test(tmp_path: Path) -> None:
    source = """
        import os
        import signal

        def test_with_a_server_that_dies(fencepost, _fencepost_server):
            os.kill(_fencepost_server.serving.pid, signal.SIGKILL)
            _fencepost_server.serving.child.wait()
            fencepost.topics()

        def test_with_another(fencepost):
            assert fencepost.topics() == []
    """
    done = pytest_run(tmp_path, source, code=1)
    assert "1 failed, 1 passed" in done.out
    assert "Unreachable: no control API answers at http://127.0.0.1:" in done.out


def test_is_running_knows_this_process() -> None:
    assert is_running(os.getpid())
