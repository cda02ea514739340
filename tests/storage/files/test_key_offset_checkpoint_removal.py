"""The file of keys: when it goes, and what is left of it where the machine ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import PurePath
from random import Random

import pytest

from fencepost.storage.files.file_log import FileLog
from tests.harness.crash_model import PowerOff
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.harness.logs import NOW
from tests.storage.files.keys import (
    COMPACTED,
    PATH,
    Reads,
    compacted,
    in_log,
    kept,
    known,
    put,
    reads,
    written,
)
from tests.storage.files.mirror import DIRECTORY, reopen

__all__ = ["reads"]


# -- when it goes ---------------------------------------------------------------------------------


def test_it_goes_before_what_it_speaks_of(files: FaultyFileSystem) -> None:
    log = written(files)
    gone: list[bool] = []
    whole = files.remove

    def remove(path: PurePath) -> None:
        gone.append(path == PATH)
        whole(path)

    files.remove = remove  # type: ignore[method-assign]  # a spy
    log.truncate_to(5)
    assert gone[0]
    assert not files.exists(PATH)


def test_it_stays_where_nothing_of_it_is_cut(files: FaultyFileSystem, reads: Reads) -> None:
    log = written(files)
    put(log, b"b", epoch=2)
    put(log, b"c", epoch=2)
    known(log)
    log.truncate_to(6)
    assert files.exists(PATH)
    put(log, b"d", epoch=3)
    reads()
    assert known(log) == in_log(log)
    assert reads() == [6]


@pytest.mark.parametrize("offset", [0, 3, 6, 50])
def test_starting_over_takes_it(files: FaultyFileSystem, offset: int) -> None:
    log = written(files)
    log.truncate_fully_and_start_at(offset, now_ms=NOW)
    assert not files.exists(PATH)
    put(log, b"new", epoch=9)
    assert known(log) == {b"new": offset}


@pytest.mark.parametrize("asked", [True, False])
def test_a_tombstone_takes_its_key_out_of_the_file(files: FaultyFileSystem, asked: bool) -> None:
    log = compacted(files)
    if asked:
        known(log)
    log.compact(NOW + 5_000, log.log_end_offset)
    assert not files.exists(PATH)
    assert known(log) == {b"a": 2, b"c": 3, b"d": 4} == in_log(log)
    log.roll(NOW)
    log.close()
    log, _ = reopen(files, COMPACTED, clean=True)
    assert known(log) == in_log(log)


def test_a_tombstone_takes_the_file_whatever_else_goes(files: FaultyFileSystem) -> None:
    log = compacted(files)
    put(log, b"e", value=None)
    log.roll(NOW)
    log.compact(NOW, log.log_end_offset)
    assert kept(files)[0].until == 5
    put(log, b"f")
    log.roll(NOW)
    log.compact(NOW + 5_000, log.log_end_offset)
    assert not files.exists(PATH)
    assert known(log) == in_log(log)
    assert not {b"b", b"e"} & set(known(log))


def test_compaction_of_nothing_else_leaves_it(files: FaultyFileSystem) -> None:
    log = compacted(files)
    log.compact(NOW + 10, log.log_end_offset)
    assert kept(files)[0].until == 5
    assert known(log) == in_log(log)


# -- the machine ends -----------------------------------------------------------------------------


def truncate(log: FileLog) -> None:
    log.truncate_to(3)
    put(log, b"after", b"0", b"0", b"1", epoch=5)
    known(log)
    log.roll(NOW)
    put(log, b"2", epoch=5)
    log.close()


def start_over(log: FileLog) -> None:
    log.truncate_fully_and_start_at(4, now_ms=NOW)
    put(log, b"after", b"0", b"1", b"1", epoch=5)
    known(log)
    log.close()


def delete_old(log: FileLog) -> None:
    log.advance_log_start(4)
    put(log, b"0", b"3", epoch=5)
    known(log)
    log.close()


def go_on(log: FileLog) -> None:
    for number in range(4):
        put(log, b"%d" % number, b"more", epoch=5)
        known(log)
        log.roll(NOW)
    log.close()


def clean(log: FileLog) -> None:
    log.compact(NOW + 5_000, log.log_end_offset)
    put(log, b"c", epoch=5)
    known(log)
    log.close()


def note(log: FileLog, points: list[int]) -> None:
    points.append(log.recovery_point)


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("do", [truncate, start_over, delete_old, go_on, clean])
def test_whatever_a_crash_leaves_is_right(do: Callable[[FileLog], None], seed: int | None) -> None:
    for step in range(1000):
        files = FaultyFileSystem()
        files.make_dirs(DIRECTORY.parent)
        files.settle()
        log = (compacted if do is clean else written)(files)
        config = log.config
        points = [log.recovery_point]
        log.on_truncated = partial(note, log, points)
        files.power_off_after(step)
        is_done = True
        try:
            do(log)
        except PowerOff:
            is_done = False
        files.crash(None if seed is None else Random(seed * 1000 + step))
        log, _ = reopen(files, config, clean=False, now_ms=NOW, recovery_point=points[-1])
        # As much as there was, and other records.
        for _ in range(10):
            put(log, b"new", epoch=30)
        files.settle()
        assert known(log) == in_log(log), step
        log.abandon()
        log, _ = reopen(files, config, clean=False, now_ms=NOW, recovery_point=points[-1])
        assert known(log) == in_log(log), step
        if is_done:
            break
    else:
        pytest.fail("it never ends")
    assert step > 2
