"""The machine ends in the middle of whatever a log does to its files, at every single step."""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import pytest
from msgspec.structs import replace

from fencepost.protocol.records import Record
from fencepost.storage.files.file_log import FileLog
from fencepost.storage.log.config import LogConfig
from tests.harness.crash_model import PowerOff
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.harness.logs import NOW, T, append, segmented
from tests.harness.records import batch
from tests.storage.files.mirror import DIRECTORY, all_records, reopen

CONFIG = LogConfig(segment_bytes=300, index_interval_bytes=100)
COMPACTED = replace(
    CONFIG, cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0, segment_bytes=600
)


def written(config: LogConfig, files: FaultyFileSystem) -> FileLog:
    """Twenty durable records of five keys in several segments, and three that are not durable."""
    files.make_dirs(DIRECTORY.parent)
    files.settle()
    log, _ = reopen(files, config, clean=True, now_ms=NOW)
    for n in range(20):
        if n % 4 == 0:
            log.roll(NOW)
        append(log, batch((T + n, b"%d" % (n % 5), b"v%d" % n), producer=(1, 0, n)), epoch=n // 7)
    log.flush()
    for n in range(3):
        append(log, batch((T + 20 + n, b"0", b"v%d" % n)), epoch=5)
    return log


def append_more(log: FileLog) -> None:
    for n in range(8):
        append(log, batch((T + 50 + n, b"k%d" % n, b"v")), epoch=6)


def truncate(log: FileLog) -> None:
    log.truncate_to(9)
    append(log, batch((T + 90, b"after", b"")), epoch=8)


def start_over(log: FileLog) -> None:
    log.truncate_fully_and_start_at(70, now_ms=NOW)
    append(log, batch((T + 90, b"after", b"")), epoch=8)


def delete_old(log: FileLog) -> None:
    log.advance_log_start(17)


def compact(log: FileLog) -> None:
    assert log.compact(NOW, log.log_end_offset) > 0


def flush(log: FileLog) -> None:
    log.flush()


def close(log: FileLog) -> None:
    log.close()


def begins(records: Sequence[Record], whole: Sequence[Record]) -> bool:
    return list(records) == list(whole[: len(records)])


def after(do: Callable[[FileLog], None], config: LogConfig) -> tuple[list[Record], list[Record]]:
    """The records before and after it."""
    log = written(config, FaultyFileSystem())
    before = all_records(log)
    do(log)
    return before, all_records(log) if do is not close else before


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize(
    ("do", "kept"),
    [
        (append_more, range(20)),
        (truncate, range(9)),
        (start_over, range(0)),
        (delete_old, range(17, 20)),
        (compact, range(0)),
        (flush, range(20)),
        (close, range(20)),
    ],
)
def test_a_log_is_what_it_was_or_what_it_becomes(
    do: Callable[[FileLog], None], kept: range, seed: int | None
) -> None:
    config = COMPACTED if do is compact else CONFIG
    before, afterwards = after(do, config)
    for step in range(1000):
        files = FaultyFileSystem()
        log = written(config, files)
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
        found = all_records(log)
        offsets = [record.offset for record in found]
        assert set(kept) <= set(offsets)
        assert is_part(found, before) or is_part(found, afterwards), (step, found)
        if do is not delete_old:
            assert begins(found, before) or begins(found, afterwards)
        if do is compact:
            assert {record.key for record in found} == {b"%d" % n for n in range(5)}
        check_epochs(log)
        append(log, batch((T, b"new", b"")), epoch=30)
        if is_done:
            break
    else:
        pytest.fail("it never ends")
    assert step > 2


def note(log: FileLog, points: list[int]) -> None:
    points.append(log.recovery_point)


def is_part(found: Sequence[Record], whole: Sequence[Record]) -> bool:
    """Whether the records follow on each other in the whole as well."""
    return not found or begins(found, whole[[r.offset for r in whole].index(found[0].offset) :])


def check_epochs(log: FileLog) -> None:
    """Every batch's epoch is known, and begins there at the latest; none begins behind the end."""
    entries = log.epoch_entries()
    for segment in segmented(log).local_segments.all:
        for _, header in segment.scan():
            if header.base_offset >= log.log_start_offset:
                epoch = log.epoch_for_offset(header.base_offset)
                assert epoch == header.partition_leader_epoch
    assert all(entry.start_offset < log.log_end_offset for entry in entries)
