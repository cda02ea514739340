"""Rebalances that timers cause."""

from __future__ import annotations

from fencepost.broker.groups.classic_group import ClassicGroupState
from fencepost.protocol.errors import ErrorCode
from tests.broker.groups.workbench import NOW_MS, REBALANCE_MS, SESSION_MS, Workbench, result_of

MANY = 10 * SESSION_MS


def test_a_silent_member_is_dropped_after_its_session_timeout() -> None:
    bench = Workbench()
    bench.stable()
    bench.advance(SESSION_MS - 1)
    assert bench.group().state is ClassicGroupState.STABLE
    bench.advance(1)
    assert bench.group().state is ClassicGroupState.EMPTY
    assert bench.group().generation == 2


def test_heartbeats_keep_a_member() -> None:
    bench = Workbench()
    (member,) = bench.stable()
    for _ in range(5):
        bench.advance(SESSION_MS - 1)
        assert bench.heartbeat(member, 1) is ErrorCode.NONE


def test_commits_keep_a_member() -> None:
    bench = Workbench()
    (member,) = bench.stable()
    for _ in range(5):
        bench.advance(SESSION_MS - 1)
        assert bench.commit(generation=1, member_id=member) == (ErrorCode.NONE,)


def test_the_others_rebalance_without_the_silent_one() -> None:
    bench = Workbench()
    alive, silent = bench.stable(2)
    bench.advance(SESSION_MS - 1)
    bench.heartbeat(alive, 2)
    bench.advance(1)
    assert bench.heartbeat(alive, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert silent not in bench.group().members
    assert result_of(bench.join(alive)).generation_id == 3


def test_a_member_that_waits_for_the_others_need_not_heartbeat() -> None:
    bench = Workbench()
    bench.stable(2, session_ms=MANY)
    leader, follower = bench.group().members
    waiting = bench.join(leader, session_ms=SESSION_MS)
    for _ in range(2):
        bench.advance(SESSION_MS)
        assert not waiting.done
        assert bench.heartbeat(follower, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    bench.join(follower, session_ms=MANY)
    assert result_of(waiting).generation_id == 3
    bench.advance(SESSION_MS)
    assert leader not in bench.group().members, "its session runs again"


def test_a_member_that_does_not_join_within_the_rebalance_timeout_is_removed() -> None:
    bench = Workbench()
    leader, missing = bench.stable(2, session_ms=2 * REBALANCE_MS)
    waiting = bench.join(leader, session_ms=2 * REBALANCE_MS)
    bench.advance(REBALANCE_MS - 1)
    assert not waiting.done
    bench.advance(1)
    assert [one.member_id for one in result_of(waiting).members] == [leader]
    assert missing not in bench.group().members


def test_time_for_syncs_ends_with_the_generation() -> None:
    bench = Workbench()
    leader, follower = bench.stable(2, session_ms=MANY * 10)
    bench.join(leader, session_ms=MANY * 10)
    bench.join(follower, session_ms=MANY * 10)
    bench.advance(REBALANCE_MS // 2)
    _, parked = bench.enter(session_ms=MANY * 10)
    bench.advance(REBALANCE_MS // 2)
    assert bench.group().members.keys() >= {leader, follower}
    assert not parked.done
    bench.advance(REBALANCE_MS // 2)
    assert len(result_of(parked).members) == 1


def test_a_member_that_is_silent_in_a_rebalance_does_not_end_it_for_the_others() -> None:
    bench = Workbench()
    leader, follower, silent = bench.stable(3)
    waiting = bench.join(leader)
    bench.advance(SESSION_MS - 1)
    bench.heartbeat(follower, 2)
    bench.advance(1)
    assert silent not in bench.group().members
    assert not waiting.done
    bench.join(follower)
    assert result_of(waiting).generation_id == 3


def test_a_leader_that_does_not_rejoin_is_replaced_by_a_member_that_did() -> None:
    bench = Workbench()
    leader, follower = bench.stable(2, session_ms=2 * REBALANCE_MS)
    waiting = bench.join(follower, topics=("u",), session_ms=2 * REBALANCE_MS)
    bench.advance(REBALANCE_MS)
    assert result_of(waiting).leader == follower
    assert leader not in bench.group().members


def test_a_member_that_does_not_sync_within_the_rebalance_timeout_is_removed() -> None:
    bench = Workbench()
    leader, follower = bench.stable(2, session_ms=MANY * 10)
    waiting = bench.join(leader, session_ms=MANY * 10)
    bench.join(follower, session_ms=MANY * 10)
    assert result_of(waiting).generation_id == 3
    parked = bench.sync(follower, 3)
    bench.advance(REBALANCE_MS - 1)
    assert not parked.done
    bench.advance(1)
    assert result_of(parked).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert list(bench.group().members) == [follower]
    assert result_of(bench.join(follower)).generation_id == 4


def test_a_follower_that_never_syncs_is_dropped_from_a_stable_group() -> None:
    bench = Workbench()
    leader, follower = bench.stable(2, session_ms=MANY * 10)
    bench.join(leader, session_ms=MANY * 10)
    bench.join(follower, session_ms=MANY * 10)
    bench.sync(leader, 3, {})
    assert bench.group().state is ClassicGroupState.STABLE
    bench.advance(REBALANCE_MS)
    assert bench.group().state is ClassicGroupState.PREPARING_REBALANCE
    assert list(bench.group().members) == [leader]


def test_the_sync_timer_stops_when_all_members_have_synced() -> None:
    bench = Workbench()
    bench.stable(2, session_ms=MANY * 10)
    bench.advance(REBALANCE_MS)
    assert bench.group().state is ClassicGroupState.STABLE


def test_a_pending_member_delays_the_others_until_it_expires() -> None:
    bench = Workbench()
    (leader,) = bench.stable(session_ms=MANY)
    bench.join(session_ms=SESSION_MS)
    waiting = bench.join(leader, session_ms=MANY)
    assert not waiting.done
    bench.advance(SESSION_MS - 1)
    assert not waiting.done
    bench.advance(1)
    assert result_of(waiting).generation_id == 2


def test_a_new_member_during_the_sync_phase_begins_another_rebalance() -> None:
    bench = Workbench()
    leader, follower = bench.stable(2)
    waiting = bench.join(leader)
    bench.join(follower)
    assert result_of(waiting).generation_id == 3
    parked = bench.sync(follower, 3)
    bench.enter()
    assert result_of(parked).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert result_of(bench.sync(leader, 3)).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_static_members_that_do_not_join_stay_until_their_sessions_end() -> None:
    bench = Workbench()
    first = bench.join(instance="a", session_ms=2 * REBALANCE_MS, rebalance_ms=REBALANCE_MS)
    static = result_of(first).member_id
    bench.sync(static, 1, {}, instance="a")
    assigned = result_of(bench.join()).member_id
    bench.join(assigned)
    bench.leave((assigned, None))
    bench.advance(REBALANCE_MS)
    assert bench.group().state is ClassicGroupState.PREPARING_REBALANCE
    bench.advance(REBALANCE_MS)
    assert (bench.group().state, bench.group().generation) == (ClassicGroupState.EMPTY, 2)


def test_a_generation_may_begin_without_a_silent_static_member() -> None:
    bench = Workbench()
    first = bench.join(instance="a", session_ms=MANY * 10)
    static = result_of(first).member_id
    bench.sync(static, 1, {}, instance="a")
    assigned = result_of(bench.join()).member_id
    bench.join(assigned)
    bench.leave((assigned, None))
    bench.advance(REBALANCE_MS)
    _, parked = bench.enter()
    bench.advance(REBALANCE_MS - 1)
    assert not parked.done
    bench.advance(1)
    answer = result_of(parked)
    assert (answer.generation_id, answer.leader) == (2, answer.member_id)
    assert {member.member_id for member in answer.members} == {static, answer.member_id}


def test_an_empty_generation_is_stored() -> None:
    bench = Workbench()
    (member,) = bench.stable()
    bench.leave((member, None))
    stored = bench.shard.latest.groups["g"]
    assert (stored.generation, stored.protocol_type, stored.protocol) == (2, "consumer", None)
    assert (stored.leader, stored.members) == (None, ())


def test_an_assignment_that_cannot_be_stored_begins_another_rebalance() -> None:
    bench = Workbench()
    leader, follower = bench.stable(2)
    bench.join(leader)
    bench.join(follower)
    parked = bench.sync(follower, 3)
    bench.log.refusal = ErrorCode.MESSAGE_TOO_LARGE
    assert result_of(bench.sync(leader, 3, {})).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert result_of(parked).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert bench.group().state is ClassicGroupState.PREPARING_REBALANCE


def test_a_generation_does_not_inherit_the_assignment_of_the_last_one() -> None:
    bench = Workbench()
    leader, _ = bench.stable(2)
    for member in list(bench.group().members):
        bench.join(member)
    assert bench.group().state is ClassicGroupState.COMPLETING_REBALANCE
    assert bench.group().members[leader].assignment == leader.encode()
    bench.enter()
    assert bench.group().members[leader].assignment == b""


def test_an_assignment_is_answered_when_it_is_committed() -> None:
    bench = Workbench()
    assigned = result_of(bench.join()).member_id
    bench.join(assigned)
    bench.log.held = True
    parked = bench.sync(assigned, 1, {assigned: b"A"})
    assert not parked.done
    assert bench.group().state is ClassicGroupState.COMPLETING_REBALANCE
    bench.log.commit()
    assert result_of(parked).assignment == b"A"
    assert bench.group().state is ClassicGroupState.STABLE


def test_an_assignment_of_a_generation_that_is_over_is_ignored() -> None:
    bench = Workbench()
    assigned = result_of(bench.join(rebalance_ms=1000)).member_id
    bench.join(assigned, rebalance_ms=1000)
    bench.log.held = True
    parked = bench.sync(assigned, 1, {assigned: b"A"})
    bench.join(assigned, topics=("u",), rebalance_ms=1000)
    assert result_of(parked).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    bench.log.commit()
    assert bench.group().state is ClassicGroupState.COMPLETING_REBALANCE
    assert bench.group().generation == 2
    assert bench.group().members[assigned].assignment == b""


def test_no_timer_outlives_a_group() -> None:
    bench = Workbench()
    members = bench.stable(3)
    bench.join()
    bench.leave(*((member, None) for member in members))
    bench.advance(REBALANCE_MS + SESSION_MS)
    assert bench.group().state is ClassicGroupState.EMPTY
    assert (
        bench.scheduler.next_deadline_ms()
        == NOW_MS + bench.config.offsets_retention_check_interval_ms
    )
