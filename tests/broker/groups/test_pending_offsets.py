"""Offsets that transactions commit: pending until a marker, seen as unstable, kept, deleted."""

from __future__ import annotations

import pytest

from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import requests
from fencepost.broker.groups.classic_group import ClassicGroupState
from fencepost.broker.groups.group_config import GroupConfig
from fencepost.broker.groups.offsets import is_unstable
from fencepost.broker.groups.pending_offsets import OffsetKey, PendingOffsets
from fencepost.broker.groups.records import CommittedOffset, ReplayedState
from fencepost.protocol.errors import ErrorCode
from tests.broker.groups.workbench import MARKER_TIMEOUT_MS, NOW_MS, Workbench

NONE = ErrorCode.NONE
GENERATION = ErrorCode.ILLEGAL_GENERATION
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID


def committed(bench: Workbench, topic: str = "t") -> int | None:
    offset = bench.shard.committed.offset("g", topic, 0)
    return None if offset is None else offset.offset


def unstable(bench: Workbench, topic: str = "t") -> bool:
    return is_unstable(bench.shard.latest, "g", topic, 0)


# -- the end of a transaction ---------------------------------------------------------------------


def test_a_committed_transaction_makes_its_offsets_the_groups() -> None:
    bench = Workbench()
    bench.commit(1)
    assert bench.commit_in_transaction(5, epoch=3, metadata=None) == (NONE,)
    assert (committed(bench), unstable(bench)) == (1, True)
    assert bench.end_transaction(committed=True) == [NONE]
    assert bench.shard.committed.offset("g", "t", 0) == CommittedOffset(
        offset=5, leader_epoch=3, commit_timestamp_ms=NOW_MS
    )
    assert not unstable(bench)


def test_an_aborted_transaction_drops_its_offsets() -> None:
    bench = Workbench()
    bench.commit(1)
    bench.commit_in_transaction(5)
    assert bench.end_transaction(committed=False) == [NONE]
    assert (committed(bench), unstable(bench)) == (1, False)


def test_a_marker_ends_the_transaction_of_its_producer_alone() -> None:
    bench = Workbench()
    bench.commit_in_transaction(5, producer=7)
    bench.commit_in_transaction(6, producer=8)
    bench.end_transaction(committed=True, producer=9)
    bench.end_transaction(committed=True, producer=7)
    assert (committed(bench), unstable(bench)) == (5, True)
    bench.end_transaction(committed=False, producer=8)
    assert (committed(bench), unstable(bench)) == (5, False)


def test_the_last_offset_of_a_transaction_counts() -> None:
    bench = Workbench()
    bench.commit_in_transaction(5)
    bench.commit_in_transaction(4)
    bench.end_transaction(committed=True)
    assert committed(bench) == 4


def test_an_offset_that_was_committed_later_outside_stays() -> None:
    bench = Workbench()
    bench.commit_in_transaction(5)
    bench.commit(9)
    assert unstable(bench)
    bench.end_transaction(committed=True)
    assert committed(bench) == 9
    assert bench.after_failover().shard.latest == bench.shard.latest


def test_of_two_transactions_the_one_that_committed_its_offset_last_counts() -> None:
    bench = Workbench()
    bench.commit_in_transaction(5, producer=7)
    bench.commit_in_transaction(6, producer=8)
    bench.end_transaction(committed=True, producer=8)
    bench.end_transaction(committed=True, producer=7)
    assert committed(bench) == 6


def test_a_marker_counts_when_it_is_replicated() -> None:
    bench = Workbench()
    bench.commit_in_transaction(5)
    bench.log.held = True
    answers = bench.end_transaction(committed=True)
    assert (answers, committed(bench), unstable(bench)) == ([], None, False)
    bench.log.commit()
    assert (answers, committed(bench)) == ([NONE], 5)


def test_a_marker_that_is_not_replicated_in_time_is_an_error_and_may_be_later() -> None:
    bench = Workbench()
    bench.commit_in_transaction(5)
    bench.log.held = True
    answers = bench.end_transaction(committed=True)
    bench.advance(MARKER_TIMEOUT_MS - 1)
    assert answers == []
    bench.advance(1)
    assert answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    bench.log.commit()
    assert committed(bench) == 5


def test_a_refused_marker_changes_nothing() -> None:
    bench = Workbench()
    bench.commit_in_transaction(5)
    bench.log.refusal = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert bench.end_transaction(committed=True) == [ErrorCode.TRANSACTION_COORDINATOR_FENCED]
    assert (committed(bench), unstable(bench)) == (None, True)
    bench.shard.close()
    assert bench.end_transaction(committed=True) == [ErrorCode.NOT_COORDINATOR]


@pytest.mark.parametrize("was_committed", [True, False])
def test_the_next_coordinator_has_the_same_pending_offsets(was_committed: bool) -> None:
    bench = Workbench()
    bench.commit_in_transaction(5, producer=7)
    bench.commit_in_transaction(6, producer=8, topic="u")
    bench.end_transaction(committed=was_committed, producer=8)
    loaded = bench.after_failover()
    assert loaded.shard.latest == loaded.shard.committed == bench.shard.latest
    assert (committed(loaded), unstable(loaded)) == (None, True)
    assert (committed(loaded, "u"), unstable(loaded, "u")) == (6 if was_committed else None, False)
    loaded.end_transaction(committed=True)
    assert committed(loaded) == 5


def test_a_transaction_whose_commit_was_not_replicated_at_the_election_goes_on() -> None:
    bench = Workbench()
    bench.log.held = True
    bench.commit_in_transaction(5)
    bench.end_transaction(committed=True)
    loaded = Workbench(log=bench.log)
    assert loaded.shard.committed == ReplayedState()
    bench.log.commit()
    assert committed(loaded) == 5


# -- who may commit (KIP-447) ---------------------------------------------------------------------


@pytest.mark.parametrize("state", [each for each in ClassicGroupState if each.value != "Dead"])
def test_a_transaction_may_commit_in_any_state(state: ClassicGroupState) -> None:
    bench = Workbench()
    (leader,) = bench.stable()
    if state is ClassicGroupState.EMPTY:
        bench.leave((leader, None))
    bench.group().state = state
    of_member = UNKNOWN if state is ClassicGroupState.EMPTY else NONE
    old = UNKNOWN if state is ClassicGroupState.EMPTY else GENERATION
    without_generation = NONE if state is ClassicGroupState.EMPTY else GENERATION
    commit = bench.commit_in_transaction
    assert commit(generation=1, member_id=leader) == (of_member,)
    assert commit(generation=0, member_id=leader) == (old,)
    assert commit(generation=1, member_id="stranger") == (UNKNOWN,)
    assert commit(generation=1) == (UNKNOWN,)
    assert commit(member_id=leader) == (without_generation,)
    assert commit() == (NONE,), "as of a producer before v3"


def test_a_transaction_may_commit_for_a_group_that_does_not_exist() -> None:
    bench = Workbench()
    assert bench.commit_in_transaction(generation=0, member_id="m") == (GENERATION,)
    assert bench.shard.find("g") is None
    assert bench.commit_in_transaction() == (NONE,)
    assert bench.group().state is ClassicGroupState.EMPTY


def test_a_fenced_static_member_commits_nothing() -> None:
    bench = Workbench()
    bench.join(instance="i")
    (member,) = bench.group().members
    commit = bench.commit_in_transaction
    assert commit(generation=1, member_id=member, instance="i") == (NONE,)
    assert commit(generation=1, member_id="old", instance="i") == (ErrorCode.FENCED_INSTANCE_ID,)
    assert commit(generation=1, member_id=member, instance="j") == (UNKNOWN,)


def test_metadata_is_limited_in_a_transaction_too() -> None:
    bench = Workbench(GroupConfig(offset_metadata_max_bytes=2))
    too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert bench.commit_in_transaction(metadata="xyz") == (too_large,)
    assert bench.shard.latest == ReplayedState()


def test_a_transactions_offset_does_not_restart_the_members_session() -> None:
    bench = Workbench()
    (member,) = bench.stable(session_ms=10_000)
    bench.advance(9_999)
    assert bench.commit_in_transaction(generation=1, member_id=member) == (NONE,)
    bench.advance(1)
    assert bench.group().state is ClassicGroupState.EMPTY


# -- deletion -------------------------------------------------------------------------------------


def test_a_pending_offset_is_deleted_with_the_committed_one() -> None:
    bench = Workbench()
    bench.commit(1)
    bench.commit_in_transaction(5)
    bench.commit_in_transaction(6, topic="u")
    before = len(bench.log.records)
    deleted = requests.delete_offsets(bench.shard, "g", {"t": (0,), "u": (0, 1)})
    assert deleted == (NONE, {"t": NONE, "u": NONE})
    assert len(bench.log.records) == before + 2, "tombstones only of what there was"
    bench.end_transaction(committed=True)
    assert (committed(bench), committed(bench, "u")) == (None, None)


def test_a_deleted_groups_pending_offsets_do_not_come_back() -> None:
    bench = Workbench()
    bench.commit(1)
    bench.commit_in_transaction(5)
    bench.commit_in_transaction(6, topic="u")
    assert requests.delete_groups(bench.shard, ["g"]) == (NONE,)
    assert bench.shard.latest == ReplayedState()
    bench.end_transaction(committed=True)
    assert bench.shard.latest == ReplayedState()


def test_a_deleted_topics_pending_offsets_do_not_come_back() -> None:
    bench = Workbench()
    bench.commit_in_transaction(5)
    bench.commit_in_transaction(6, topic="u")
    bench.shard.on_topics_deleted(frozenset({"t"}))
    bench.end_transaction(committed=True)
    assert (committed(bench), committed(bench, "u")) == (None, 6)


# -- expiry ---------------------------------------------------------------------------------------

SHORT = GroupConfig(
    initial_rebalance_delay_ms=0,
    offsets_retention_ms=60_000,
    offsets_retention_check_interval_ms=60_000,
)


def test_an_offset_does_not_expire_while_a_transaction_has_another_for_its_partition() -> None:
    bench = Workbench(SHORT)
    bench.commit(1)
    bench.commit(1, topic="u")
    bench.commit_in_transaction(5)
    bench.advance(60_000)
    assert (committed(bench), committed(bench, "u")) == (1, None)
    bench.end_transaction(committed=False)
    bench.advance(60_000)
    assert bench.shard.latest == ReplayedState()


def test_a_group_with_nothing_but_pending_offsets_is_kept() -> None:
    bench = Workbench(SHORT)
    bench.commit_in_transaction(5)
    bench.advance(300_000)
    assert bench.shard.find("g") is not None
    bench.end_transaction(committed=False)
    bench.advance(60_000)
    assert bench.shard.find("g") is None


# -- the store ------------------------------------------------------------------------------------


def test_the_store_keeps_nothing_of_what_has_ended() -> None:
    store: PendingOffsets[int] = PendingOffsets()
    one, other = OffsetKey("g", "t", 0), OffsetKey("g", "t", 1)
    store.add(7, one, 1)
    store.add(7, other, 2)
    store.add(8, one, 3)
    assert set(store.of_group("g")) == {one, other}
    assert store.producers_of("g") == {7, 8}
    assert store.end(7) == {one: 1, other: 2}
    assert (store.has(one), store.has(other)) == (True, False)
    store.discard(one)
    assert store == PendingOffsets()
    assert store.end(8) == {}
    assert store.producers_of("g") == frozenset()


def test_a_stable_read_waits_for_the_offsets_of_a_transaction() -> None:
    bench = Workbench()
    bench.log.held = True
    bench.commit_in_transaction(5)
    read = requests.read_offsets(bench.shard, stable=True)
    assert isinstance(read, Wait)
    bench.log.commit()
    assert read.result is not None
    assert is_unstable(read.result.state, "g", "t", 0)
