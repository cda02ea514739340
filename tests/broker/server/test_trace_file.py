"""A trace's files hold every line, in order, whole, and as many files as are wanted."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from fencepost.broker.core.events import Event, Kind
from fencepost.broker.server import trace_file
from fencepost.broker.server import trace_file as module
from fencepost.broker.server.trace_file import Item, TraceFile, TraceUnavailable
from tests.harness.wait import wait_until

PATIENCE_S: Final = 10


@pytest.fixture(autouse=True)
def switch_interval() -> Iterator[None]:
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


def event(number: int) -> Event:
    return Event(kind=Kind.RESET, time_ms=number)


def describe(item: Item) -> bytes:
    assert isinstance(item, Event)
    return b'{"at":%d}' % item.time_ms


def make_describe() -> Callable[[Item], bytes]:
    return describe


class FullDisk(io.RawIOBase):
    def writable(self) -> bool:
        return True

    def write(self, _data: object, /) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def lines(directory: Path) -> list[int]:
    """What the files say, in the order of their names."""
    return [
        json.loads(line)["at"]
        for path in sorted(directory.iterdir())
        for line in path.read_text().splitlines()
    ]


def ends_with(directory: Path, number: int) -> bool:
    return lines(directory)[-1:] == [number]


def test_when_it_ends_every_line_is_there_in_order(tmp_path: Path) -> None:
    with TraceFile(tmp_path / "new" / "directory", make_describe) as trace:
        for number in range(10_000):
            trace.add(event(number))
    assert lines(tmp_path / "new" / "directory") == list(range(10_000))


def test_lines_are_in_the_file_when_there_is_nothing_more_to_write(tmp_path: Path) -> None:
    with TraceFile(tmp_path, make_describe) as trace:
        for number in (1, 2):
            trace.add(event(number))
            wait_until("every line is written", partial(ends_with, tmp_path, number))


def test_another_run_writes_files_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "other").write_text('{"at":7}\n')
    with TraceFile(tmp_path, make_describe) as trace:
        trace.add(event(1))
    assert sorted(lines(tmp_path)) == [1, 7]


def test_files_end_with_a_whole_line_and_all_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_file, "MAX_FILE_BYTES", 100)
    with TraceFile(tmp_path, make_describe) as trace:
        for number in range(100, 200):
            trace.add(event(number))
    assert lines(tmp_path) == list(range(100, 200))
    sizes = [path.stat().st_size for path in sorted(tmp_path.iterdir())]
    assert len(sizes) > 10
    assert all(100 <= size < 120 for size in sizes[:-1])


def test_only_the_newest_files_are_kept_where_there_is_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trace-of-another-program.jsonl").touch()
    monkeypatch.setattr(trace_file, "MAX_FILE_BYTES", 100)
    with TraceFile(tmp_path, make_describe, keep=2) as trace:
        for number in range(100, 200):
            trace.add(event(number))
    found = lines(tmp_path)
    assert found == list(range(found[0], 200))
    assert len(list(tmp_path.iterdir())) == 3


def test_who_is_too_fast_waits_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BEHIND", 10)
    go_on = threading.Event()

    def slow(item: Item) -> bytes:
        assert go_on.wait(PATIENCE_S)
        return describe(item)

    with TraceFile(tmp_path, lambda: slow) as trace:
        for number in range(10):
            trace.add(event(number))
        returned = threading.Event()

        def add() -> None:
            trace.add(event(10))
            returned.set()

        fast = threading.Thread(target=add)
        fast.start()
        assert not returned.wait(0.2)
        go_on.set()
        assert returned.wait(PATIENCE_S)
        fast.join()
    assert lines(tmp_path) == list(range(11))


def test_a_bug_costs_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def picky(item: Item) -> bytes:
        if item == event(2):
            raise ZeroDivisionError
        return describe(item)

    with TraceFile(tmp_path, lambda: picky) as trace:
        for number in (1, 2, 3):
            trace.add(event(number))
    assert lines(tmp_path) == [1, 3]
    assert "line_failed" in capsys.readouterr().err


def test_a_disk_that_fails_ends_the_trace_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "MAX_BEHIND", 10)
    monkeypatch.setattr(trace_file, "MAX_FILE_BYTES", 1)
    directory = tmp_path / "gone"
    with TraceFile(directory, make_describe) as trace:
        next(directory.iterdir()).unlink()
        directory.rmdir()
        for number in range(100):
            trace.add(event(number))
    logged = capsys.readouterr().err.splitlines()
    assert len(logged) == 1
    assert "trace_ended" in logged[0]


def test_a_disk_that_is_full_is_said_once_and_ends_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What could not be written is tried again when the file is closed."""
    monkeypatch.setattr(Path, "open", lambda *_: io.BufferedWriter(FullDisk()))
    with TraceFile(tmp_path, make_describe) as trace:
        trace.add(event(1))
    logged = capsys.readouterr().err.splitlines()
    assert len(logged) == 1
    assert "trace_ended" in logged[0]


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_directory_that_can_not_be_is_said_so_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TraceUnavailable) as refused:
        TraceFile(tmp_path / name, make_describe)
    assert str(refused.value) == f"can't write to {tmp_path / name}: not a directory"
