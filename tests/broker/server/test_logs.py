"""Logs go to standard error: one JSON object a line where that is no terminal."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Final

import pytest

from fencepost.broker.core.log_levels import REQUESTS, ROOT, SERVER, Level
from fencepost.broker.server import logs


def test_a_line_is_json_with_what_it_is_bound_to(capsys: pytest.CaptureFixture[str]) -> None:
    logs.logger(connection="c1", client_id="me").info("connection_closed", reason="bad_frame")
    line = json.loads(capsys.readouterr().err)
    assert (
        line.items()
        >= {
            "event": "connection_closed",
            "level": "info",
            "connection": "c1",
            "client_id": "me",
            "reason": "bad_frame",
        }.items()
    )


def test_a_bug_is_told_with_where_it_was_but_not_with_the_data_at_hand(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(frame: bytes) -> None:
        raise RuntimeError(f"a bug in {len(frame)} bytes")

    try:
        fail(b"secret")
    except RuntimeError:
        logs.logger().exception("handler_failed")
    text = capsys.readouterr().err
    assert json.loads(text)["exception"][0]["exc_value"] == "a bug in 6 bytes"
    assert "test_logs.py" in text
    assert "secret" not in text


def test_nothing_below_the_level_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert not logs.levels.logs_requests
    logs.logger().debug("request")
    assert capsys.readouterr().err == ""


def test_each_logger_has_a_level_that_may_change(capsys: pytest.CaptureFixture[str]) -> None:
    def written() -> list[str]:
        for name in (SERVER, REQUESTS):
            logs.logger(name).debug("low", of=name)
            logs.logger(name).error("high", of=name)
        lines = map(json.loads, capsys.readouterr().err.splitlines())
        return [f"{line['event']} {line['of']}" for line in lines]

    try:
        logs.levels.set_level(REQUESTS, Level.TRACE)
        assert written() == [f"high {SERVER}", f"low {REQUESTS}", f"high {REQUESTS}"]
        logs.levels.set_level(ROOT, Level.FATAL)
        assert written() == [f"low {REQUESTS}", f"high {REQUESTS}"]
        logs.levels.unset_level(REQUESTS)
        assert written() == []
    finally:
        logs.set_level("info")


# -- streams that do not block ------------------------------------------------------------------


class Pipe:
    """A pipe whose reader reads when the test says so, and the stream that writes to it."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self.stream = logs.NonBlockingStream(self.writer, lambda lines: f"{lines} dropped\n")

    def read(self, last: str) -> list[str]:
        """All lines until one that begins so, inclusive."""
        text = b""
        while not text.rpartition(b"\n")[0].split(b"\n")[-1].startswith(last.encode()):
            ready, _, _ = select.select([self.reader], [], [], 60)
            assert ready, f"nothing came after {text[-300:]!r}"
            text += os.read(self.reader, 65536)
        return text.decode().splitlines()

    def fill(self) -> None:
        """Fill it with empty lines up to its last byte: a writer waits for the reader."""
        os.set_blocking(self.writer, False)
        for size in (4096, 1):
            with suppress(BlockingIOError):
                while True:
                    os.write(self.writer, b"\n" * size)
        os.set_blocking(self.writer, True)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    with suppress(OSError):
        os.close(made.reader)
    made.stream.drain()  # its thread has ended with the reader
    os.close(made.writer)


def is_notice(line: str) -> bool:
    return line.endswith(" dropped")


def test_a_reader_that_is_back_is_told_once_how_many_lines_were_dropped(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MAX_WAITING", 10_000)
    pipe.fill()  # else lines are dropped, and told, while the thread merely is behind
    sent = 0
    while pipe.stream.dropped < 100:
        pipe.stream.write(f"{sent:04} {'x' * 100}\n")
        sent += 1
    found = pipe.read("100 dropped")
    pipe.stream.write("next\n")
    found = [line for line in found + pipe.read("next") if line]
    assert [is_notice(line) for line in found].count(True) == 1
    assert found[-2:] == ["100 dropped", "next"]
    assert [int(line[:4]) for line in found[:-2]] == list(range(sent - 100))


def test_nothing_is_lost_on_a_reader_that_is_slow(pipe: Pipe) -> None:
    text = "".join(f"{number} {'x' * 100}\n" for number in range(4000))
    pipe.stream.write(text)
    reading = Thread(target=lambda: found.extend(pipe.read("3999")), daemon=True)
    found: list[str] = []
    reading.start()
    pipe.stream.drain(60)
    reading.join(60)
    assert found == text.splitlines()
    assert pipe.stream.dropped == 0


def test_a_reader_that_has_gone_harms_nobody_and_what_it_lost_is_counted(pipe: Pipe) -> None:
    os.close(pipe.reader)
    for number in range(3):
        pipe.stream.write(f"{number}\n")
        pipe.stream.drain(60)
    assert pipe.stream.dropped == 3


def test_a_reader_that_reads_nothing_does_not_hold_the_end_up(pipe: Pipe) -> None:
    pipe.stream.write("x" * 100_000 + "\n")
    pipe.stream.drain(0.01)
    pipe.stream.write("dropped or not, this is not waited for\n")


def test_a_file_has_each_line_at_once_and_in_place(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        stream = logs.NonBlockingStream(file.fileno(), str)
        stream.write("first\nsec")
        assert path.read_text() == "first\n"
        stream.write("ond\n")
        stream.write("no end")
        stream.flush()
        assert path.read_text() == "first\nsecond\nno end"
        assert stream._thread is None


def test_lines_that_a_full_disk_refused_are_told_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    write, room = os.write, [3]

    def write_while_there_is_room(descriptor: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "full")
        count = write(descriptor, data[: room[0]])
        room[0] -= count
        return count

    with path.open("wb") as file:
        stream = logs.NonBlockingStream(file.fileno(), lambda lines: f"{lines} dropped\n")
        monkeypatch.setattr(os, "write", write_while_there_is_room)
        stream.write("first\n")
        stream.write("second\nthird\n")
        room[0] = 1000
        stream.write("fourth\n")
    assert path.read_text() == "fir\n3 dropped\nfourth\n"


def test_a_descriptor_that_another_process_made_non_blocking_is_waited_for(pipe: Pipe) -> None:
    os.set_blocking(pipe.writer, False)
    pipe.stream.write("x" * 200_000 + "\nlast\n")
    assert len(pipe.read("last")[0]) == 200_000
    assert pipe.stream.dropped == 0


PIPE_BYTES: Final = 4096


@contextmanager
def served_with_small_pipes() -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A server whose standard output and error are soon full, and its control API's address."""
    command = [sys.executable, "-m", "fencepost", "serve", "--port=0", "--control-port=0"]
    with subprocess.Popen(
        [*command, "--stop-with-stdin"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stderr is not None
            for pipe in (child.stdout, child.stderr):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            yield child, json.loads(child.stdout.readline())["bootstrap"]
        finally:
            child.kill()


needs_small_pipes = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux changes the size of a pipe"
)


def closed_by_server(bootstrap: str, frame: bytes) -> bool:
    host, _, port = bootstrap.partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        client.sendall(frame)
        return client.recv(1) == b""


@needs_small_pipes
def test_an_unread_log_stops_neither_the_cluster_nor_its_end() -> None:
    with served_with_small_pipes() as (child, bootstrap):
        for _ in range(PIPE_BYTES // 100):
            assert closed_by_server(bootstrap, b"\xff\xff\xff\xff")
        child.terminate()
        assert child.wait(30) == 0


@needs_small_pipes
def test_unread_confirmations_of_resets_stop_nothing() -> None:
    with served_with_small_pipes() as (child, bootstrap):
        assert child.stdin is not None
        child.stdin.write(b"reset\n" * (PIPE_BYTES // 50))
        child.stdin.flush()
        assert closed_by_server(bootstrap, b"\xff\xff\xff\xff")
        child.stdin.close()
        assert child.wait(30) == 0
        assert child.stdout is not None
        assert child.stdout.read(1) == b"{"


@needs_small_pipes
def test_the_end_of_the_process_has_all_its_lines() -> None:
    with served_with_small_pipes() as (child, bootstrap):
        assert child.stderr is not None
        for _ in range(PIPE_BYTES // 100):
            assert closed_by_server(bootstrap, b"\xff\xff\xff\xff")
        child.terminate()
        lines = child.stderr.read().splitlines()
        assert child.wait(30) == 0
    events = [json.loads(line)["event"] for line in lines]
    assert events == ["connection_closed"] * (PIPE_BYTES // 100) + ["stopping"]
