"""The verification of transactional producers: which append its guard lets pass (KIP-890)."""

import pytest

from fencepost.protocol.errors import ErrorCode
from fencepost.storage.log.append_result import AppendOrigin, AppendRejected
from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log
from fencepost.storage.log.verification import VerificationGuard
from tests.harness.logs import NOW, T, append, append_marker, new_log
from tests.harness.records import batch


def start(
    log: Log, sequence: int = 0, *, epoch: int = 0, supports_epoch_bump: bool = False
) -> VerificationGuard:
    guard = log.maybe_start_verification(
        4, sequence, epoch, supports_epoch_bump=supports_epoch_bump
    )
    assert isinstance(guard, VerificationGuard)
    return guard


def refusal(
    log: Log,
    guard: VerificationGuard | None,
    sequence: int = 0,
    *,
    epoch: int = 0,
    transactional: bool = True,
    origin: AppendOrigin = AppendOrigin.CLIENT,
) -> int | None:
    result = log.append_as_leader(
        batch(b"v", producer=(4, epoch, sequence), transactional=transactional),
        leader_epoch=0,
        now_ms=NOW,
        guard=guard,
        origin=origin,
    )
    return result.error if isinstance(result, AppendRejected) else None


@pytest.mark.parametrize("origin", AppendOrigin)
def test_the_first_record_of_a_transaction_needs_a_guard(origin: AppendOrigin) -> None:
    log = new_log()
    assert refusal(log, None, origin=origin) == ErrorCode.INVALID_TXN_STATE
    assert refusal(log, VerificationGuard(), origin=origin) == ErrorCode.INVALID_TXN_STATE
    assert log.log_end_offset == 0
    assert refusal(log, start(log), origin=origin) is None


def test_later_records_of_an_open_transaction_need_none() -> None:
    log = new_log()
    assert refusal(log, start(log)) is None
    assert log.maybe_start_verification(4, 1, 0, supports_epoch_bump=False) is None
    assert refusal(log, None, 1) is None


def test_a_guard_is_worthless_after_a_marker() -> None:
    log = new_log()
    guard = start(log)
    append_marker(log, 4, committed=False)
    assert refusal(log, guard) == ErrorCode.INVALID_TXN_STATE
    assert start(log) is not guard


def test_a_guard_is_the_same_until_it_is_used() -> None:
    log = new_log()
    assert start(log) is start(log)


def test_with_a_new_epoch_the_transaction_of_the_old_one_is_verified() -> None:
    log = new_log()
    refusal(log, start(log))
    assert refusal(log, None, epoch=1) == ErrorCode.INVALID_TXN_STATE
    assert refusal(log, start(log, epoch=1), epoch=1) is None


def test_a_producer_of_an_old_epoch_is_not_verified() -> None:
    log = new_log()
    append(log, batch(producer=(4, 2, 0)))
    found = log.maybe_start_verification(4, 0, 1, supports_epoch_bump=False)
    assert found is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(log, None, epoch=1) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_no_batch_may_come_before_the_first_of_those_that_wait_for_verification() -> None:
    log = new_log()
    guard = start(log, 3)
    start(log, 5)
    assert refusal(log, guard, 5) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(log, guard, 3) is None


def test_a_new_epoch_brings_its_own_lowest_sequence() -> None:
    log = new_log()
    start(log, 3)
    guard = start(log, 7, epoch=1)
    assert refusal(log, guard, 7, epoch=1) is None


def test_a_producer_with_epoch_bumps_begins_with_sequence_0() -> None:
    log = new_log()
    guard = start(log, 3, supports_epoch_bump=True)
    assert refusal(log, guard, 3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    guard = start(log, 0, supports_epoch_bump=True)
    assert refusal(log, guard, 0) is None


def test_verification_can_be_switched_off() -> None:
    log = new_log(LogConfig(transaction_partition_verification_enable=False))
    assert refusal(log, None) is None


def test_an_open_transaction_takes_no_other_records() -> None:
    log = new_log()
    refusal(log, start(log))
    assert refusal(log, None, 1, transactional=False) == ErrorCode.INVALID_TXN_STATE


def test_verifications_expire_with_producers() -> None:
    log = new_log(LogConfig(producer_id_expiration_ms=1_000))
    guard = start(log)
    log.expire_producers(T)
    log.expire_producers(T + 999)
    assert start(log) is guard
    log.expire_producers(T + 1_000)
    assert start(log) is not guard


def test_staged_records_need_a_guard_too() -> None:
    log = new_log(LogConfig(check_expected_offsets=True))
    data = batch(b"v", producer=(4, 0, 0), transactional=True)
    found = log.stage(now_ms=NOW).add(data, allow_zstd=True)
    assert isinstance(found, AppendRejected)
    assert found.error == ErrorCode.INVALID_TXN_STATE
    guard = start(log)
    found = log.stage(now_ms=NOW).add(data, allow_zstd=True, guard=guard)
    assert not isinstance(found, AppendRejected)
    log.append_staged(found, leader_epoch=0, now_ms=NOW)
    assert log.has_ongoing_transaction(4, 0)
