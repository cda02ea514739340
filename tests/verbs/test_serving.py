"""A cluster of one's own, in a child process."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from fencepost.verbs import serving
from fencepost.verbs.methods import Verbs
from fencepost.verbs.remote import Remote
from fencepost.verbs.serving import CannotServe, ClusterBody, start


def test_it_serves_until_it_is_left(tmp_path: Path) -> None:
    with start(ClusterBody(brokers=2, seed=7), tmp_path / "log") as served:
        assert served.seed == 7
        remote = Remote(served.control)
        brokers = Verbs(remote).cluster().brokers
        remote.close()
        assert served.bootstrap == ",".join(f"{each.host}:{each.port}" for each in brokers)
    assert not served.is_running
    assert served.stop() == 0
    host, _, port = served.bootstrap.split(",")[0].partition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))


def test_it_is_told_as_serve_is(tmp_path: Path) -> None:
    with start(["--brokers", "2", "--seed=3"], tmp_path / "log") as served:
        assert len(served.bootstrap.split(",")) == 2
        assert served.seed == 3


def test_it_is_as_it_is_described_whatever_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEPOST_BROKERS", "3")
    monkeypatch.setenv("FENCEPOST_PORT", "none")
    with start([], tmp_path / "log") as served:
        assert len(served.bootstrap.split(",")) == 1


def test_nothing_in_the_current_directory_stands_in_for_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "asyncio.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    with start([], tmp_path / "log") as served:
        assert served.is_running


def test_it_is_reset(tmp_path: Path) -> None:
    with start(ClusterBody(), tmp_path / "log") as served:
        remote = Remote(served.control)
        verbs = Verbs(remote)
        for _ in range(3):
            verbs.create_topic("orders")
            served.reset()
            assert verbs.topics() == []
        remote.close()


def test_one_that_has_ended_is_not_reset(tmp_path: Path) -> None:
    served = start(ClusterBody(), tmp_path / "log")
    served.child.kill()
    for _ in range(2):
        with pytest.raises(CannotServe, match="ended with -9"):
            served.reset()
    assert served.stop() == -signal.SIGKILL


def test_what_it_logged_since(tmp_path: Path) -> None:
    served = start(ClusterBody(), tmp_path / "log")
    position = served.log_size()
    served.stop()
    assert '"event": "stopping"' in served.log_since(position)
    assert served.log_since(position, limit=3) == served.log_since(0)[-3:]
    assert served.log_since(served.log_size()) == ""


def test_it_ends_with_whoever_holds_the_other_end(tmp_path: Path) -> None:
    served = start(ClusterBody(), tmp_path / "log")
    assert served.child.stdin is not None
    served.child.stdin.close()
    assert served.child.wait(20) == 0
    served.stop()


def test_what_serve_refuses_is_its_one_line(tmp_path: Path) -> None:
    with pytest.raises(CannotServe) as refusal:
        start(ClusterBody(configs={"num.partition": "1"}), tmp_path / "log")
    assert str(refusal.value) == (
        "fencepost serve: Unknown config name: num.partition; did you mean num.partitions?"
    )


def test_strict_configs_are_an_option_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(CannotServe, match=r"Unknown config name: no\.such$"):
        start(ClusterBody(configs={"no.such": "1"}, strict_configs=True), tmp_path / "log")


def test_one_that_is_late_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_COMMAND", ("-c", "import time; time.sleep(60)"))
    with pytest.raises(CannotServe, match=r"^fencepost serve was not ready in 0\.1 s$"):
        start(ClusterBody(), tmp_path / "log", ready_s=0.1)


def test_one_that_ends_without_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_COMMAND", ("-c", "raise SystemExit(3)"))
    with pytest.raises(CannotServe, match=r"^fencepost serve ended with 3$"):
        start(ClusterBody(), tmp_path / "log")


def test_one_that_does_not_stop_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = start(ClusterBody(), tmp_path / "log")
    monkeypatch.setattr(serving, "STOP_S", 0.1)
    os.kill(served.pid, signal.SIGSTOP)
    assert served.stop() == -signal.SIGKILL
