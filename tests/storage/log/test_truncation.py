import pytest

from fencepost.protocol.records import NO_SEQUENCE
from fencepost.storage.log.append_result import AppendRejected
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log
from tests.harness.logs import NOW, T, append, append_marker, new_log, read_all, records_of
from tests.harness.records import batch


def written(*, segment_bytes: int = 1 << 30) -> Log:
    """Five batches of two records of one producer, each of an epoch of its own."""
    log = new_log(LogConfig(segment_bytes=segment_bytes))
    for n in range(5):
        rows = ((T + n, b"k", b"v"), (T + n, b"k", b"w"))
        append(log, batch(*rows, producer=(7, 0, 2 * n)), epoch=n)
    return log


@pytest.fixture(params=[1 << 30, 100, 200], ids=["one segment", "five segments", "three segments"])
def log(request: pytest.FixtureRequest) -> Log:
    return written(segment_bytes=request.param)


@pytest.mark.parametrize(("offset", "kept"), [(8, 8), (6, 6), (2, 2), (7, 6), (1, 0), (0, 0)])
def test_the_batch_that_holds_the_offset_goes_whole(log: Log, offset: int, kept: int) -> None:
    assert log.truncate_to(offset)
    assert log.log_end_offset == offset
    assert [record.offset for record in records_of(log)] == list(range(kept))
    assert log.epoch_entries() == tuple((n, 2 * n) for n in range((offset + 1) // 2))
    assert append(log, batch(), epoch=9).first_offset == offset


def test_at_and_behind_the_log_end_only_epochs_go(log: Log) -> None:
    log.assign_epoch_start(7, 10)
    assert not log.truncate_to(10)
    assert log.latest_epoch == 4
    assert not log.truncate_to(99)
    assert log.log_end_offset == 10
    assert len(records_of(log)) == 10


@pytest.mark.parametrize(("offset", "last_sequence"), [(8, 7), (6, 5), (3, 1), (2, 1)])
def test_producers_are_known_as_of_the_new_end(log: Log, offset: int, last_sequence: int) -> None:
    log.truncate_to(offset)
    (producer,) = log.producers()
    assert producer.last_sequence == last_sequence
    rows = [(T, b"k", b"v")] * 2
    again = log.append_as_leader(
        batch(*rows, producer=(7, 0, last_sequence + 1)), leader_epoch=9, now_ms=NOW
    )
    assert not isinstance(again, AppendRejected)
    assert not again.duplicate
    assert append(log, batch(*rows, producer=(7, 0, last_sequence - 1))).duplicate


def test_a_producer_whose_records_all_went_is_forgotten(log: Log) -> None:
    log.truncate_to(0)
    assert log.producers() == ()


def test_an_epoch_bump_that_was_cut_off_is_undone() -> None:
    log = new_log()
    append(log, batch(producer=(7, 0, 0)))
    append(log, batch(producer=(7, 1, 0)))
    log.truncate_to(1)
    (producer,) = log.producers()
    assert (producer.producer_epoch, producer.last_sequence) == (0, 0)


def test_truncating_below_the_log_start_takes_it_along(log: Log) -> None:
    log.advance_log_start(5)
    log.truncate_to(4)
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)


def test_truncating_below_all_segments_starts_over() -> None:
    log = written(segment_bytes=100)
    log.advance_log_start(6)
    assert log.truncate_to(3)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (3, 3, 0)
    assert log.producers() == ()
    assert append(log).first_offset == 3


def test_starting_over(log: Log) -> None:
    log.truncate_fully_and_start_at(20, now_ms=NOW)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (20, 20, 0)
    assert log.epoch_entries() == ()
    assert log.producers() == ()
    assert read_all(log).buffers == ()
    assert append(log).first_offset == 20


def test_starting_over_with_a_log_start_of_its_own() -> None:
    log = written()
    log.truncate_fully_and_start_at(20, now_ms=NOW, log_start_offset=23)
    assert (log.log_start_offset, log.log_end_offset) == (23, 20)


def test_an_emptied_segment_counts_its_time_anew() -> None:
    log = new_log(LogConfig(segment_ms=1_000))
    append(log, batch((T, None, b"v")))
    log.truncate_to(0)
    append(log, batch((T + 5_000, None, b"v")))
    append(log, batch((T + 6_000, None, b"v")))
    assert len(log.segments()) == 1


def test_the_names_of_unknown() -> None:
    log = new_log()
    append(log, batch(producer=(7, 0, 0)))
    assert log.producers()[0].last_sequence != NO_SEQUENCE
    assert (log.name, log.local_log_start_offset) == ("t-0", 0)


def test_a_transaction_whose_marker_goes_is_open_again_after_its_producer_expired() -> None:
    log = new_log(LogConfig(producer_id_expiration_ms=1_000))
    append(log, batch((T, None, b"v"), producer=(7, 0, 0), transactional=True))
    append_marker(log, 7, 1, committed=False)
    assert log.last_stable_offset(2) == 2
    assert log.expire_producers(NOW + 10_000) == 1
    log.truncate_to(1)
    assert log.last_stable_offset(1) == 0
