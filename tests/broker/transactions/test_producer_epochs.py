"""InitProducerId on one transactional id: bumps, repetitions, rotation (KIP-360)."""

from __future__ import annotations

import pytest

from fencepost.broker.transactions.producer_epochs import decide_producer, is_fenced
from fencepost.broker.transactions.transaction_metadata import (
    MAX_EPOCH,
    ProducerIdAndEpoch,
    TransactionMetadata,
    new_metadata,
)
from fencepost.broker.transactions.transaction_state import TransactionState
from fencepost.protocol.errors import ErrorCode

LAST = MAX_EPOCH - 1


def idle(
    epoch: int, *, last_epoch: int = -1, producer_id: int = 7, previous: int = 7
) -> TransactionMetadata:
    return TransactionMetadata(
        producer_id=producer_id,
        previous_producer_id=previous,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        timeout_ms=1,
        state=TransactionState.COMPLETE_COMMIT,
        last_update_ms=0,
    )


def producer(producer_id: int, epoch: int) -> ProducerIdAndEpoch:
    return ProducerIdAndEpoch(producer_id=producer_id, epoch=epoch)


def init(
    current: TransactionMetadata,
    expected: ProducerIdAndEpoch | None = None,
    generated: int | None = 99,
) -> tuple[int, int, int] | ErrorCode:
    if is_fenced(current, expected):
        return ErrorCode.PRODUCER_FENCED
    decision = decide_producer(
        current, expected, timeout_ms=60, now_ms=5, generate_producer_id=lambda: generated
    )
    if isinstance(decision, ErrorCode):
        return decision
    assert (decision.state, decision.timeout_ms) == (TransactionState.EMPTY, 60)
    return decision.producer_id, decision.producer_epoch, decision.last_producer_epoch


def test_a_new_id_begins_with_epoch_0_whatever_its_producer_had() -> None:
    assert init(new_metadata(7, 60, 5)) == (7, 0, -1)
    assert init(new_metadata(7, 60, 5), producer(3, 12)) == (7, 0, -1)


def test_each_new_producer_gets_the_next_epoch() -> None:
    assert init(idle(3, last_epoch=2)) == (7, 4, -1)


def test_a_producer_that_goes_on_gets_the_next_epoch_and_repeats_it() -> None:
    assert init(idle(3), producer(7, 3)) == (7, 4, 3)
    assert init(idle(4, last_epoch=3), producer(7, 3)) == (7, 4, 3)


@pytest.mark.parametrize("had", [(7, 2), (7, 5), (6, 3), (6, LAST)])
def test_one_that_has_a_successor_is_fenced(had: tuple[int, int]) -> None:
    assert init(idle(4, last_epoch=-1), producer(*had)) is ErrorCode.PRODUCER_FENCED


def test_at_the_last_epoch_another_producer_id_begins() -> None:
    assert init(idle(LAST)) == (99, 0, -1)
    assert init(idle(LAST), producer(7, LAST)) == (99, 0, LAST)
    assert init(idle(LAST), generated=None) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_the_rotation_is_repeated_for_a_producer_that_did_not_hear_of_it() -> None:
    rotated = idle(0, last_epoch=LAST, producer_id=99, previous=7)
    assert init(rotated, producer(7, LAST)) == (99, 0, LAST)
    assert init(rotated, producer(7, 5)) is ErrorCode.PRODUCER_FENCED


def test_no_epoch_is_left_to_repeat_at_the_last_one() -> None:
    assert init(idle(LAST, last_epoch=LAST - 1), producer(7, LAST - 1)) is (
        ErrorCode.UNKNOWN_SERVER_ERROR
    )
