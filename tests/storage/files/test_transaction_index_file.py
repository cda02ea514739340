"""The ``.txnindex`` of a segment: written with each abort, and rebuilt where it is missing."""

import pytest

from fencepost.storage.files.file_log import FileLog
from fencepost.storage.formats.indexes import encode_transactions
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.transactions import AbortedTransaction
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.harness.logs import NOW, append, append_marker
from tests.harness.records import batch
from tests.storage.files.mirror import DIRECTORY, reopen

CONFIG = LogConfig(index_interval_bytes=100)
INDEX = DIRECTORY / "00000000000000000000.txnindex"
SECOND = DIRECTORY / "00000000000000000004.txnindex"
ABORTED = (AbortedTransaction(4, 1, 3, 2), AbortedTransaction(5, 2, 5, 6))


def write(files: FaultyFileSystem) -> FileLog:
    """Two aborted transactions, the second one over two segments, and one that is open."""
    log = reopen(files, CONFIG, clean=True, now_ms=NOW).log
    append(log)
    for producer in (4, 5):
        append(log, batch(producer=(producer, 0, 0), transactional=True))
    append_marker(log, 4, committed=False)
    log.roll(NOW)
    append(log, batch(producer=(5, 0, 1), transactional=True))
    append_marker(log, 5, committed=False)
    append(log, batch(producer=(6, 0, 0), transactional=True))
    return log


def check(log: FileLog) -> None:
    assert log.aborted_transactions(0, 100) == ABORTED
    assert log.last_stable_offset(log.log_end_offset) == 6
    assert log.has_ongoing_transaction(6, 0)
    append_marker(log, 6, committed=False)
    assert log.aborted_transactions(0, 100) == (*ABORTED, AbortedTransaction(6, 6, 7, 8))


def test_the_file_has_the_aborted_transactions_of_its_segment(files: FaultyFileSystem) -> None:
    write(files)
    assert files.read(INDEX) == encode_transactions(ABORTED[:1])
    assert files.read(SECOND) == encode_transactions(ABORTED[1:])


def test_a_segment_without_an_abort_has_no_file(files: FaultyFileSystem) -> None:
    log = reopen(files, CONFIG, clean=True, now_ms=NOW).log
    append(log, batch(producer=(4, 0, 0), transactional=True))
    append_marker(log, 4, committed=True)
    log.close()
    assert not files.exists(INDEX)


def test_a_closed_log_is_opened_with_its_transactions(files: FaultyFileSystem) -> None:
    write(files).close()
    found = reopen(files, CONFIG, clean=True, now_ms=NOW)
    assert not found.recovery
    check(found.log)


@pytest.mark.parametrize("recovery_point", [0, 4])
def test_after_a_kill_the_files_are_made_again(
    files: FaultyFileSystem, recovery_point: int
) -> None:
    write(files)
    files.end_process()
    files.write_atomic(SECOND, encode_transactions(ABORTED[:1]), sync=True)
    check(reopen(files, CONFIG, clean=False, now_ms=NOW, recovery_point=recovery_point).log)


def test_after_a_crash_what_is_left_is_right(files: FaultyFileSystem) -> None:
    log = write(files)
    log.flush()
    append_marker(log, 6, committed=False)
    files.crash()
    found = reopen(files, CONFIG, clean=False, now_ms=NOW, recovery_point=7)
    assert found.log.log_end_offset == 7
    check(found.log)


@pytest.mark.parametrize("damage", ["removed", "cut", "an old copy"])
def test_a_file_that_is_not_as_it_was_written_is_rebuilt(
    files: FaultyFileSystem, damage: str
) -> None:
    log = write(files)
    inventory = log.inventory(6)
    log.close()
    if damage == "removed":
        files.remove(INDEX)
    else:
        data = encode_transactions([]) if damage == "an old copy" else files.read(INDEX)[:-1]
        files.write_atomic(INDEX, data, sync=True)
    found = reopen(files, CONFIG, clean=True, now_ms=NOW, inventory=inventory)
    check(found.log)
    assert INDEX.name in found.log.rebuilt
    assert files.read(INDEX) == encode_transactions(ABORTED[:1])


def test_a_file_from_before_a_failure_is_not_the_new_segments(files: FaultyFileSystem) -> None:
    log = reopen(files, CONFIG, clean=True, now_ms=NOW).log
    for _ in range(4):
        append(log)
    files.write_atomic(SECOND, encode_transactions(ABORTED[1:]), sync=True)
    log.roll(NOW)
    assert log.aborted_transactions(0, 100) == ()
    assert not files.exists(SECOND)


def test_truncation_cuts_the_file(files: FaultyFileSystem) -> None:
    log = write(files)
    log.truncate_to(5)
    assert not files.exists(SECOND)
    log.truncate_to(3)
    assert not files.exists(INDEX)
    log.close()
    log = reopen(files, CONFIG, clean=True, now_ms=NOW).log
    assert log.aborted_transactions(0, 100) == ()
    assert log.last_stable_offset(3) == 1


def test_a_deleted_segment_takes_its_file_along(files: FaultyFileSystem) -> None:
    log = write(files)
    log.advance_log_start(4)
    assert not files.exists(INDEX)
    assert log.aborted_transactions(4, 100) == ABORTED[1:]


def test_compaction_writes_the_files_of_its_segments(files: FaultyFileSystem) -> None:
    config = LogConfig(cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0)
    log = write(files)
    log.config = config
    append_marker(log, 6, committed=True)
    log.roll(NOW)
    assert log.compact(NOW, log.log_end_offset, at_once=True)
    assert log.aborted_transactions(0, 100) == ABORTED
    log.close()
    log = reopen(files, config, clean=True, now_ms=NOW).log
    assert log.aborted_transactions(0, 100) == ABORTED
    assert files.read(INDEX) == encode_transactions(ABORTED)
