"""Lookups by time and epoch. Expected answers are Apache Kafka 4.3.1's."""

import struct

import pytest
from crc32c import crc32c

from fencepost.protocol.compression import Codec
from fencepost.storage.log.config import LogConfig, TimestampType
from fencepost.storage.log.interface import Log
from tests.harness.logs import NOW, T, append, new_log
from tests.harness.records import batch


@pytest.fixture(params=list(Codec))
def log(request: pytest.FixtureRequest) -> Log:
    log = new_log()
    for moments in ((0, 10, 20), (30, 50, 40), (25, 45)):
        append(log, batch(*((T + moment, b"k", b"v") for moment in moments), codec=request.param))
    return log


BY_TIME = [
    (0, (0, 0)),
    (T - 1, (0, 0)),
    (T, (0, 0)),
    (T + 1, (1, 10)),
    (T + 20, (2, 20)),
    (T + 21, (3, 30)),
    (T + 26, (3, 30)),
    (T + 30, (3, 30)),
    (T + 35, (4, 50)),
    (T + 45, (4, 50)),
    (T + 50, (4, 50)),
    (T + 51, None),
    (2**62, None),
    (2**63 - 1, None),
]


@pytest.mark.parametrize(("timestamp", "found"), BY_TIME)
def test_by_time(log: Log, timestamp: int, found: tuple[int, int] | None) -> None:
    expected = None if found is None else (T + found[1], found[0], 0)
    assert log.offset_for_timestamp(timestamp) == expected


def test_the_highest_timestamp(log: Log) -> None:
    assert log.offset_of_max_timestamp() == (T + 50, 4, 0)


def test_an_empty_log_has_no_times() -> None:
    assert new_log().offset_for_timestamp(0) is None
    assert new_log().offset_of_max_timestamp() is None


def test_after_delete_records_within_a_batch(log: Log) -> None:
    log.advance_log_start(4)
    for timestamp in (0, T, T + 30, T + 50):
        assert log.offset_for_timestamp(timestamp) == (T + 50, 4, 0)
    assert log.offset_of_max_timestamp() == (T + 50, 4, 0)
    assert log.end_offset_for_epoch(0) == (0, 8)
    assert log.end_offset_for_epoch(1) == (-1, -1)


def test_after_delete_records_of_everything(log: Log) -> None:
    log.advance_log_start(8)
    for timestamp in (0, T):
        assert log.offset_for_timestamp(timestamp) is None
    assert log.offset_of_max_timestamp() == (T + 50, 4, 0), "the active segment is there still"
    assert log.end_offset_for_epoch(0) == (0, 8)
    assert log.epoch_for_offset(8) == 0


def test_without_timestamps() -> None:
    log = new_log()
    append(log, batch((-1, None, b"v")))
    assert log.offset_of_max_timestamp() == (-1, 0, 0)
    for timestamp in (0, 5):
        assert log.offset_for_timestamp(timestamp) is None
    append(log, batch((10, None, b"v"), (10, None, b"w")))
    assert log.offset_of_max_timestamp() == (10, 1, 0)
    assert [log.offset_for_timestamp(timestamp) for timestamp in (0, 5, 11)] == [
        (10, 1, 0),
        (10, 1, 0),
        None,
    ]


def test_with_log_append_time() -> None:
    log = new_log(LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME))
    append(log, batch((T, b"k", b"v"), (T + 5, b"k", b"v")))
    assert log.offset_of_max_timestamp() == (NOW, 0, 0)
    assert log.offset_for_timestamp(0) == (NOW, 0, 0)
    assert log.offset_for_timestamp(NOW + 1) is None


def test_across_segments_and_epochs() -> None:
    log = new_log()
    for epoch, moment in enumerate((10, 40, 20, 40)):
        append(log, batch((T + moment, None, b"v")), epoch=epoch)
        log.roll(NOW)
    assert log.offset_of_max_timestamp() == (T + 40, 1, 1)
    assert log.offset_for_timestamp(T + 11) == (T + 40, 1, 1)
    log.advance_log_start(2)
    assert log.offset_for_timestamp(T + 11) == (T + 20, 2, 2)
    assert log.offset_of_max_timestamp() == (T + 40, 3, 3)
    assert log.epoch_entries() == ((2, 2), (3, 3))


def test_epochs_at_elections_without_records() -> None:
    log = new_log()
    log.assign_epoch_start(0, 0)
    assert [log.end_offset_for_epoch(epoch) for epoch in (-2, -1, 0, 1)] == [
        (-2, 0),
        (-1, -1),
        (0, 0),
        (-1, -1),
    ]
    append(log, epoch=0)
    log.assign_epoch_start(4, 1)
    assert log.latest_epoch == 4
    assert log.end_offset_for_epoch(0) == (0, 1)
    assert log.end_offset_for_epoch(4) == (4, 1)


def test_batches_that_do_not_parse_are_passed_over() -> None:
    log = new_log()
    append(log, batch((T, None, b"v")))
    broken = batch((T + 50, None, b"v"))
    broken[61] = 0x7E
    struct.pack_into(">I", broken, 17, crc32c(bytes(broken[21:])))
    append(log, broken)
    append(log, batch((T + 9, None, b"v")))
    assert log.offset_for_timestamp(T + 1) == (T + 9, 2, 0)
    assert log.offset_of_max_timestamp() is None
