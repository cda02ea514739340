"""EndTxn on one transactional id: Kafka's tables of states, epochs and outcomes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.transactions.end_transaction import (
    TransactionEnd,
    decide_abort,
    decide_end,
)
from fencepost.broker.transactions.transaction_metadata import (
    MAX_EPOCH,
    ProducerIdAndEpoch,
    TransactionMetadata,
)
from fencepost.broker.transactions.transaction_state import TransactionState as State
from fencepost.protocol.errors import ErrorCode

NOW_MS = 1000
EPOCH = 4
BUMPED = "the epoch is bumped"
PREPARED = "the epoch stays"
DONE, BUSY = ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS
WRONG, FENCED = ErrorCode.INVALID_TXN_STATE, ErrorCode.PRODUCER_FENCED


def metadata(state: State, epoch: int = EPOCH, **changes: int) -> TransactionMetadata:
    found = TransactionMetadata(
        producer_id=7,
        previous_producer_id=7,
        producer_epoch=epoch,
        timeout_ms=60_000,
        state=state,
        partitions=frozenset({("t", 0)}) if state is State.ONGOING else frozenset(),
        start_ms=500,
        last_update_ms=600,
    )
    return replace(found, **changes)


def end(
    current: TransactionMetadata,
    epoch: int,
    *,
    commit: bool,
    version: int = 2,
    producer_id: int = 7,
    generated: int | None = 99,
) -> TransactionMetadata | ErrorCode:
    wanted = TransactionEnd(
        producer=ProducerIdAndEpoch(producer_id=producer_id, epoch=epoch),
        commit=commit,
        client_version=version,
    )
    return decide_end(
        current,
        wanted,
        now_ms=NOW_MS,
        generate_producer_id=lambda: generated,
    )


def outcome(decision: TransactionMetadata | ErrorCode, *, commit: bool) -> object:
    if isinstance(decision, ErrorCode):
        return decision
    assert decision.state is (State.PREPARE_COMMIT if commit else State.PREPARE_ABORT)
    return BUMPED if decision.producer_epoch == EPOCH + 1 else PREPARED


@pytest.mark.parametrize(
    ("state", "abort_again", "abort", "commit_again", "commit"),
    [
        (State.EMPTY, FENCED, BUMPED, FENCED, WRONG),
        (State.ONGOING, FENCED, BUMPED, FENCED, BUMPED),
        (State.COMPLETE_ABORT, DONE, BUMPED, WRONG, WRONG),
        (State.COMPLETE_COMMIT, WRONG, BUMPED, DONE, WRONG),
    ],
)
def test_with_version_2_the_epoch_tells_a_repetition_from_the_next_end(
    state: State, abort_again: object, abort: object, commit_again: object, commit: object
) -> None:
    current = metadata(state)
    for epoch, commits, expected in (
        (EPOCH - 1, False, abort_again),
        (EPOCH, False, abort),
        (EPOCH - 1, True, commit_again),
        (EPOCH, True, commit),
        (EPOCH + 1, False, FENCED),
        (EPOCH - 2, True, FENCED),
    ):
        assert outcome(end(current, epoch, commit=commits), commit=commits) == expected


@pytest.mark.parametrize(
    ("state", "abort", "commit"),
    [
        (State.EMPTY, WRONG, WRONG),
        (State.ONGOING, PREPARED, PREPARED),
        (State.COMPLETE_ABORT, DONE, WRONG),
        (State.COMPLETE_COMMIT, WRONG, DONE),
    ],
)
@pytest.mark.parametrize("version", [0, 1])
def test_before_version_2_the_state_alone_tells(
    state: State, abort: object, commit: object, version: int
) -> None:
    current = metadata(state)
    for commits, expected in ((False, abort), (True, commit)):
        decision = end(current, EPOCH, commit=commits, version=version)
        assert outcome(decision, commit=commits) == expected
        for epoch in (EPOCH - 1, EPOCH + 1):
            assert end(current, epoch, commit=commits, version=version) is FENCED


@pytest.mark.parametrize("state", [State.PREPARE_ABORT, State.PREPARE_COMMIT])
@pytest.mark.parametrize("commit", [False, True])
def test_while_markers_are_written_its_producer_waits_and_others_are_fenced(
    state: State, commit: bool
) -> None:
    current = metadata(state)
    for epoch, version, expected in (
        (EPOCH, 2, BUSY),
        (EPOCH - 1, 2, BUSY),
        (EPOCH + 1, 2, FENCED),
        (EPOCH, 1, BUSY),
        (EPOCH - 1, 1, FENCED),
    ):
        decision = end(current, epoch, commit=commit, version=version)
        assert decision is expected


@pytest.mark.parametrize("version", [0, 2])
def test_another_producer_id_is_no_mapping(version: int) -> None:
    current = metadata(State.ONGOING)
    decision = end(current, EPOCH, commit=True, version=version, producer_id=8)
    assert decision is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_at_the_last_epoch_the_log_has_the_next_producer_id_until_the_end_is_complete() -> None:
    last = MAX_EPOCH - 1
    prepared = end(metadata(State.ONGOING, last), last, commit=True)
    assert isinstance(prepared, TransactionMetadata)
    assert (prepared.producer_id, prepared.producer_epoch) == (7, MAX_EPOCH)
    assert (prepared.previous_producer_id, prepared.next_producer_id) == (7, 99)
    complete = prepared.completed(NOW_MS)
    assert (complete.producer_id, complete.producer_epoch) == (99, 0)
    assert (complete.previous_producer_id, complete.next_producer_id) == (7, -1)
    assert end(complete, last, commit=True) is DONE
    assert end(complete, last, commit=False) is WRONG
    assert end(complete, last, commit=True, producer_id=6) is (
        ErrorCode.INVALID_PRODUCER_ID_MAPPING
    )


def test_without_a_producer_id_for_it_the_end_waits() -> None:
    last = MAX_EPOCH - 1
    decision = end(metadata(State.ONGOING, last), last, commit=True, generated=None)
    assert decision is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_an_abort_of_nothing_has_its_own_time_as_start() -> None:
    decision = end(metadata(State.EMPTY, start_ms=-1), EPOCH, commit=False)
    assert isinstance(decision, TransactionMetadata)
    assert decision.start_ms == NOW_MS
    ongoing = end(metadata(State.ONGOING), EPOCH, commit=False)
    assert isinstance(ongoing, TransactionMetadata)
    assert ongoing.start_ms == 500


@pytest.mark.parametrize(("version", "client_version"), [(0, 0), (1, 0), (2, 2)])
def test_an_abort_by_the_coordinator_bumps_the_epoch_in_every_version(
    version: int, client_version: int
) -> None:
    decision = decide_abort(
        metadata(State.ONGOING, last_producer_epoch=3),
        server_version=version,
        now_ms=NOW_MS,
        generate_producer_id=lambda: None,
    )
    assert isinstance(decision, TransactionMetadata)
    assert (decision.state, decision.producer_epoch) == (State.PREPARE_ABORT, EPOCH + 1)
    assert decision.client_version == client_version
    assert decision.last_producer_epoch == (EPOCH if version == 2 else -1)


@pytest.mark.parametrize(("version", "producer"), [(1, (7, MAX_EPOCH)), (2, (99, 0))])
def test_an_abort_at_the_last_epoch_leaves_one_to_fence_with(
    version: int, producer: tuple[int, int]
) -> None:
    decision = decide_abort(
        metadata(State.ONGOING, MAX_EPOCH - 1),
        server_version=version,
        now_ms=NOW_MS,
        generate_producer_id=lambda: 99,
    )
    assert isinstance(decision, TransactionMetadata)
    assert decision.producer_epoch == MAX_EPOCH
    complete = decision.completed(NOW_MS)
    assert (complete.producer_id, complete.producer_epoch) == producer
