"""The plugin in runs of pytest: loaded, refused and shared out."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.process import wait_until_gone
from tests.harness.run import run
from tests.testing.runs import UNDER_XDIST, command, environment, numbers, pytest_run, write

if TYPE_CHECKING:
    from tests.harness.served_cluster import Cluster


def test_pytest_loads_it_by_itself(tmp_path: Path) -> None:
    write(tmp_path, "def test_it(fencepost): assert fencepost.topics() == []")
    done = run(
        command("-p", "no:cacheprovider"), cwd=tmp_path, env=environment(autoload=True), code=0
    )
    assert "1 passed" in done.out
    ours = entry_points(group="pytest11")
    (found,) = (each for each in ours if each.dist is not None and each.dist.name == "fencepost")
    assert found.value == "fencepost.testing"


def test_a_run_without_a_cluster_imports_next_to_nothing(tmp_path: Path) -> None:
    source = """
        import sys

        def test_it():
            found = {name for name in sys.modules if name.partition(".")[0] == "fencepost"}
            assert found == {"fencepost", "fencepost.testing", "fencepost.testing.plugin"}
            assert "msgspec" not in sys.modules
    """
    pytest_run(tmp_path, source)


def test_the_marker_and_the_fixtures_are_described(tmp_path: Path) -> None:
    shown = pytest_run(tmp_path, "", "--markers").out
    assert "@pytest.mark.fencepost(brokers=1, topics=[], " in shown
    shown = pytest_run(tmp_path, "", "--fixtures").out
    for name in ("", "_async", "_session", "_session_async", "_options"):
        assert f"\nfencepost{name} " in shown
    assert "_fencepost_server" not in shown


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("broker=3", "@pytest.mark.fencepost: there is no field 'broker'; there are brokers, "),
        ("configs={'num.partitions': 'x'}", "fencepost serve: Invalid value x for configuration "),
        ("topics=['orders:1:3']", "(INVALID_REPLICATION_FACTOR)"),
    ],
)
def test_a_mistake_is_an_error_of_the_test_in_one_line(
    tmp_path: Path, marker: str, message: str
) -> None:
    source = f"""
        import pytest

        @pytest.mark.fencepost({marker})
        def test_it(fencepost):
            pass
    """
    done = pytest_run(tmp_path, source, "--strict-markers", code=1)
    assert "1 error" in done.out
    _, _, after = done.out.partition("ERROR at setup of test_it")
    assert message in after.splitlines()[1]
    assert "Traceback" not in done.out
    assert "During handling" not in done.out


def test_each_worker_has_its_own(tmp_path: Path) -> None:
    source = """
        import os
        from pathlib import Path

        import pytest

        @pytest.mark.parametrize("turn", range(6))
        def test_it(fencepost, _fencepost_server, tmp_path_factory, turn):
            assert fencepost.topics() == []
            fencepost.create_topic("orders")
            with Path("pids").open("a") as file:
                file.write(f"{_fencepost_server.serving.pid} ")
            # Waits until the other worker has come as far.
            fencepost.wait_until(lambda: len(set(Path("pids").read_text().split())) == 2)
    """
    done = pytest_run(tmp_path, source, "-n2", plugins=UNDER_XDIST)
    assert "6 passed" in done.out
    pids = numbers(tmp_path, 6)
    assert len(set(pids)) == 2
    wait_until_gone(pids)


def test_a_refused_verb_shows_the_line_of_the_test_and_no_other(tmp_path: Path) -> None:
    source = """
        async def kill(cluster):
            await cluster.kill_broker(9)

        def test_that_fails(fencepost):
            fencepost.kill_broker(9)

        def test_that_is_late(fencepost):
            fencepost.wait_for_trace(timeout_ms=1)

        def test_that_awaits(fencepost_async):
            import asyncio
            asyncio.run(kill(fencepost_async))
    """
    done = pytest_run(tmp_path, source, code=1)
    assert "3 failed" in done.out
    assert ">       fencepost.kill_broker(9)\nE       fencepost.verbs.remote.Refused: " in done.out
    for name in ("methods.py", "remote.py", "remote_async.py", "contextlib", "direct cause"):
        assert name not in done.out, name


def test_without_pytest_the_traceback_is_short(cluster: Cluster, tmp_path: Path) -> None:
    source = f"""
        from fencepost.testing import Cluster
        Cluster("", {cluster.control!r}).kill_broker(9)
    """
    write(tmp_path, source, "program.py")
    done = run([sys.executable, "program.py"], cwd=tmp_path, code=1)
    assert done.err.count("  File ") == 3
    assert "During handling" not in done.err
    assert "direct cause" not in done.err
