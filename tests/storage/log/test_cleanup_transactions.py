"""Compaction of transactions: aborted records go at once, markers after their delete horizon."""

from msgspec.structs import replace

from fencepost.protocol.records import BatchHeader, iter_headers
from fencepost.storage.log.append_result import AppendResult
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log
from tests.harness.logs import (
    NOW,
    T,
    append,
    append_marker,
    keys_and_values,
    new_log,
    read_all,
    records_of,
)
from tests.harness.records import batch

CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    delete_retention_ms=1_000,
    min_cleanable_dirty_ratio=0.0,
    message_timestamp_after_max_ms=1 << 40,
)


def write(log: Log, producer_id: int, sequence: int, *rows: tuple[bytes, bytes]) -> None:
    """One transactional batch in a closed segment."""
    data = batch(
        *((T, *row) for row in rows), producer=(producer_id, 0, sequence), transactional=True
    )
    append(log, data)
    log.roll(NOW)


def end(log: Log, producer_id: int, *, committed: bool, epoch: int = 0) -> None:
    """A marker in a closed segment."""
    assert isinstance(append_marker(log, producer_id, epoch, committed=committed), AppendResult)
    log.roll(NOW)


def append_plain(log: Log, *keys: bytes) -> None:
    for key in keys:
        append(log, batch((T, key, b"plain")))
        log.roll(NOW)


def headers(log: Log) -> list[BatchHeader]:
    found: list[BatchHeader] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset and (buffers := read_all(log, offset).buffers):
        found += [header for buffer in buffers for _, header in iter_headers(buffer)]
        offset = found[-1].next_offset
    return found


def compact(log: Log, now_ms: int = NOW) -> None:
    log.compact(now_ms, log.log_end_offset, at_once=True)


def contents(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    """Data: offset, key and value."""
    return [each for each in keys_and_values(records_of(log)) if each[1] != b"\0\0\0\0"]


def markers(log: Log) -> list[tuple[int, int | None]]:
    """Offset and delete horizon of each control batch that has its record."""
    return [
        (header.base_offset, header.delete_horizon_ms)
        for header in headers(log)
        if header.is_control and header.record_count
    ]


def test_aborted_records_go_and_replace_no_other() -> None:
    log = new_log(CONFIG)
    append_plain(log, b"a")
    write(log, 4, 0, (b"a", b"aborted"), (b"b", b"aborted"))
    end(log, 4, committed=False)
    append_plain(log, b"z")
    compact(log)
    assert contents(log) == [(0, b"a", b"plain"), (4, b"z", b"plain")]


def test_committed_records_stay_and_replace_others() -> None:
    log = new_log(CONFIG)
    append_plain(log, b"a")
    write(log, 4, 0, (b"a", b"committed"))
    append_marker(log, 4, committed=True)
    log.roll(NOW)
    append_plain(log, b"z")
    compact(log)
    data = [each for each in keys_and_values(records_of(log)) if each[2] != b"\0\0\0\0\0\0"]
    assert data == [(1, b"a", b"committed"), (3, b"z", b"plain")]


def test_the_last_batch_of_an_active_producer_stays_as_a_header() -> None:
    log = new_log(CONFIG)
    write(log, 4, 0, (b"a", b"aborted"))
    write(log, 4, 1, (b"a", b"aborted"))
    end(log, 4, committed=False)
    append_plain(log, b"z")
    compact(log)
    first, *_ = headers(log)
    assert (first.base_offset, first.record_count, first.is_transactional) == (1, 0, True)
    assert append(log, batch(producer=(4, 0, 2))).first_offset == 4


def test_a_marker_stays_until_its_horizon_when_no_record_is_left() -> None:
    log = new_log(CONFIG)
    write(log, 4, 0, (b"a", b"aborted"))
    end(log, 4, committed=False, epoch=1)
    append_plain(log, b"y")
    append(log, batch(producer=(4, 1, 0)))  # the last batch is not of the transaction
    append_plain(log, b"z")
    compact(log)
    assert markers(log) == [(1, None)]
    append_plain(log, b"x")
    compact(log, NOW + 5)
    assert markers(log) == [(1, NOW + 1_005)]
    append_plain(log, b"x")
    compact(log, NOW + 1_004)
    assert markers(log) == [(1, NOW + 1_005)]
    append_plain(log, b"x")
    compact(log, NOW + 1_005)
    assert markers(log) == []


def test_a_commit_marker_stays_as_long_as_a_record_of_its_transaction() -> None:
    log = new_log(CONFIG)
    write(log, 4, 0, (b"a", b"committed"))
    end(log, 4, committed=True, epoch=1)
    append(log, batch(producer=(4, 1, 0)))
    append_plain(log, b"z")
    for passed in (0, 5, 1_005, 5_000):
        compact(log, NOW + passed)
        append_plain(log, b"x")
    assert markers(log) == [(1, None)]


def test_a_commit_marker_goes_likewise_when_its_records_were_replaced() -> None:
    log = new_log(CONFIG)
    write(log, 4, 0, (b"a", b"committed"))
    end(log, 4, committed=True, epoch=1)
    append(log, batch((T, b"a", b"newer"), producer=(4, 1, 0)))
    append_plain(log, b"z")
    for passed in (0, 5, 1_005):
        compact(log, NOW + passed)
        append_plain(log, b"x")
    assert markers(log) == []
    assert next(value for _, _, value in keys_and_values(records_of(log))) == b"newer"


def test_the_marker_with_the_last_epoch_of_a_producer_stays_as_a_header() -> None:
    log = new_log(CONFIG)
    write(log, 4, 0, (b"a", b"aborted"))
    end(log, 4, committed=False, epoch=1)
    append_plain(log, b"z")
    for passed in (0, 5, 1_005):
        compact(log, NOW + passed)
        append_plain(log, b"x")
    first, *_ = headers(log)
    assert (first.base_offset, first.is_control, first.record_count) == (1, True, 0)


def test_the_index_lists_a_transaction_while_it_has_a_record() -> None:
    log = new_log(CONFIG)
    write(log, 4, 0, (b"a", b"aborted"))
    write(log, 4, 1, (b"a", b"aborted"))
    end(log, 4, committed=False, epoch=1)
    append_plain(log, b"y")
    append(log, batch(producer=(4, 1, 0)))
    append_plain(log, b"z")
    before = log.aborted_transactions(0, log.log_end_offset)
    compact(log)
    assert log.aborted_transactions(0, log.log_end_offset) == before != ()
    append_plain(log, b"x")
    compact(log)
    assert log.aborted_transactions(0, log.log_end_offset) == ()


def test_a_transaction_over_two_rounds_is_known_in_both() -> None:
    config = replace(CONFIG, segment_bytes=300)
    log = new_log(config)
    for number in range(3):
        write(log, 4, number, (b"a", b"x" * 150))
    append_plain(log, b"y")
    end(log, 4, committed=False, epoch=1)
    append(log, batch(producer=(4, 1, 0)))
    append_plain(log, b"z")
    compact(log)
    assert [each for each in contents(log) if each[2] == b"x" * 150] == []


def test_transactions_above_the_high_watermark_are_left_alone() -> None:
    log = new_log(CONFIG)
    write(log, 4, 0, (b"a", b"aborted"))
    end(log, 4, committed=False, epoch=1)
    append_plain(log, b"z")
    log.compact(NOW, 1, at_once=True)
    assert contents(log)[0] == (0, b"a", b"aborted")
