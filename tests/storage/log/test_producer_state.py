from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import MAX_SEQUENCE, BatchHeader, read_header
from fencepost.protocol.transaction_markers import EndTransactionMarker
from fencepost.storage.log.producer_state import LastRecord, ProducerStateManager
from tests.harness.logs import T
from tests.harness.records import batch

PID = 900
END = 1_000
"""A high watermark behind everything."""


def header(
    seq: int,
    count: int = 1,
    *,
    offset: int = 0,
    epoch: int = 0,
    pid: int = PID,
    transactional: bool = False,
) -> BatchHeader:
    rows = [(T, b"k", b"v")] * count
    data = batch(*rows, producer=(pid, epoch, seq), transactional=transactional)
    return read_header(data)._replace(base_offset=offset)


def marker(offset: int, *, epoch: int = 0) -> BatchHeader:
    return header(-1, offset=offset, epoch=epoch)._replace(attributes=0x30)


def states(*headers: BatchHeader) -> ProducerStateManager:
    return update(ProducerStateManager(), *headers)


def update(known: ProducerStateManager, *headers: BatchHeader) -> ProducerStateManager:
    for each in headers:
        if each.is_control:
            known.end_transaction(each, EndTransactionMarker(committed=True, coordinator_epoch=0))
        else:
            known.update(each)
    return known


def refusal(known: ProducerStateManager, next_batch: BatchHeader) -> ErrorCode | None:
    return known.refusal(next_batch, check_sequence=True)


@pytest.mark.parametrize("seq", [0, 5, MAX_SEQUENCE])
@pytest.mark.parametrize("epoch", [0, 4])
def test_an_unknown_producer_may_begin_anywhere(seq: int, epoch: int) -> None:
    assert refusal(states(), header(seq, epoch=epoch)) is None


@pytest.mark.parametrize(
    ("seq", "epoch", "error"),
    [
        (3, 1, None),
        (4, 1, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (2, 1, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (0, 1, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (0, 2, None),
        (3, 2, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (3, 0, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_the_next_batch_of_a_known_producer(seq: int, epoch: int, error: ErrorCode | None) -> None:
    assert refusal(states(header(0, 3, epoch=1)), header(seq, epoch=epoch)) == error


def test_sequences_wrap_within_and_between_batches() -> None:
    known = states(header(MAX_SEQUENCE - 1, 3))
    assert refusal(known, header(1)) is None
    assert refusal(states(header(MAX_SEQUENCE)), header(0)) is None
    assert known.duplicate_of(header(MAX_SEQUENCE - 1, 3)) is not None


def test_a_coordinator_numbers_nothing_but_may_be_fenced() -> None:
    known = states(header(0, epoch=1))
    assert known.refusal(header(-1, epoch=1), check_sequence=False) is None
    assert known.refusal(header(-1, epoch=0), check_sequence=False) == (
        ErrorCode.INVALID_PRODUCER_EPOCH
    )


def test_a_duplicate_is_one_of_the_last_five() -> None:
    known = states(*(header(2 * n, 2, offset=10 * n) for n in range(7)))
    for n in range(2, 7):
        found = known.duplicate_of(header(2 * n, 2))
        assert found is not None
        assert (found.first_offset, found.last_offset) == (10 * n, 10 * n + 1)
        assert (found.first_sequence, found.last_sequence) == (2 * n, 2 * n + 1)
        assert found.timestamp == T
    assert known.duplicate_of(header(2, 2)) is None


@pytest.mark.parametrize(
    "other", [header(0, 1), header(1, 1), header(0, 2, epoch=1), header(0, 2, pid=1)]
)
def test_only_the_same_sequences_of_the_same_epoch_are_a_duplicate(other: BatchHeader) -> None:
    known = states(header(0, 2))
    assert known.duplicate_of(header(0, 2)) is not None
    assert known.duplicate_of(other) is None


def test_a_new_epoch_forgets_the_batches_of_the_old_one() -> None:
    known = states(header(0), header(1), header(0, epoch=1, offset=2))
    (view,) = known.snapshot()
    assert view.producer_epoch == 1
    assert [each.first_offset for each in view.batches] == [2]
    assert view.last_sequence == 0


def test_a_transaction_is_open_until_its_marker() -> None:
    known = states(header(0, offset=5, transactional=True), header(1, offset=8, transactional=True))
    assert known.first_unstable_offset(END) == 5
    assert refusal(known, header(2)) == ErrorCode.INVALID_TXN_STATE
    assert refusal(known, header(2, transactional=True)) is None
    update(known, header(0, pid=1, offset=10, transactional=True), marker(11))
    assert known.first_unstable_offset(END) == 10
    assert refusal(known, header(2)) is None


def test_no_producer_leaves_nothing_unstable() -> None:
    assert states().first_unstable_offset(END) is None
    assert states(header(0)).first_unstable_offset(END) is None


def test_after_a_marker_of_a_new_epoch_sequences_begin_at_zero() -> None:
    known = states(header(0), marker(1, epoch=1))
    (view,) = known.snapshot()
    assert (view.producer_epoch, view.last_sequence, view.batches) == (1, -1, ())
    assert refusal(known, header(0, epoch=1)) is None
    assert refusal(known, header(1, epoch=1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_expiry_goes_by_the_last_record_s_timestamp() -> None:
    known = states(header(0), header(0, pid=1, transactional=True))
    assert known.expire(T + 999, 1_000) == 0
    assert known.expire(T + 1_000, 1_000) == 1
    assert [view.producer_id for view in known.snapshot()] == [1]
    assert len(known) == 1


def test_a_snapshot_restores_everything() -> None:
    known = states(
        *(header(n, offset=n) for n in range(6)),
        header(0, pid=1, offset=9, transactional=True),
        header(3, pid=2, epoch=7, offset=10),
    )
    other = states(header(0, pid=77))
    other.restore(known.snapshot())
    assert other.snapshot() == known.snapshot()
    assert [view.producer_id for view in other.snapshot()] == [1, 2, PID]
    assert refusal(other, header(6)) is None
    # What is restored is a copy.
    other.update(header(6))
    assert other.snapshot() != known.snapshot()


def test_what_stems_from_records_behind_an_offset() -> None:
    known = states(header(0, offset=4), header(0, pid=1, offset=8))
    assert known.wrote_at_or_after(8)
    assert not known.wrote_at_or_after(9)
    update(known, marker(9, epoch=1))
    assert known.wrote_at_or_after(9)


def test_a_restored_marker_may_have_been_anywhere() -> None:
    known = states(header(0, offset=4))
    restored = ProducerStateManager()
    restored.restore(known.snapshot())
    assert not restored.wrote_at_or_after(5)
    restored.restore(update(known, marker(7)).snapshot())
    assert restored.wrote_at_or_after(100)


def test_last_records_are_data_unless_a_marker_brought_a_newer_epoch() -> None:
    known = states(header(0, 3, offset=4), marker(7), header(0, pid=1, offset=8))
    assert known.last_records() == {PID: LastRecord(6, 0), 1: LastRecord(8, 0)}
    update(known, marker(9, epoch=1))
    assert known.last_records()[PID] == LastRecord(None, 1)
    known.clear()
    assert known.last_records() == {}


attempts = st.lists(
    st.tuples(
        st.integers(0, 2), st.sampled_from([-4, -3, -2, -1, 0, 0, 0, 0, 1]), st.integers(1, 3)
    ),
    max_size=40,
)


@given(attempts=attempts, start=st.sampled_from([0, MAX_SEQUENCE - 3]))
def test_against_a_naive_model(attempts: list[tuple[int, int, int]], start: int) -> None:
    """A producer that repeats, skips and raises its epoch, judged by its whole history."""
    known = ProducerStateManager()
    history: deque[tuple[int, int]] = deque(maxlen=5)
    current = 0
    expected = start
    for epoch, step, count in attempts:
        seq = (expected + step) % 2**31
        tried = header(seq, count, epoch=epoch)
        is_duplicate = epoch == current and (seq, count) in history
        assert (known.duplicate_of(tried) is not None) == is_duplicate
        if is_duplicate:
            continue
        error = refusal(known, tried)
        if not len(known):
            assert error is None
        elif epoch < current:
            assert error == ErrorCode.INVALID_PRODUCER_EPOCH
        elif epoch > current:
            assert (error is None) == (seq == 0)
        else:
            assert (error is None) == (step == 0)
        if error is None:
            if epoch != current:
                history.clear()
            current = epoch
            history.append((seq, count))
            expected = (seq + count) % 2**31
            known.update(tried)
