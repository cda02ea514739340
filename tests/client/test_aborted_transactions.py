"""Records of aborted transactions are left out of what a ``read_committed`` consumer gets."""

from __future__ import annotations

from fencepost.client.aborted_transactions import AbortedTransaction, aborted_transactions
from fencepost.client.batches import decode_records
from fencepost.protocol.messages.fetch import AbortedTransaction as Answered
from fencepost.protocol.messages.fetch import PartitionData
from fencepost.protocol.records import Record, build_batch
from fencepost.protocol.transaction_markers import TransactionMarker
from tests.harness.records import batch


def records(offset: int, value: bytes, producer: int, *, transactional: bool = True) -> bytes:
    return bytes(
        batch(
            Record(offset, 0, None, value),
            base_offset=offset,
            producer=(producer, 0, 0),
            transactional=transactional,
        )
    )


def marker(offset: int, producer: int, *, committed: bool) -> bytes:
    ends = TransactionMarker(
        producer_id=producer,
        producer_epoch=0,
        coordinator_epoch=0,
        committed=committed,
        transaction_version=1,
    ).to_batch(0)
    ends[0:8] = offset.to_bytes(8, "big")
    return bytes(ends)


def values(log: bytes, *aborted: tuple[int, int], start: int = 0) -> list[bytes | None]:
    listed = [AbortedTransaction(*each) for each in aborted]
    return [each.value for each in decode_records([log], start, listed).records]


LOG = b"".join(
    [
        records(0, b"a0", 7),
        records(1, b"b1", 8),
        records(2, b"a2", 7),
        marker(3, 7, committed=False),
        records(4, b"a4", 7),
        marker(5, 8, committed=False),
        marker(6, 7, committed=True),
        records(7, b"b7", 8),
    ]
)


def test_a_transaction_is_left_out_from_its_first_record_to_its_marker() -> None:
    assert values(LOG, (7, 0), (8, 1)) == [b"a4", b"b7"]
    assert values(LOG, (8, 1)) == [b"a0", b"a2", b"a4", b"b7"]
    assert values(LOG) == [b"a0", b"b1", b"a2", b"a4", b"b7"]


def test_a_transaction_that_began_before_the_answer_is_left_out_too() -> None:
    log = LOG[len(records(0, b"a0", 7)) :]
    assert values(log, (7, 0), (8, 1), start=1) == [b"a4", b"b7"]


def test_the_list_may_come_in_any_order() -> None:
    assert values(LOG, (8, 1), (7, 0)) == values(LOG, (7, 0), (8, 1))


def test_two_aborted_transactions_of_one_producer_are_left_out() -> None:
    log = b"".join(
        [
            records(0, b"x", 7),
            marker(1, 7, committed=False),
            records(2, b"y", 7),
            marker(3, 7, committed=True),
            records(4, b"z", 7),
            marker(5, 7, committed=False),
        ]
    )
    assert values(log, (7, 0), (7, 4)) == [b"y"]


def test_a_record_outside_of_transactions_stays() -> None:
    log = records(0, b"x", 7) + records(1, b"y", 7, transactional=False)
    assert values(log, (7, 0)) == [b"y"]


def test_what_is_left_out_is_passed() -> None:
    found = decode_records([LOG], 0, [AbortedTransaction(7, 0), AbortedTransaction(8, 1)])
    assert found.next_offset == 8
    assert len(found.batches) == 8
    all_aborted = decode_records([records(0, b"x", 7)], 0, [AbortedTransaction(7, 0)])
    assert (all_aborted.records, all_aborted.next_offset) == ((), 1)


def test_a_marker_of_which_compaction_left_the_header_ends_nothing() -> None:
    empty = bytes(
        build_batch(
            [],
            base_offset=1,
            last_offset=1,
            producer_id=7,
            producer_epoch=0,
            transactional=True,
            control=True,
            max_timestamp=0,
        )
    )
    log = records(0, b"x", 7) + empty + records(2, b"y", 7)
    assert values(log, (7, 0)) == []


def test_an_answer_names_them_or_has_no_list() -> None:
    listed = PartitionData(aborted_transactions=(Answered(producer_id=7, first_offset=3),))
    assert aborted_transactions(listed) == (AbortedTransaction(7, 3),)
    assert aborted_transactions(PartitionData(aborted_transactions=None)) == ()
