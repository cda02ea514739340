"""What a log in files does beside what every log does: lasting, failing, leaving."""

import errno
from collections.abc import Callable
from random import Random

import pytest
from msgspec.structs import replace

from fencepost.storage.files.file_log import FileLog
from fencepost.storage.files.file_segment import FileSegment
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.files.process_limits import ProcessLimits
from fencepost.storage.log.append_result import AppendResult
from fencepost.storage.log.config import LogConfig
from tests.harness.crash_model import Operation
from tests.harness.faulty_file_system import FaultyFileSystem
from tests.harness.logs import NOW, T, append, records_of, segmented
from tests.harness.records import batch
from tests.storage.files.mirror import DIRECTORY, all_records, reopen

CONFIG = LogConfig(index_interval_bytes=100)


def new(
    files: FaultyFileSystem, config: LogConfig = CONFIG, shared: ProcessLimits | None = None
) -> FileLog:
    return reopen(files, config, clean=True, now_ms=NOW, shared=shared).log


def again(files: FaultyFileSystem, log: FileLog, config: LogConfig = CONFIG) -> FileLog:
    return reopen(files, config, clean=False, now_ms=NOW, recovery_point=log.recovery_point).log


# Flushing.


def test_what_was_not_flushed_may_be_lost_and_what_was_is_not(files: FaultyFileSystem) -> None:
    log = new(files)
    append(log, epoch=3)
    append(log, epoch=3)
    log.flush()
    assert log.recovery_point == 2
    append(log, epoch=4)
    files.crash()
    log = again(files, log)
    assert (log.log_end_offset, log.epoch_entries()) == (2, ((3, 0),))


def test_every_append_is_durable_before_it_is_answered(files: FaultyFileSystem) -> None:
    config = replace(CONFIG, flush_messages=1)
    log = new(files, config)
    for n in range(4):
        append(log)
        log.append_as_follower([bytes(follower_batch(log))], now_ms=NOW)
        assert log.recovery_point == 2 * n + 2
        if n == 1:
            log.roll(NOW)
    files.crash()
    assert again(files, log, config).log_end_offset == 8


def follower_batch(log: FileLog) -> bytearray:
    data = batch()
    data[:8] = log.log_end_offset.to_bytes(8, "big")
    data[12:16] = bytes(4)  # the epoch that the leader's batches have here
    return data


def test_flush_messages_counts_records(files: FaultyFileSystem) -> None:
    log = new(files, replace(CONFIG, flush_messages=3))
    points = []
    for _ in range(7):
        append(log)
        points.append(log.recovery_point)
    assert points == [0, 0, 3, 3, 3, 6, 6]


def test_flush_ms_counts_on_after_the_clock_was_set_back(files: FaultyFileSystem) -> None:
    log = new(files, replace(CONFIG, flush_ms=100))
    append(log)
    log.flush_due(NOW - 1_000_000)
    assert log.recovery_point == 0
    log.flush_due(NOW - 1_000_000 + 100)
    assert log.recovery_point == 1


def test_flush_ms(files: FaultyFileSystem) -> None:
    log = new(files, replace(CONFIG, flush_ms=100))
    append(log)
    log.flush_due(NOW + 99)
    assert log.recovery_point == 0
    log.flush_due(NOW + 100)
    assert log.recovery_point == 1
    append(log)
    log.flush_due(NOW + 199)
    assert log.recovery_point == 1
    log.flush_due(NOW + 200)
    assert log.recovery_point == 2


def test_a_truncation_takes_the_recovery_point_along_and_says_so(files: FaultyFileSystem) -> None:
    log = new(files)
    told: list[int] = []
    log.on_truncated = lambda: told.append(log.recovery_point)
    for _ in range(5):
        append(log)
    log.flush()
    log.truncate_to(5)
    assert (log.recovery_point, told) == (5, [])
    log.truncate_to(3)
    assert (log.recovery_point, told) == (3, [3])
    log.truncate_fully_and_start_at(1, now_ms=NOW)
    assert (log.recovery_point, told) == (1, [3, 1])


def test_what_was_truncated_does_not_come_back(files: FaultyFileSystem) -> None:
    log = new(files)
    for _ in range(5):
        append(log)
    log.flush()
    log.truncate_to(3)
    files.crash()
    assert again(files, log).log_end_offset == 3


def test_a_buffer_that_was_cut_in_the_middle_is_not_read_whole(files: FaultyFileSystem) -> None:
    log = new(files)
    first, second = follower_batch(log), follower_batch(log)
    second[:8] = (1).to_bytes(8, "big")
    log.append_as_follower([bytes(first + second)], now_ms=NOW)
    log.truncate_to(1)
    append(log, batch((T, b"k", b"new")))
    assert [record.value for record in records_of(log)] == [b"v", b"new"]


def test_closed_segments_can_be_synced_by_another_thread(files: FaultyFileSystem) -> None:
    log = new(files)
    append(log, epoch=1)
    assert log.closed_segments_to_sync() is None
    log.roll(NOW)
    append(log, epoch=2)
    pending = log.closed_segments_to_sync()
    assert pending is not None
    pending.run()
    assert log.recovery_point == 0
    log.on_synced(pending, None)
    assert log.recovery_point == 1
    assert log.closed_segments_to_sync() is None
    files.crash()
    log, recovery = reopen(files, CONFIG, clean=False, now_ms=NOW, recovery_point=1)
    assert (log.log_end_offset, log.epoch_entries()) == (1, ((1, 0),))
    assert not recovery.rebuilt


def test_indexes_of_what_was_truncated_do_not_stay(files: FaultyFileSystem) -> None:
    log = new(files)
    append(log)
    log.close(sync=False)
    assert any(name.endswith(".timeindex") for name in files.names(DIRECTORY))
    log = again(files, log)
    log.truncate_to(0)
    assert not any(name.endswith("index") for name in files.names(DIRECTORY))
    log.close(sync=False)
    assert not any(name.endswith("index") for name in files.names(DIRECTORY))


def test_what_was_truncated_meanwhile_is_not_taken_for_synced(files: FaultyFileSystem) -> None:
    log = new(files)
    for _ in range(3):
        append(log)
    log.roll(NOW)
    pending = log.closed_segments_to_sync()
    assert pending is not None
    log.truncate_to(1)
    append(log)
    append(log)
    log.roll(NOW)
    pending.run()
    log.on_synced(pending, None)
    assert log.recovery_point == 0
    assert log.closed_segments_to_sync() is not None


def test_a_sync_that_fails_elsewhere_fails_the_log(files: FaultyFileSystem) -> None:
    log = new(files)
    append(log)
    log.roll(NOW)
    pending = log.closed_segments_to_sync()
    assert pending is not None
    with pytest.raises(StorageFailure, match="Input/output error"):
        log.on_synced(pending, OSError(errno.EIO, "Input/output error"))
    with pytest.raises(StorageFailure):
        append(log)


def test_closing_makes_everything_durable(files: FaultyFileSystem) -> None:
    log = new(files, replace(CONFIG, segment_bytes=200))
    for n in range(6):
        append(log, batch((T + n, b"k", b"v"), producer=(1, 0, n)), epoch=n)
    before, epochs, producers = all_records(log), log.epoch_entries(), log.producers()
    log.close()
    files.crash(Random(1))
    log, recovery = reopen(files, CONFIG, clean=True, now_ms=NOW)
    assert not recovery
    assert all_records(log) == before
    assert log.epoch_entries() == epochs
    assert log.producers()[0].last_sequence == producers[0].last_sequence
    log.close()
    with pytest.raises(StorageFailure, match="it is closed"):
        append(log)


def test_an_empty_log_leaves_little_behind(files: FaultyFileSystem) -> None:
    log = new(files)
    log.close()
    assert files.names(DIRECTORY) == ("00000000000000000000.log",)
    assert not reopen(files, CONFIG, clean=True, now_ms=NOW).recovery


# Failing.


def test_a_full_disk(files: FaultyFileSystem) -> None:
    log = new(files)
    append(log, batch((T, b"k", b"1")))
    files.fail(Operation.WRITE, errno.ENOSPC, times=None)
    data = batch((T, b"k", b"2"))
    with pytest.raises(StorageFailure, match=r"t-0: .*No space left on device"):
        log.append_as_leader(data, leader_epoch=0, now_ms=NOW)
    refuses_everything(log)
    files.heal()
    refuses_everything(log)
    log.abandon()
    log = again(files, log)
    assert [record.value for record in records_of(log)] == [b"1"]
    assert append(log, batch((T, b"k", b"2"))).first_offset == 1


def refuses_everything(log: FileLog) -> None:
    asked: list[Callable[[], object]] = [
        lambda: log.append_as_leader(batch(), leader_epoch=0, now_ms=NOW),
        lambda: log.append_as_follower([], now_ms=NOW),
        lambda: log.read(0, max_bytes=1, upper_bound=1, min_one_batch=True),
        lambda: log.size_between(0, 1),
        lambda: log.truncate_to(0),
        lambda: log.truncate_fully_and_start_at(0, now_ms=NOW),
        lambda: log.assign_epoch_start(9, 9),
        lambda: log.end_offset_for_epoch(0),
        lambda: log.offset_for_timestamp(0),
        log.offset_of_max_timestamp,
        lambda: log.advance_log_start(0),
        lambda: log.roll(NOW),
        lambda: log.delete_expired(NOW, 0),
        lambda: log.segment_to_upload(0, 1),
        lambda: log.delete_local(0, now_ms=None),
        lambda: log.start_from_tier(0, log_start_offset=0, epochs=[], producers=[], now_ms=NOW),
        lambda: log.compact(NOW, 0),
        log.segments,
        log.flush,
        lambda: log.flush_due(NOW),
        log.close,
    ]
    for ask in asked:
        with pytest.raises(StorageFailure):
            ask()
    assert log.failure is not None
    assert log.failure.log == "t-0"
    assert "No space left" in log.failure.why
    assert (log.log_start_offset, log.name, log.recovery_point) == (0, "t-0", 0)


def test_bytes_that_a_failed_write_left_are_cut(files: FaultyFileSystem) -> None:
    log = new(files)
    append(log, batch((T, b"k", b"1")))
    files.fail(Operation.WRITE, errno.EIO, torn=30)
    with pytest.raises(StorageFailure):
        append(log, batch((T, b"k", b"2")))
    log.abandon()
    log, recovery = reopen(files, CONFIG, clean=False, now_ms=NOW)
    assert [cut.size for cut in recovery.cut] == [30]
    assert [record.value for record in records_of(log)] == [b"1"]


def test_a_failing_sync(files: FaultyFileSystem) -> None:
    log = new(files, replace(CONFIG, flush_messages=1))
    append(log)
    files.fail(Operation.SYNC, errno.EIO)
    with pytest.raises(StorageFailure, match="Input/output error"):
        append(log)
    assert log.recovery_point == 1
    with pytest.raises(StorageFailure):  # trying again would succeed without having written
        append(log)
    files.crash()
    assert again(files, log).log_end_offset == 1


def test_a_failing_read(files: FaultyFileSystem) -> None:
    log = new(files, shared=ProcessLimits(recent_bytes=0))
    append(log)
    files.fail(Operation.READ, errno.EIO)
    with pytest.raises(StorageFailure, match="Input/output error"):
        records_of(log)


@pytest.mark.parametrize("operation", [Operation.WRITE, Operation.CHANGE, Operation.SYNC])
@pytest.mark.parametrize("after", range(6))
def test_a_roll_that_fails_loses_nothing(
    files: FaultyFileSystem, operation: Operation, after: int
) -> None:
    log = new(files, replace(CONFIG, flush_messages=1))
    for n in range(5):
        append(log, epoch=n)
    files.fail(operation, errno.ENOSPC, after=after, times=None)
    try:
        log.roll(NOW)
        append(log, epoch=5)
        acknowledged = 6
    except StorageFailure:
        acknowledged = 5
    files.heal()
    log.abandon()
    log = again(files, log)
    assert acknowledged <= log.log_end_offset <= 6
    assert [record.offset for record in records_of(log)] == list(range(log.log_end_offset))


def test_other_logs_go_on(files: FaultyFileSystem) -> None:
    log = new(files)
    files.fail(Operation.WRITE, errno.ENOSPC, times=None, under=DIRECTORY)
    with pytest.raises(StorageFailure):
        append(log)
    other = FaultyFileSystem()
    assert isinstance(append(new(other)), AppendResult)


def test_opening_what_cannot_be_read(files: FaultyFileSystem) -> None:
    append(new(files))
    files.fail(Operation.READ, errno.EIO)
    with pytest.raises(StorageFailure, match=r"t-0: .*Input/output error"):
        reopen(files, CONFIG, clean=False, now_ms=NOW)


# Leaving.


def test_deleting_makes_room_for_a_new_log_at_once(files: FaultyFileSystem) -> None:
    log = new(files, replace(CONFIG, segment_bytes=200))
    for _ in range(6):
        append(log)
    log.delete("t-0.abc-delete")
    assert new(files).log_end_offset == 0
    gone = DIRECTORY.with_name("t-0.abc-delete")
    left = [len(files.names(gone)) for _ in log.dismantle()]
    assert left == sorted(left, reverse=True)
    assert len(left) > 6
    assert files.names(DIRECTORY.parent) == ("t-0",)


def test_a_failed_log_can_be_deleted(files: FaultyFileSystem) -> None:
    log = new(files)
    files.fail(Operation.WRITE, errno.ENOSPC, times=None)
    with pytest.raises(StorageFailure):
        append(log)
    log.delete("t-0.abc-delete")
    assert list(log.dismantle())
    assert files.names(DIRECTORY.parent) == ()


def test_a_copy_outlives_its_segment(files: FaultyFileSystem) -> None:
    log = new(files, replace(CONFIG, remote_storage_enable=True))
    append(log, batch((T, b"k", b"v" * 100)))
    log.roll(NOW)
    copy = log.segment_to_upload(0, 1)
    assert copy is not None
    log.delete_local(1, now_ms=None)
    assert log.local_log_start_offset == 1
    log.dismantle()
    data = b"".join(copy.records)
    assert len(data) == copy.size_bytes
    assert b"v" * 100 in data


# Memory.


def test_ten_thousand_logs_keep_no_more_than_one(files: FaultyFileSystem) -> None:
    shared = ProcessLimits(recent_bytes=50_000, index_bytes=3_000, open_files=8)
    for n in range(200):
        log = reopen(files, CONFIG, clean=True, now_ms=NOW, shared=shared).log
        for _ in range(10):
            append(log, batch((T, b"k", b"v" * 200)))
        log.roll(NOW)
        append(log, batch((T, b"k", b"v")))
        assert log.read(3, max_bytes=1, upper_bound=9, min_one_batch=True).first_offset == 3
        assert shared.tail_cache.size <= 50_000
        assert shared.indexes.cost <= 3_000 + 2_000
        assert shared.open_files.cost <= 8 + 1
        assert n < 20 or shared.tail_cache.size > 40_000
        files.rename(DIRECTORY, DIRECTORY.with_name(f"t-{n + 1}"))


def test_appending_and_truncating_for_ever_keeps_no_more(files: FaultyFileSystem) -> None:
    shared = ProcessLimits(recent_bytes=10_000)
    log = new(files, shared=shared)
    for _ in range(300):
        append(log, batch((T, b"k", b"v" * 50)))
        append(log, batch((T, b"k", b"v" * 50)))
        log.truncate_to(0)
    assert shared.tail_cache.size == 0
    assert len(shared.tail_cache._order) < 100


def test_memory_stays_flat_however_many_batches_there_are(files: FaultyFileSystem) -> None:
    log = new(files, LogConfig(), ProcessLimits(recent_bytes=0))
    data = batch((T, b"k", b"v"))
    for _ in range(2_000):
        append(log, bytearray(data))
    active = segmented(log).local_segments.active
    assert isinstance(active, FileSegment)
    assert active._indexes is not None
    assert len(active._indexes.offsets) == 2_000 * len(data) // (4096 + len(data))
    assert log._store.home.shared.tail_cache.size == 0


def test_a_segment_whose_index_is_full_is_rolled(files: FaultyFileSystem) -> None:
    log = new(files, LogConfig(index_interval_bytes=1, segment_index_bytes=48))
    for n in range(20):
        append(log, batch((T + n, b"k", b"v")))
    # 48 bytes are 6 entries of the offset index, and 4 of the time index: one of those is kept
    # for the last, and the first batch has none.
    assert [view.base_offset for view in log.segments()] == [0, 4, 8, 12, 16]
    log.close()
    assert files.size(DIRECTORY / "00000000000000000004.timeindex") == 36


def test_offsets_too_far_from_the_base_begin_a_segment(files: FaultyFileSystem) -> None:
    log = new(files)
    for offset in (0, 2**31 - 1, 2**31, 2**33):
        data = batch()
        data[:8] = offset.to_bytes(8, "big")
        log.append_as_follower([bytes(data)], now_ms=NOW)
    assert [view.base_offset for view in log.segments()] == [0, 2**31, 2**33]
    assert [record.offset for record in all_records(log)] == [0, 2**31 - 1, 2**31, 2**33]
