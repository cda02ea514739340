"""Compaction where a segment comes out empty, and the next one that ends at every single step."""

from __future__ import annotations

from random import Random

import pytest

from fencepost.storage.files.file_log import FileLog
from fencepost.storage.formats.file_names import FileState, parse_segment_file_name
from fencepost.storage.log.config import LogConfig
from tests.harness.crash_model import PowerOff
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.harness.logs import NOW, T, append
from tests.harness.records import batch
from tests.storage.files.mirror import DIRECTORY, all_records, reopen

CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0, segment_bytes=400
)


def write(log: FileLog, *keys: bytes) -> None:
    """A segment of its own."""
    for key in keys:
        append(log, batch((T, key, b"%d" % log.log_end_offset * 10)))
    log.roll(NOW)


def compacted_once(files: FaultyFileSystem) -> FileLog:
    files.make_dirs(DIRECTORY.parent)
    log, _ = reopen(files, CONFIG, clean=True, now_ms=NOW)
    write(log, b"kept", b"also", b"a", b"b")
    write(log, b"a", b"b", b"a", b"b")  # of these nothing stays
    write(log, b"a", b"b", b"c", b"d")
    assert log.compact(NOW, log.log_end_offset) > 0
    write(log, b"c", b"d", b"a", b"e")
    log.flush()
    files.settle()
    return log


def test_nothing_is_left_over() -> None:
    files = FaultyFileSystem()
    compacted_once(files)
    found = [parse_segment_file_name(name) for name in files.names(DIRECTORY)]
    assert {each.state for each in found if each is not None} == {FileState.LIVE}


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_the_next_one_loses_nothing(seed: int | None) -> None:
    log = compacted_once(FaultyFileSystem())
    before = all_records(log)
    log.compact(NOW, log.log_end_offset)
    after = all_records(log)
    assert after != before
    for step in range(1000):
        files = FaultyFileSystem()
        log = compacted_once(files)
        recovery_point = log.recovery_point
        files.power_off_after(step)
        try:
            log.compact(NOW, log.log_end_offset)
        except PowerOff:
            is_done = False
        else:
            is_done = True
        files.crash(None if seed is None else Random(seed * 1000 + step))
        log, _ = reopen(files, CONFIG, clean=False, now_ms=NOW, recovery_point=recovery_point)
        assert all_records(log) in (before, after), step
        if is_done:
            break
    assert step > 5
