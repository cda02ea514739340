"""A read_committed consumer of records in the tier, and a follower that starts behind them."""

from __future__ import annotations

from msgspec.structs import replace

from fencepost.broker.node.operator_actions import elect, roll
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.fetch import PartitionData
from fencepost.storage.log.producer_state import ProducerStateEntry
from tests.broker.replication.follower.remote_bootstrap import Start
from tests.harness.remote_tier import Tier, short
from tests.harness.transactions import append_in_transaction, marker, write_markers
from tests.harness.typed_requests import fetch_request, fetched, from_offset, values

LARGE = "1000000"


def segment(tier: Tier, producer: tuple[int, int, int] | None, *, abort: int | None = None) -> None:
    """Two records, by a transactional producer perhaps, and a marker perhaps, in a segment."""
    if producer is None:
        tier.append(2)
    else:
        append_in_transaction(tier, "t", producer, b"a", b"b")
    if abort is not None:
        write_markers(tier, marker(abort, ("t", (0,)), committed=False))
    roll(tier.cluster, "t", 0)


def fetch(
    tier: Tier, offset: int, *, broker_id: int = 1, isolation_level: int = 1
) -> PartitionData:
    request = replace(fetch_request(("t", from_offset(offset))), isolation_level=isolation_level)
    return fetched(tier.send(broker_id, "fetch", 12, request).response)


def open_transaction(producer: ProducerStateEntry) -> tuple[int, int, int, int | None]:
    epochs = producer.producer_epoch, producer.coordinator_epoch
    return producer.producer_id, *epochs, producer.txn_first_offset


def aborted(answer: PartitionData) -> list[tuple[int, int]] | None:
    found = answer.aborted_transactions
    return None if found is None else [(each.producer_id, each.first_offset) for each in found]


def spread(tier: Tier) -> None:
    """Producer 7 writes 0, 1, 4, 5 and aborts at 8; 8 writes 2, 3 and aborts at 6.

    The tier alone has 0 to 6; 7 and 9 to 11 are in no transaction.
    """
    segment(tier, (7, 0, 0))
    segment(tier, (8, 0, 0))
    segment(tier, (7, 0, 2), abort=8)
    tier.append(1)
    write_markers(tier, marker(7, ("t", (0,)), committed=False))
    roll(tier.cluster, "t", 0)
    segment(tier, None)
    tier.append(1)
    assert tier.run() is None
    tier.leader("t").log.delete_local(7, now_ms=None)


def indexes_read(tier: Tier) -> list[str]:
    return [short(key) for _, key in tier.objects.asked if key.endswith(".txnindex")]


def test_the_list_is_of_the_tier_and_of_what_is_here() -> None:
    tier = Tier(internal_segment_bytes=LARGE)
    spread(tier)
    assert tier.leader("t").log.local_log_start_offset == 7
    assert [aborted(fetch(tier, offset)) for offset in (0, 2, 4, 6)] == [
        [(7, 0)],
        [(8, 2), (7, 0)],
        [(8, 2), (7, 0)],
        [(8, 2), (7, 0)],
    ]
    assert aborted(fetch(tier, 7)) == [(7, 0)]
    assert values(fetch(tier, 0)) == [b"a", b"b"]
    assert aborted(fetch(tier, 0, isolation_level=0)) is None


def test_only_segments_with_an_abort_have_a_transaction_index() -> None:
    tier = Tier(internal_segment_bytes=LARGE)
    spread(tier)
    assert [name for name in tier.objects.names() if name.endswith(".txnindex")] == [
        "4.txnindex",
        "7.txnindex",
    ]
    assert {s.start_offset: s.txn_index_empty for s in tier.metadata().values()} == {
        0: True,
        2: True,
        4: False,
        7: False,
        9: True,
    }


def test_an_index_that_the_tier_has_lost_is_an_error_and_no_committed_record() -> None:
    tier = Tier(internal_segment_bytes=LARGE)
    spread(tier)
    tier.manager.delete_local(tier.leader("t"))
    tier.objects.fails = lambda op, key: op == "get" and key.endswith(".txnindex")
    assert fetch(tier, 0).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert fetch(tier, 0, isolation_level=0).error_code == ErrorCode.NONE


def test_records_whose_index_goes_while_they_are_read_are_out_of_range() -> None:
    tier = Tier(internal_segment_bytes=LARGE)
    segment(tier, (7, 0, 0), abort=7)
    segment(tier, None)
    tier.append(1)
    assert tier.run() is None
    tier.manager.delete_local(tier.leader("t"))
    tier.objects.holds = lambda op, key: op == "delete" or key.endswith(".log")
    request = replace(fetch_request(("t", from_offset(0))), isolation_level=1)
    sent = tier.send(1, "fetch", 12, request)
    tier.leader("t").delete_records(3)
    tier.manager.run_task(tier.leader("t"), lambda _error: None)
    tier.cluster.scheduler.run_due()
    tier.objects.release()
    tier.cluster.scheduler.run_due()
    answer = fetched(sent.response)
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert not values(answer)


def test_an_index_is_read_once() -> None:
    tier = Tier(internal_segment_bytes=LARGE)
    spread(tier)
    tier.manager.delete_local(tier.leader("t"))
    tier.objects.asked.clear()
    for _ in range(3):
        fetch(tier, 0)
    assert indexes_read(tier) == ["4.txnindex", "7.txnindex"]


def test_indexes_of_later_transactions_are_not_read() -> None:
    tier = Tier(internal_segment_bytes=LARGE)
    for number in range(4):
        segment(tier, (7, 0, 2 * number), abort=7)
    tier.append(1)
    assert tier.run() is None
    tier.manager.delete_local(tier.leader("t"))
    tier.objects.asked.clear()
    assert aborted(fetch(tier, 3)) == [(7, 3)]
    assert indexes_read(tier) == ["3.txnindex"]


def test_what_is_behind_an_open_transaction_is_not_tiered() -> None:
    tier = Tier(internal_segment_bytes=LARGE)
    segment(tier, None)
    segment(tier, (7, 0, 0))
    segment(tier, None)
    assert tier.run() is None
    assert tier.highest() == 1


def test_a_follower_that_starts_from_the_tier_knows_the_open_transactions() -> None:
    tier = Start()
    segment(tier, (7, 0, 0), abort=7)
    segment(tier, (8, 0, 0))
    write_markers(tier, marker(8, ("t", (0,)), committed=False))
    append_in_transaction(tier, "t", (9, 0, 0), b"open")
    roll(tier.cluster, "t", 0)
    assert tier.run() is None
    tier.manager.delete_local(tier.leader("t"))
    tier.release(2)
    tier.advance(2_000)
    leader, new = tier.leader("t").log, tier.new.log
    assert new.local_log_start_offset == leader.local_log_start_offset == 5
    assert new.log_end_offset == leader.log_end_offset == 7
    assert [open_transaction(each) for each in new.producers()] == [
        open_transaction(each) for each in leader.producers()
    ]
    assert new.last_stable_offset(7) == 6
    elect(tier.cluster, "t", 0, 2)
    assert aborted(fetch(tier, 3, broker_id=2)) == [(8, 3)]
    assert aborted(fetch(tier, 0, broker_id=2)) == [(7, 0)]
    write_markers(tier, marker(9, ("t", (0,)), committed=False), broker_id=2)
    assert aborted(fetch(tier, 5, broker_id=2)) == [(8, 3), (9, 6)]


def test_a_follower_that_starts_within_a_transaction_knows_where_it_began() -> None:
    tier = Start(enabled=False)
    segment(tier, (7, 0, 0))
    segment(tier, None)
    write_markers(tier, marker(7, ("t", (0,)), committed=False))
    roll(tier.cluster, "t", 0)
    assert tier.run() is None
    tier.leader("t").log.delete_local(2, now_ms=None)
    tier.append(1)
    tier.step(4)
    assert (tier.new.log.local_log_start_offset, tier.new.log.log_end_offset) == (2, 2)
    assert tier.new.log.has_ongoing_transaction(7, 0)
    tier.release(2)
    assert tier.new.log.log_end_offset == 6
    elect(tier.cluster, "t", 0, 2)
    assert [aborted(fetch(tier, offset, broker_id=2)) for offset in (0, 2, 4, 5)] == [
        [(7, 0)],
        [(7, 0)],
        [(7, 0)],
        [],
    ]
