"""The last offsets of keys in their file: when it is written, and when it is believed."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from fencepost.protocol.records import Record, build_batch
from fencepost.storage.files.file_log import FileLog
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.files.process_limits import ProcessLimits
from fencepost.storage.formats.checkpoints import KeyOffsetScope, encode_key_offsets
from fencepost.storage.formats.file_names import KEY_OFFSETS
from tests.harness.crash_model import Operation
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.harness.logs import NOW
from tests.storage.files.keys import (
    CONFIG,
    PATH,
    Reads,
    in_log,
    kept,
    known,
    put,
    reads,
    written,
)
from tests.storage.files.mirror import reopen

__all__ = ["reads"]


# -- when it is written ---------------------------------------------------------------------------


def test_there_is_none_where_nobody_asks(files: FaultyFileSystem) -> None:
    log, _ = reopen(files, CONFIG, clean=True)
    put(log, b"a")
    log.roll(NOW)
    put(log, b"a")
    log.close()
    assert not files.exists(PATH)


def test_it_is_written_when_a_segment_is_closed(files: FaultyFileSystem) -> None:
    log, _ = reopen(files, CONFIG, clean=True)
    put(log, b"a", b"b", b"a", epoch=4)
    known(log)
    assert not files.exists(PATH)
    log.roll(NOW)
    assert kept(files) == (KeyOffsetScope(3, 4, 0), {b"b": 1, b"a": 2})
    put(log, b"c", epoch=4)
    known(log)
    assert kept(files)[0].until == 3


def test_its_epoch_is_that_of_the_record_before(files: FaultyFileSystem, reads: Reads) -> None:
    log, _ = reopen(files, replace(CONFIG, segment_bytes=100), clean=True)
    put(log, b"a", epoch=3)
    known(log)
    put(log, b"b", epoch=4)  # which begins a segment and an epoch
    assert kept(files)[0] == KeyOffsetScope(1, 3, 0)
    log.abandon()
    log, _ = reopen(files, CONFIG, clean=False)
    reads()
    assert known(log) == {b"a": 0, b"b": 1}
    assert reads() == [1]


def test_it_is_not_written_for_less_than_it_costs(files: FaultyFileSystem) -> None:
    log, _ = reopen(files, CONFIG, clean=True)
    put(log, *(b"%d" % number for number in range(10)))
    written = []
    for _ in range(30):
        put(log, b"0")
        known(log)
        log.roll(NOW)
        written.append(kept(files)[0].until)
    assert written[0] == 11
    assert sorted(set(written)) == [11, 21, 31]
    log.close()
    assert kept(files)[0].until == 40


def test_it_is_written_at_a_clean_end(files: FaultyFileSystem, reads: Reads) -> None:
    log, _ = reopen(files, CONFIG, clean=True)
    put(log, b"a", b"b")
    known(log)
    log.close()
    files.crash()
    log, _ = reopen(files, CONFIG, clean=True)
    reads()
    assert known(log) == {b"a": 0, b"b": 1}
    assert not reads()


def test_it_is_written_once(files: FaultyFileSystem) -> None:
    log, _ = reopen(files, CONFIG, clean=True)
    put(log, b"a", b"b")
    known(log)
    log.roll(NOW)
    put(log, b"c")  # without a check
    files.fail(Operation.CHANGE, under=PATH, times=None)
    log.roll(NOW)
    log.close()
    files.heal()
    assert kept(files)[0].until == 2


def test_it_is_not_written_without_epochs(files: FaultyFileSystem) -> None:
    log, _ = reopen(files, replace(CONFIG, keeps_leader_epochs=False), clean=True)
    put(log, b"a")
    assert known(log) == {b"a": 0}
    log.roll(NOW)
    log.close()
    assert not files.exists(PATH)


def test_a_check_that_cannot_read_the_log_fails_it(files: FaultyFileSystem) -> None:
    log, _ = reopen(files, CONFIG, clean=True, shared=ProcessLimits(recent_bytes=0))
    put(log, b"a")
    staging = log.stage(now_ms=NOW)
    files.fail(Operation.READ)
    with pytest.raises(StorageFailure, match="Input/output error"):
        staging.add(build_batch([Record(0, 0, b"a", b"v")], base_offset=0), allow_zstd=True)
    assert log.failure is not None


@pytest.mark.parametrize("do", [lambda log: log.roll(NOW), FileLog.close])
def test_the_log_fails_where_it_cannot_be_written(
    files: FaultyFileSystem, do: Callable[[FileLog], None]
) -> None:
    log, _ = reopen(files, CONFIG, clean=True)
    put(log, b"a")
    known(log)
    files.fail(
        Operation.WRITE, errno.ENOSPC, under=PATH.with_name(KEY_OFFSETS + ".tmp"), times=None
    )
    with pytest.raises(StorageFailure):
        do(log)
    files.heal()
    files.end_process()
    log, recovery = reopen(files, CONFIG, clean=False)
    assert not recovery.cut
    assert known(log) == {b"a": 0}


def test_the_log_fails_where_it_cannot_be_read(files: FaultyFileSystem) -> None:
    log, _ = reopen(files, CONFIG, clean=True)
    put(log, b"a")
    known(log)
    log.close()
    log, _ = reopen(files, CONFIG, clean=True)
    files.fail(Operation.READ, under=PATH)
    with pytest.raises(StorageFailure):
        known(log)
    assert log.failure is not None


# -- when it is believed --------------------------------------------------------------------------


def test_the_rest_is_read_from_the_log(files: FaultyFileSystem, reads: Reads) -> None:
    log = written(files)
    put(log, b"b", b"1", epoch=2)
    log.flush()
    files.end_process()
    log, _ = reopen(files, CONFIG, clean=False)
    reads()
    assert known(log) == {b"0": 1, b"a": 4, b"2": 5, b"b": 6, b"1": 7} == in_log(log)
    assert reads() == [6]


def test_it_is_read_when_it_is_asked_for(files: FaultyFileSystem) -> None:
    written(files).close()
    log, _ = reopen(files, replace(CONFIG, check_expected_offsets=False), clean=True)
    files.fail(Operation.READ, under=PATH, times=None)
    put(log, b"a", epoch=2)
    log.roll(NOW)
    log.close()


def spoil(data: bytes, how: str) -> bytes:
    match how:
        case "cut":
            return data[:-1]
        case "nothing is in it":
            return b""
        case "a torn head":
            return data[:11]
        case "a flipped bit":
            return data[:-1] + bytes([data[-1] ^ 1])
        case "zeros":
            return bytes(len(data))
        case "newer":
            return b"\0\2" + data[2:]
        case "said to be short":
            return data[:13] + b"\5" + data[14:]
        case _:
            raise AssertionError(how)


@pytest.mark.parametrize(
    "how",
    [
        "cut",
        "nothing is in it",
        "a torn head",
        "a flipped bit",
        "zeros",
        "newer",
        "said to be short",
    ],
)
def test_a_broken_one_is_not_believed(files: FaultyFileSystem, reads: Reads, how: str) -> None:
    written(files).close()
    files.write_atomic(PATH, spoil(files.read(PATH), how), sync=True)
    log, _ = reopen(files, CONFIG, clean=True)
    reads()
    assert known(log) == in_log(log)
    assert reads() == [0]
    put(log, b"z", epoch=2)
    log.close()
    log, _ = reopen(files, CONFIG, clean=True)
    assert known(log) == in_log(log)


def test_a_missing_one_is_not_missed(files: FaultyFileSystem) -> None:
    log = written(files)
    files.remove(PATH)
    log.truncate_to(3)
    put(log, b"9", epoch=3)
    assert known(log) == in_log(log)
    log.close()
    files.remove(PATH)
    log, _ = reopen(files, CONFIG, clean=True)
    assert known(log) == in_log(log)


def test_one_that_goes_missing_later_is_not_missed(files: FaultyFileSystem) -> None:
    written(files).close()
    log, _ = reopen(files, CONFIG, clean=True)
    files.remove(PATH)
    assert known(log) == in_log(log)


@pytest.mark.parametrize(
    "scope",
    [
        KeyOffsetScope(7, 2, 0),
        KeyOffsetScope(6, 1, 0),
        KeyOffsetScope(4, 2, 0),
        KeyOffsetScope(0, 0, 0),
    ],
)
def test_one_of_another_log_goes_at_once(files: FaultyFileSystem, scope: KeyOffsetScope) -> None:
    written(files).close()
    files.write_atomic(PATH, encode_key_offsets(scope, {b"x": 1}), sync=True)
    log, _ = reopen(files, CONFIG, clean=True)
    assert not files.exists(PATH)
    files.crash()
    assert not files.exists(PATH)
    assert b"x" not in known(log)


def test_what_the_log_start_left_out_may_be_gone(files: FaultyFileSystem, reads: Reads) -> None:
    log = written(files)
    log.advance_log_start(2)
    put(log, *(b"%d" % (n % 10) for n in range(20)), epoch=2)
    known(log)
    log.roll(NOW)
    assert kept(files)[0].log_start == 2
    files.end_process()
    log, _ = reopen(files, CONFIG, clean=False)  # and the checkpoint of log starts is lost
    reads()
    assert log.log_start_offset == 2  # what lay before is gone
    assert known(log) == in_log(log)
    assert not reads()


def test_the_log_start_goes_back_within_a_segment(files: FaultyFileSystem, reads: Reads) -> None:
    log, _ = reopen(files, CONFIG, clean=True)
    put(log, b"a", b"b", b"c", b"a")
    log.advance_log_start(2)
    known(log)
    log.close()
    assert kept(files) == (KeyOffsetScope(4, 0, 2), {b"c": 2, b"a": 3})
    log, _ = reopen(files, CONFIG, clean=True, log_start_offset=1)
    reads()
    assert known(log) == {b"b": 1, b"c": 2, b"a": 3}
    assert reads() == [1]
    log.abandon()
    log, _ = reopen(files, CONFIG, clean=True, log_start_offset=3)
    assert known(log) == {b"a": 3}
