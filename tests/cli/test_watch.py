"""``fencepost watch``: one screen on a terminal, lines anywhere else, and a clean end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.shell import Shell, produce
from tests.cli.terminal import terminal, without_escapes
from tests.harness.served_cluster import serve


@contextmanager
def watching(*options: str) -> Iterator[subprocess.Popen[str]]:
    """The command, its output being a pipe."""
    command = [sys.executable, "-m", "fencepost", "watch", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def next_line(process: subprocess.Popen[str], text: str) -> str:
    """The next line with this text in it."""
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return line
    raise AssertionError(f"it ended without {text!r}")


def lines_with(process: subprocess.Popen[str], *texts: str) -> None:
    """Read until each of these texts was in a line, in any order."""
    assert process.stdout is not None
    missing = set(texts)
    for line in process.stdout:
        missing = {text for text in missing if text not in line}
        if not missing:
            return
    raise AssertionError(f"it ended without {missing}")


def test_a_screen_shows_what_changes(fresh: str, shell: Shell) -> None:
    with terminal("watch", columns=110, rows=30) as made:
        seen = made.wait_for(
            "t-0        1       0      1,2,3  0               1 at 0, 2 at 0, 3 at 0"
        )
        assert "broker 1 running  broker 2 running  broker 3 running" in made.plain
        shell.json("hold t 0 3 --leave-isr")
        seen = made.wait_for("1,2", seen)
        made.wait_for("3 held at 0")
        made.wait_for("replica_held t-0: broker 3 is held")
        shell.json("broker kill 2")
        made.wait_for("broker 2 killed, fenced", seen)
        shell.json("fault add Fetch --drop --topic none")
        made.wait_for("Fetch drop, hits 0, left 1, topic none", seen)
        made.interrupt()
        assert made.finish() == 0
        # The screen of its own is left, and the cursor is shown again.
        assert made.written.index("\x1b[?1049h") < made.written.index("\x1b[?1049l")
        assert made.written.endswith("\x1b[?1049l")
        assert made.written.rindex("\x1b[?25h") > made.written.rindex("\x1b[?25l")


@pytest.mark.parametrize(("columns", "rows"), [(30, 12), (200, 6), (60, 20), (10, 3)])
def test_a_screen_has_any_size(columns: int, rows: int, control: str) -> None:
    with terminal("watch", columns=columns, rows=rows) as made:
        made.wait_for("http")
        made.interrupt()
        assert made.finish() == 0
        frame = without_escapes(made.written.split("\x1b[H")[1]).split("\r\n")
        assert len(frame) <= rows
        assert max(map(len, frame)) <= columns


def test_lines_tell_what_changes(control: str, shell: Shell) -> None:
    with watching() as process:
        assert next_line(process, "broker 1:") == "broker 1: running\n"
        assert next_line(process, "t-0:") == (
            "t-0: leader 1 in epoch 0, ISR 1, 2, 3, high watermark 0, last stable offset 0;"
            " replicas 1 at 0, 2 at 0, 3 at 0\n"
        )
        shell.json("hold t 0 3 --at 0")
        assert "3 held at 0 (hold at 0)" in next_line(process, "; replicas")
        shell.json("broker stop 2")
        lines_with(
            process,
            " verb stop_broker broker 2",
            " broker_changed broker 2: stopped",
            "broker 2: stopped, fenced",
            "2 offline at 0",
        )
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_records_that_come_are_seen_although_no_event_tells_of_them(
    control: str, shell: Shell
) -> None:
    with watching() as process:
        assert next_line(process, "t-0:")
        produce(shell, "t")
        assert "high watermark 1," in next_line(process, "t-0:")


def test_lines_of_json_are_named_after_what_they_are(control: str, shell: Shell) -> None:
    with watching("--json", "--topic", "t") as process:
        line = json.loads(next_line(process, '{"partition"'))
        assert line["partition"] == shell.json("partition t 0")
        shell.json("elect t 0 --leader 2")
        events = [json.loads(next_line(process, '{"event"'))["event"] for _ in range(2)]
        assert [event["kind"] for event in events] == ["verb", "leader_changed"]
        assert json.loads(next_line(process, '{"partition"'))["partition"]["leader"] == 2


def test_only_the_topics_that_are_named_are_watched(control: str, shell: Shell) -> None:
    shell.json("topic create u")
    shell.json("topic create v")
    with watching("--topic", "u", "--topic", "v") as process:
        assert next_line(process, "broker 3:")
        assert next_line(process, "").startswith("u-0: ")
        assert next_line(process, "").startswith("v-0: ")
        shell.json("elect t 0 --leader 2")
        shell.json("topic delete u")
        assert " verb delete_topic u" in next_line(process, "")
        assert " topic_deleted u: deleted" in next_line(process, "")


def test_it_ends_with_the_cluster(tmp_path: Path) -> None:
    cluster = serve(tmp_path / "log", brokers=1)
    assert cluster.control is not None
    with watching("--control", cluster.control) as process:
        assert next_line(process, "broker 1:")
        cluster.stop()
        assert process.wait(30) == 0


def test_there_is_nothing_to_watch_without_a_cluster(shell: Shell) -> None:
    assert "no control API answers" in shell.refusal("watch --control http://127.0.0.1:1", 1)
