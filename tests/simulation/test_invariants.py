"""Each invariant, alone: what it accepts, and what it calls broken."""

import re
from pathlib import Path
from uuid import UUID

import pytest

from fencepost.broker.metadata.image import BrokerImage, PartitionImage
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record, build_batch, read_header
from fencepost.simulation import client_invariants as clients
from fencepost.simulation import invariants as must
from fencepost.simulation import tier_invariants as tier
from fencepost.simulation.history import Batch, BatchLog, PartitionHistory
from fencepost.simulation.invariants import INVARIANTS, InvariantViolation, Problem, require
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.tier.segment_metadata import (
    RemoteLogSegmentState,
    RemoteSegment,
    TopicIdPartition,
)

BROKERS = {n: BrokerImage(broker_id=n, host="", port=9091 + n, fenced=n == 3) for n in (1, 2, 3)}


def partition(
    *, leader: int = 1, isr: tuple[int, ...] = (1, 2), epoch: int = 4, version: int = 7
) -> PartitionImage:
    return PartitionImage(
        replicas=(1, 2, 3), isr=isr, leader=leader, leader_epoch=epoch, partition_epoch=version
    )


def written(history: PartitionHistory, log: BatchLog, *epochs: int) -> list[Batch]:
    """Batches of two records of these epochs, appended to a leader's log."""
    found = []
    for epoch in epochs:
        batch = history.record(epoch, log.end, log.end + 2, crc=log.end, log=log)
        log.append(batch)
        found.append(batch)
    return found


@pytest.fixture
def history() -> PartitionHistory:
    return PartitionHistory(0)


@pytest.fixture
def leader(history: PartitionHistory) -> BatchLog:
    """A log of three batches, of which two are committed."""
    log = BatchLog()
    written(history, log, 0, 0, 1)
    history.commit(1, log, 4)
    return log


@pytest.fixture
def other(history: PartitionHistory, leader: BatchLog) -> BatchLog:
    """A log that parts from the leader's after its first batch."""
    log = BatchLog()
    log.append(leader.all[0])
    written(history, log, 2)
    return log


def test_each_says_in_a_sentence_what_must_hold() -> None:
    assert len({each.__name__ for each in INVARIANTS}) == len(INVARIANTS) > 20
    for each in INVARIANTS:
        sentence = (each.__doc__ or "").partition("\n")[0]
        assert sentence.endswith((".", ").")), each.__name__


def test_demanding_one_names_it() -> None:
    require(must.epochs_only_rise, "here", 3, 3)
    with pytest.raises(InvariantViolation) as broken:
        require(must.epochs_only_rise, "here", 3, 2)
    assert broken.value.invariant == "epochs_only_rise"
    assert broken.value.observed == "here: epoch 2 after 3"


def test_one_leader_per_epoch(history: PartitionHistory) -> None:
    assert must.one_leader_per_epoch(history, 4, 1) is None
    assert must.one_leader_per_epoch(history, 4, 1) is None
    assert must.one_leader_per_epoch(history, 5, 2) is None
    assert must.one_leader_per_epoch(history, 4, 2)


def test_changes_have_epochs() -> None:
    was = partition()
    assert must.changes_have_epochs(0, was, partition(isr=(1,), version=8)) is None
    assert must.changes_have_epochs(0, was, partition(leader=2, epoch=5, version=8)) is None
    assert must.changes_have_epochs(0, was, partition(isr=(1,)))
    assert must.changes_have_epochs(0, was, partition(leader=2, version=8))


def test_leaders_are_in_sync_and_online() -> None:
    assert must.leaders_are_in_sync(0, partition(), BROKERS) is None
    assert must.leaders_are_in_sync(0, partition(leader=-1, isr=()), BROKERS) is None
    assert must.leaders_are_in_sync(0, partition(leader=3), BROKERS)
    assert must.leaders_are_in_sync(0, partition(leader=3, isr=(1, 3)), BROKERS)
    assert must.laggards_leave_the_isr("here", 45_000, 45_000) is None
    assert must.laggards_leave_the_isr("here", 45_001, 45_000)
    assert must.fenced_replicas_are_not_in_sync(0, partition(), BROKERS) is None
    assert must.fenced_replicas_are_not_in_sync(0, partition(isr=(1, 3)), BROKERS)


def test_elections_are_clean() -> None:
    was = partition()
    assert must.elections_are_clean(0, was, partition(leader=2), unclean=False) is None
    assert must.elections_are_clean(0, was, partition(leader=3), unclean=True) is None
    assert must.elections_are_clean(0, was, partition(leader=3), unclean=False)


def test_leaders_hold_what_was_committed_before_them(
    history: PartitionHistory, leader: BatchLog, other: BatchLog
) -> None:
    history.acknowledge(1, leader.all[1])
    for invariant in (must.leaders_hold_what_is_committed, must.acknowledged_records_are_not_lost):
        assert invariant(history, 2, 1, leader) is None
        assert invariant(history, 1, 2, other) is None, "committed only in that epoch"
        assert invariant(history, 2, 2, other)
    history.deleted = 4
    assert must.leaders_hold_what_is_committed(history, 2, 2, other) is None


def test_in_sync_replicas_hold_what_is_committed(
    history: PartitionHistory, leader: BatchLog, other: BatchLog
) -> None:
    logs = {1: leader, 2: other}
    assert must.in_sync_replicas_hold_what_is_committed(history, [1], logs) is None
    assert must.in_sync_replicas_hold_what_is_committed(history, [1, 2], logs)
    history.deleted = 4
    assert must.in_sync_replicas_hold_what_is_committed(history, [1, 2], logs) is None
    assert history.tainted, "old records stand where others were deleted"


def test_logs_agree_below_the_high_watermark(
    history: PartitionHistory, leader: BatchLog, other: BatchLog
) -> None:
    agree = must.logs_agree_below_the_high_watermark
    assert agree("here", history, leader, 4) is None
    assert agree("here", history, other, 2) is None
    assert agree("here", history, other, 4)
    assert agree("here", history, leader, 6), "never committed"


def test_high_watermarks() -> None:
    assert must.high_watermarks_never_fall("here", 3, 3) is None
    assert must.high_watermarks_never_fall("here", 3, 2)
    assert must.high_watermarks_lie_in_the_log("here", 3, 3) is None
    assert must.high_watermarks_lie_in_the_log("here", 4, 3)
    assert must.fenced_replicas_move_no_high_watermark("here", 2, (1, 2), 3, 4) is None
    assert must.fenced_replicas_move_no_high_watermark("here", 3, (1, 2), 3, 4)


def test_logs_copy_and_go_on(history: PartitionHistory, leader: BatchLog, other: BatchLog) -> None:
    first, second, third = leader.all
    assert must.offsets_are_contiguous("here", 6, 6, copied=False) is None
    assert must.offsets_are_contiguous("here", 6, 8, copied=True) is None
    assert must.offsets_are_contiguous("here", 6, 8, copied=False)
    assert must.offsets_are_contiguous("here", 6, 4, copied=True)
    assert must.epochs_in_a_log_only_rise("here", other, 2) is None
    assert must.epochs_in_a_log_only_rise("here", other, 1)
    copied = must.followers_copy_what_leaders_wrote
    assert copied("here", second, 0, 2, second.crc) is None
    assert copied("here", second, 0, 2, second.crc + 1)
    assert copied("here", None, 7, 2, 0)
    prefix = BatchLog()
    prefix.append(first)
    assert must.truncated_logs_are_prefixes("here", prefix, second) is None
    assert must.truncated_logs_are_prefixes("here", other, third)
    assert must.epoch_caches_match_records("here", 3, 3) is None
    assert must.epoch_caches_match_records("here", 3, None)
    assert must.leaders_never_truncate("here", 3, 3) is None
    assert must.leaders_never_truncate("here", 3, 2)


def test_what_clients_are_told(
    history: PartitionHistory, leader: BatchLog, other: BatchLog
) -> None:
    committed, lost = leader.all[1], other.all[1]
    told = clients.acknowledged_records_are_committed
    assert told(history, committed, 2, committed.crc) is None
    assert told(history, committed, 2, committed.crc + 1)
    assert told(history, leader.all[2], 4, leader.all[2].crc)
    enough = clients.enough_replicas_hold_what_is_acknowledged
    assert enough(history, committed, [leader, other], 1) is None
    assert enough(history, committed, [leader, other], 2)
    assert clients.latest_offsets_never_go_back("c1", 3, 3) is None
    assert clients.latest_offsets_never_go_back("c1", 3, 2)
    assert clients.clients_read_what_is_committed("c1", history, committed) is None
    assert clients.clients_read_what_is_committed("c1", history, lost)
    assert clients.consumers_miss_no_truncation("c1", leader, leader.all[2], 0)
    read = BatchLog()
    read.append(leader.all[0])
    assert clients.consumers_miss_no_truncation("c1", read, lost, 0) is None
    assert clients.consumers_miss_no_truncation("c1", other, leader.all[2], 0)
    assert clients.consumers_miss_no_truncation("c1", other, leader.all[2], 4) is None


def test_what_producers_are_told_of_an_isr_that_is_too_small() -> None:
    before = clients.too_small_an_isr_is_told_before_the_append
    early, late = ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert before("here", early, appended=False, lacked=True) is None
    assert before("here", ErrorCode.NONE, appended=True, lacked=False) is None
    assert before("here", None, appended=False, lacked=True) is None, "another partition waits"
    assert before("here", early, appended=True, lacked=True)
    assert before("here", early, appended=False, lacked=False)
    assert before("here", None, appended=True, lacked=True)
    assert before("here", late, appended=True, lacked=True)
    rises = must.too_small_an_isr_moves_no_high_watermark
    assert rises("here", False, 3, 4) is None
    assert rises("here", True, 3, 4)


def copied(history: PartitionHistory, batch: Batch, *epochs: tuple[int, int]) -> Problem:
    """What is wrong with a segment of a batch, whose metadata have these epochs."""
    segment = RemoteSegment(
        partition=TopicIdPartition(topic="t", topic_id=UUID(int=1), index=0),
        id=UUID(int=2),
        start_offset=0,
        end_offset=3,
        epochs=tuple(EpochEntry(*each) for each in epochs),
        size_bytes=1,
        max_timestamp=-1,
        broker_id=1,
        event_ms=0,
        state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
    )
    data = build_batch(
        [Record(n, 0, None, b"") for n in range(2)],
        base_offset=batch.base_offset,
        leader_epoch=batch.epoch,
    )
    header = read_header(data)
    batch.crc = header.crc
    return tier.the_tier_holds_what_leaders_wrote(history, segment, header, batch)


def test_what_is_in_the_tier(history: PartitionHistory, leader: BatchLog, other: BatchLog) -> None:
    first, second, third = leader.all
    assert copied(history, first, (0, 0)) is None
    assert copied(history, first, (1, 0))
    assert copied(history, first, (0, 2))
    assert copied(history, third, (0, 0), (1, 4)), "it lies behind the segment's end"
    history.deleted = 2
    assert copied(history, first, (0, 2)) is None, "its epoch is not known"
    history.deleted = 0
    assert tier.only_what_is_committed_is_tiered(history, [first, second]) is None
    assert tier.only_what_is_committed_is_tiered(history, [first, second, third])
    assert tier.only_what_is_committed_is_tiered(history, other.all)
    history.deleted = 4
    assert tier.only_what_is_committed_is_tiered(history, other.all) is None
    readable = tier.what_is_committed_can_be_read
    assert readable("here", 0, 4, []) is None
    assert "0-1 of epoch 0" in str(readable("here", 0, 4, [first]))


def test_where_logs_and_the_tier_begin_and_end() -> None:
    assert tier.log_starts_rise_for_a_reason("here", 3, 5, 5) is None
    assert tier.log_starts_rise_for_a_reason("here", 5, 5, 0) is None
    assert tier.log_starts_rise_for_a_reason("here", 5, 2, 0) is None
    assert tier.log_starts_rise_for_a_reason("here", 3, 6, 5)
    assert tier.offsets_are_in_order("here", 9, 9, 9) is None
    assert tier.offsets_are_in_order("here", 9, 10, 0)
    assert tier.offsets_are_in_order("here", 9, 5, 6)
    assert tier.tiered_offsets_are_in_order("here", 5, 4, 0) is None
    assert tier.tiered_offsets_are_in_order("here", 5, 4, -1) is None
    assert tier.tiered_offsets_are_in_order("here", 5, 5, 0)
    assert tier.tiered_offsets_are_in_order("here", 9, 4, 5)
    assert tier.no_gap_behind_the_tier("here", 4, 5, 0) is None
    assert tier.no_gap_behind_the_tier("here", 4, 6, 0)
    assert tier.no_gap_behind_the_tier("here", 4, 6, 6) is None, "what was between is deleted"


def test_what_a_follower_knows_that_begins_behind_the_tier(leader: BatchLog) -> None:
    first, second, third = leader.all
    knows_epoch = tier.followers_know_the_epochs_of_the_tier
    assert knows_epoch("here", third, 1) is None
    assert knows_epoch("here", third, 0)
    assert knows_epoch("here", third, None)
    first.producer, second.producer = (7, 1), (8, 0)
    expected = {7: first, 8: second}
    knows = tier.followers_know_the_producers_of_the_tier
    assert knows("here", {7: (1, 1), 8: (0, 3)}, expected, 0) is None
    assert knows("here", {8: (0, 3)}, expected, 0)
    assert knows("here", {8: (0, 3)}, expected, 2) is None, "what the other wrote is deleted"
    assert knows("here", {7: (0, 1), 8: (0, 3)}, expected, 2) is None, "nor need it be right"
    assert knows("here", {7: (0, 2), 8: (0, 3)}, expected, 2)
    assert knows("here", {8: (0, 3), 9: (0, 1)}, expected, 2) is None
    assert knows("here", {7: (1, 1), 8: (0, 1)}, expected, 0)
    assert knows("here", {7: (1, 1), 8: (0, 3), 9: (0, 3)}, expected, 0)


def test_how_it_ends(leader: BatchLog, other: BatchLog) -> None:
    healed = must.healed_partitions_converge
    whole = partition(isr=(1, 2, 3))
    same = dict.fromkeys((1, 2, 3), (leader, 6, 6))
    assert healed(0, whole, same) is None
    assert healed(0, partition(), same)
    assert healed(0, partition(leader=-1, isr=()), same)
    assert healed(0, whole, same | {2: (other, 6, 6)})
    assert healed(0, whole, same | {2: (leader, 6, 5)})
    gone = {1: (BatchLog(6), 6, 6)}
    assert healed(0, whole, same | gone)
    assert healed(0, whole, same | gone, is_tiered=True) is None
    assert healed(0, whole, same | {2: (other, 6, 6)}, is_tiered=True)
    assert must.healed_partitions_take_records(0, None) is None
    assert must.healed_partitions_take_records(0, "NOT_ENOUGH_REPLICAS")
    assert must.messages_come_to_an_end(3, 3) is None
    assert must.messages_come_to_an_end(4, 3)
    assert must.logs_are_as_they_were_watched("here", [1], [1]) is None
    assert must.logs_are_as_they_were_watched("here", [1], [2])
    assert must.nothing_fails("ValueError: no") == "ValueError: no"


def test_the_documentation_names_them_all() -> None:
    text = (Path(__file__).parents[2] / "docs" / "simulation.md").read_text()
    rows = re.findall(r"^\| ([a-z_]+) \|", text, flags=re.MULTILINE)
    assert sorted(rows) == sorted(
        ["action", "exception", *["name"] * 4, *(i.__name__ for i in INVARIANTS)]
    )
