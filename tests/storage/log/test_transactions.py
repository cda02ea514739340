"""Transactions in a log: what is open, what is stable, and what was aborted."""

import pytest

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import iter_headers
from fencepost.storage.log.append_result import AppendRejected, AppendResult
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log
from fencepost.storage.log.transactions import AbortedTransaction
from tests.harness.logs import NOW, T, append, append_marker, new_log, read_all, segmented
from tests.harness.records import batch

END = 1_000
"""A high watermark behind everything."""


def write(log: Log, producer_id: int, sequence: int, *, epoch: int = 0) -> int:
    """Append one transactional record; its offset."""
    data = batch(b"v", producer=(producer_id, epoch, sequence), transactional=True)
    return append(log, data).first_offset


def end(log: Log, producer_id: int, *, epoch: int = 0, committed: bool = False) -> int:
    """Append a marker; its offset."""
    result = append_marker(log, producer_id, epoch, committed=committed)
    assert isinstance(result, AppendResult), result
    return result.first_offset


def stable(log: Log, high_watermark: int | None = None) -> int:
    return log.last_stable_offset(log.log_end_offset if high_watermark is None else high_watermark)


def aborted(log: Log, start: int = 0, until: int = END) -> list[tuple[int, int, int]]:
    """Producer, first offset and offset of the marker."""
    return [
        (each.producer_id, each.first_offset, each.last_offset)
        for each in log.aborted_transactions(start, until)
    ]


# The last stable offset.


def test_the_oldest_open_transaction_holds_back_the_last_stable_offset() -> None:
    log = new_log()
    append(log)
    assert stable(log) == 1
    write(log, 4, 0)
    write(log, 5, 0)
    append(log)
    assert stable(log) == 1
    end(log, 4, committed=True)
    assert stable(log) == 2
    end(log, 5)
    assert stable(log) == log.log_end_offset == 6


def test_a_transaction_is_stable_when_its_marker_is_below_the_high_watermark() -> None:
    log = new_log()
    append(log)
    write(log, 4, 0)
    assert end(log, 4, committed=True) == 2
    append(log)
    assert [stable(log, watermark) for watermark in (0, 1, 2, 3, 4)] == [0, 1, 1, 3, 4]


def test_a_marker_below_the_high_watermark_does_not_free_another_above_it() -> None:
    log = new_log()
    write(log, 4, 0)
    write(log, 5, 0)
    end(log, 5)
    end(log, 4)
    assert stable(log, 3) == 0
    assert stable(log, 4) == 4


def test_an_idempotent_producer_makes_nothing_unstable() -> None:
    log = new_log()
    append(log, batch(producer=(4, 0, 0)))
    assert stable(log) == 1


def test_a_deleted_beginning_leaves_the_transaction_open() -> None:
    log = new_log()
    write(log, 4, 0)
    write(log, 4, 1)
    write(log, 4, 2)
    log.advance_log_start(2)
    assert stable(log) == 2
    assert log.has_ongoing_transaction(4, 0)


def test_producers_show_where_their_transaction_began() -> None:
    log = new_log()
    append(log)
    write(log, 4, 0)
    write(log, 4, 1)
    (producer,) = log.producers()
    assert (producer.txn_first_offset, producer.coordinator_epoch) == (1, -1)
    append_marker(log, 4, 1, committed=True, coordinator_epoch=6)
    (producer,) = log.producers()
    assert (producer.txn_first_offset, producer.coordinator_epoch) == (None, 6)
    assert (producer.producer_epoch, producer.batches, producer.last_timestamp) == (1, (), NOW)


def test_a_transaction_is_ongoing_in_its_own_epoch() -> None:
    log = new_log()
    write(log, 4, 0, epoch=3)
    assert log.has_ongoing_transaction(4, 3)
    assert not log.has_ongoing_transaction(4, 4)
    assert not log.has_ongoing_transaction(5, 3)
    end(log, 4, epoch=3)
    assert not log.has_ongoing_transaction(4, 3)


def test_a_producer_with_an_open_transaction_does_not_expire() -> None:
    log = new_log(LogConfig(producer_id_expiration_ms=1_000))
    write(log, 4, 0)
    assert log.expire_producers(T + 10_000) == 0
    end(log, 4)
    assert log.expire_producers(NOW + 10_000) == 1


# Aborted transactions.


def test_only_aborted_transactions_are_listed_in_order_of_their_markers() -> None:
    log = new_log()
    for producer in (4, 5, 6, 7):
        write(log, producer, 0)
    end(log, 6)
    end(log, 5, committed=True)
    end(log, 4)
    assert aborted(log) == [(6, 2, 4), (4, 0, 6)]
    assert log.aborted_transactions(0, END)[1] == AbortedTransaction(4, 0, 6, 3)


def test_a_transaction_that_began_before_is_listed_until_its_marker() -> None:
    log = new_log()
    write(log, 4, 0)
    append(log)
    end(log, 4)
    append(log)
    assert [aborted(log, start) for start in (1, 2)] == [[(4, 0, 2)]] * 2
    assert aborted(log, 3) == []
    assert aborted(log, 0, 1) == [(4, 0, 2)]


def test_a_transaction_that_began_behind_the_end_is_not_listed() -> None:
    log = new_log()
    append(log)
    write(log, 4, 0)
    end(log, 4)
    assert aborted(log, 0, 1) == []


def test_a_transaction_is_listed_from_every_segment_that_it_spans() -> None:
    log = new_log()
    write(log, 4, 0)
    log.roll(NOW)
    write(log, 4, 1)
    log.roll(NOW)
    append(log)
    log.roll(NOW)
    end(log, 4)
    append(log)
    assert [aborted(log, start, start + 1) for start in range(4)] == [[(4, 0, 3)]] * 4
    assert aborted(log, 4) == []


def test_the_list_ends_where_no_later_transaction_can_be_of_use() -> None:
    log = new_log()
    for number in range(30):
        write(log, 4, number)
        end(log, 4)
        if number % 7 == 0:
            log.roll(NOW)
    assert aborted(log, 4, 7) == [(4, 4, 5), (4, 6, 7)]


def test_transactions_that_ran_at_the_same_time_are_all_listed() -> None:
    log = new_log()
    for producer in (4, 5, 6):
        write(log, producer, 0)
    for producer in (5, 6, 4):
        end(log, producer)
    assert aborted(log, 0, 1) == [(4, 0, 5)]
    assert aborted(log, 1, 2) == [(5, 1, 3), (4, 0, 5)]


def test_an_abort_without_records_is_not_listed() -> None:
    log = new_log()
    end(log, 4)
    assert aborted(log) == []
    assert stable(log) == 1


def test_a_follower_knows_what_its_leader_knows() -> None:
    leader, follower = new_log(), new_log()
    for producer in (4, 5):
        write(leader, producer, 0)
    append_marker(leader, 5, committed=False, coordinator_epoch=2)
    follower.append_as_follower(read_all(leader).buffers, now_ms=NOW)
    assert follower.producers() == leader.producers()
    assert aborted(follower) == aborted(leader) == [(5, 1, 2)]
    assert stable(follower) == 0


def test_a_follower_forgets_completed_transactions_that_are_committed() -> None:
    leader, follower = new_log(), new_log()
    for number in range(4):
        write(leader, 4, number)
        end(leader, 4)
    data = b"".join(read_all(leader).buffers)
    for at, header in iter_headers(data):
        follower.append_as_follower(
            [data[at : at + header.size]], now_ms=NOW, high_watermark=header.base_offset
        )
    transactions = segmented(follower)._state.producers._transactions
    assert [each.last_offset for each in transactions.completed] == [7]


# Truncation.


def test_a_truncated_marker_leaves_its_transaction_open() -> None:
    log = new_log()
    write(log, 4, 0)
    append(log)
    end(log, 4)
    log.truncate_to(2)
    assert (stable(log), aborted(log)) == (0, [])
    assert log.has_ongoing_transaction(4, 0)
    end(log, 4, committed=True)
    assert (stable(log), aborted(log)) == (3, [])


def test_a_truncated_beginning_leaves_no_transaction() -> None:
    log = new_log()
    append(log)
    write(log, 4, 0)
    log.truncate_to(1)
    assert stable(log) == 1
    assert not log.has_ongoing_transaction(4, 0)


def test_truncation_across_segments_keeps_what_is_before() -> None:
    log = new_log()
    write(log, 4, 0)
    end(log, 4)
    write(log, 5, 0)
    log.roll(NOW)
    write(log, 5, 1)
    log.roll(NOW)
    end(log, 5)
    log.truncate_to(3)
    assert aborted(log) == [(4, 0, 1)]
    assert stable(log) == 2
    assert end(log, 5) == 3
    assert aborted(log) == [(4, 0, 1), (5, 2, 3)]


def test_truncation_keeps_markers_above_the_high_watermark_in_mind() -> None:
    log = new_log()
    write(log, 4, 0)
    end(log, 4)
    log.roll(NOW)
    write(log, 5, 0)
    end(log, 5)
    append(log)
    log.truncate_to(3)
    assert [stable(log, watermark) for watermark in (1, 2, 3)] == [0, 2, 2]


def test_a_log_that_begins_again_has_no_transaction() -> None:
    log = new_log()
    write(log, 4, 0)
    end(log, 4)
    write(log, 5, 0)
    log.truncate_fully_and_start_at(7, now_ms=NOW)
    assert (stable(log), aborted(log)) == (7, [])


def test_retention_takes_the_transactions_of_its_segments() -> None:
    log = new_log()
    write(log, 4, 0)
    end(log, 4)
    log.roll(NOW)
    write(log, 5, 0)
    end(log, 5)
    assert aborted(log) == [(4, 0, 1), (5, 2, 3)]
    log.advance_log_start(2)
    assert aborted(log) == [(5, 2, 3)]


# Markers.


def refusal(log: Log, **marker: int) -> int | None:
    result = append_marker(log, 4, committed=True, **marker)
    return result.error if isinstance(result, AppendRejected) else None


def test_a_marker_of_an_old_coordinator_is_fenced() -> None:
    log = new_log()
    assert refusal(log, coordinator_epoch=5) is None
    assert refusal(log, coordinator_epoch=5) is None
    assert refusal(log, coordinator_epoch=4) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert refusal(log, coordinator_epoch=6) is None


@pytest.mark.parametrize(
    ("version", "epoch", "error"),
    [
        (1, 2, ErrorCode.INVALID_PRODUCER_EPOCH),
        (1, 3, None),
        (1, 4, None),
        (2, 2, ErrorCode.INVALID_PRODUCER_EPOCH),
        (2, 3, ErrorCode.INVALID_PRODUCER_EPOCH),
        (2, 4, None),
    ],
)
def test_a_marker_ends_a_transaction_of_an_older_epoch_and_before_version_2_of_the_same(
    version: int, epoch: int, error: ErrorCode | None
) -> None:
    log = new_log()
    write(log, 4, 0, epoch=3)
    assert refusal(log, producer_epoch=epoch, transaction_version=version) == error
    assert log.has_ongoing_transaction(4, 3) == (error is not None)


def test_a_repeated_marker_of_version_2_is_appended_again() -> None:
    log = new_log()
    write(log, 4, 0, epoch=3)
    assert refusal(log, producer_epoch=4, transaction_version=2) is None
    assert refusal(log, producer_epoch=4, transaction_version=2) is None
    assert refusal(log, producer_epoch=3, transaction_version=2) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_marker_with_a_new_epoch_fences_the_producer() -> None:
    log = new_log()
    write(log, 4, 0)
    end(log, 4, epoch=1)
    old = batch(producer=(4, 0, 1))
    result = log.append_as_leader(old, leader_epoch=0, now_ms=NOW)
    assert isinstance(result, AppendRejected)
    assert result.error == ErrorCode.INVALID_PRODUCER_EPOCH
    append(log, batch(producer=(4, 1, 0)))
