"""SyncGroup, Heartbeat and LeaveGroup, in each state of the group."""

from __future__ import annotations

import pytest

from fencepost.broker.groups.classic_group import ClassicGroupState
from fencepost.protocol.errors import ErrorCode
from tests.broker.groups.workbench import SESSION_MS, Workbench, result_of

NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
GENERATION = ErrorCode.ILLEGAL_GENERATION
REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS


def bench_in(state: ClassicGroupState) -> tuple[Workbench, str]:
    """A group whose leader is in generation 1, in a state."""
    bench = Workbench()
    leader = result_of(bench.join()).member_id
    bench.join(leader)
    if state is ClassicGroupState.COMPLETING_REBALANCE:
        return bench, leader
    bench.sync(leader, 1, {leader: b"A"})
    if state is ClassicGroupState.PREPARING_REBALANCE:
        bench.enter()
    if state is ClassicGroupState.EMPTY:
        bench.leave((leader, None))
    assert bench.group().state is state
    return bench, leader


ANSWERS_BY_STATE = pytest.mark.parametrize(
    ("state", "known", "old", "stranger"),
    [
        (ClassicGroupState.EMPTY, UNKNOWN, UNKNOWN, UNKNOWN),
        (ClassicGroupState.PREPARING_REBALANCE, REBALANCE, GENERATION, UNKNOWN),
        (ClassicGroupState.COMPLETING_REBALANCE, NONE, GENERATION, UNKNOWN),
        (ClassicGroupState.STABLE, NONE, GENERATION, UNKNOWN),
    ],
)
"""The answers to a member of this generation, of an older one, and to a stranger."""


@ANSWERS_BY_STATE
def test_heartbeats(
    state: ClassicGroupState, known: ErrorCode, old: ErrorCode, stranger: ErrorCode
) -> None:
    bench, leader = bench_in(state)
    assert bench.heartbeat(leader, 1) is known
    assert bench.heartbeat(leader, 0) is old
    assert bench.heartbeat("stranger", 1) is stranger
    assert bench.heartbeat(leader, 1, instance="none") is UNKNOWN


def test_heartbeats_of_no_group() -> None:
    assert Workbench().heartbeat("x", 1) is UNKNOWN


@ANSWERS_BY_STATE
def test_syncs(
    state: ClassicGroupState, known: ErrorCode, old: ErrorCode, stranger: ErrorCode
) -> None:
    bench, leader = bench_in(state)
    assert result_of(bench.sync(leader, 0)).error_code == old
    assert result_of(bench.sync("stranger", 1)).error_code == stranger
    assert result_of(bench.sync(leader, 1, {leader: b"A"})).error_code == known


@pytest.mark.parametrize(
    ("name", "kind", "error"),
    [
        ("range", "consumer", NONE),
        (None, None, NONE),
        ("range", None, NONE),
        ("rr", "consumer", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("range", "connect", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_syncs_with_a_protocol(name: str | None, kind: str | None, error: ErrorCode) -> None:
    bench, leader = bench_in(ClassicGroupState.STABLE)
    answer = result_of(bench.sync(leader, 1, protocol_name=name, protocol_type=kind))
    assert answer.error_code == error
    assert answer.protocol_name == ("range" if error is NONE else None)


def test_followers_wait_for_the_leader_and_get_their_assignment() -> None:
    bench = Workbench()
    leader, follower = bench.stable(2)
    bench.join(leader)
    bench.join(follower)
    parked = bench.sync(follower, 3)
    assert not parked.done
    parts = {leader: b"L", follower: b"F", "stranger": b"?"}
    assert result_of(bench.sync(leader, 3, parts)).assignment == b"L"
    assert result_of(parked).assignment == b"F"


def test_a_client_that_asks_again_has_given_up_on_its_first_request() -> None:
    bench = Workbench()
    leader, follower = bench.stable(2)
    first, second = bench.join(leader), bench.join(leader)
    assert (result_of(first).error_code, result_of(first).member_id) == (REBALANCE, leader)
    assert not second.done
    bench.join(follower)
    assert result_of(second).generation_id == 3
    parked = [bench.sync(follower, 3), bench.sync(follower, 3)]
    assert result_of(parked[0]).error_code == REBALANCE
    bench.sync(leader, 3, {follower: b"F"})
    assert result_of(parked[1]).assignment == b"F"


def test_a_member_that_waited_for_the_leader_gets_a_whole_session() -> None:
    bench = Workbench()
    leader, follower = bench.stable(2)
    bench.join(leader)
    bench.join(follower)
    bench.sync(follower, 3)
    bench.advance(SESSION_MS - 1)
    bench.sync(leader, 3, {})
    bench.advance(SESSION_MS - 1)
    assert bench.group().members.keys() == {leader, follower}
    bench.advance(1)
    assert bench.group().members == {}


def test_a_member_that_the_leader_leaves_out_has_an_empty_assignment() -> None:
    bench = Workbench()
    leader, follower = bench.stable(2)
    bench.join(leader)
    bench.join(follower)
    parked = bench.sync(follower, 3)
    bench.sync(leader, 3, {leader: b"L"})
    assert result_of(parked).assignment == b""


def test_a_disconnected_client_leaves_its_member_in_the_group() -> None:
    bench = Workbench()
    (leader,) = bench.stable()
    follower, waiting = bench.enter()
    waiting.cancel()
    answer = result_of(bench.join(leader))
    assert {one.member_id for one in answer.members} == {leader, follower}


def test_leaving_empties_the_group() -> None:
    bench, leader = bench_in(ClassicGroupState.STABLE)
    (left,) = bench.leave((leader, None))
    assert left.error_code == NONE
    assert bench.group().state is ClassicGroupState.EMPTY


def test_leaving_is_a_rebalance_for_the_others() -> None:
    bench = Workbench()
    leader, follower = bench.stable(2)
    bench.leave((leader, None))
    assert bench.group().leader_id == follower
    assert bench.heartbeat(follower, 2) is REBALANCE


def test_a_leave_completes_the_join_that_waited_for_the_member() -> None:
    bench = Workbench()
    leader, follower = bench.stable(2)
    waiting = bench.join(leader)
    assert not waiting.done
    bench.leave((follower, None))
    assert result_of(waiting).generation_id == 3


def test_a_member_that_leaves_gets_an_answer_to_its_parked_request() -> None:
    bench = Workbench()
    leader, _ = bench.stable(2)
    waiting = bench.join(leader)
    bench.leave((leader, None))
    assert result_of(waiting).error_code == UNKNOWN


def test_each_of_many_has_its_own_error() -> None:
    bench = Workbench()
    first = result_of(bench.join(instance="a")).member_id
    bench.sync(first, 1, {}, instance="a")
    assigned = result_of(bench.join()).member_id
    left = bench.leave(
        ("stranger", None),
        ("", None),
        ("", "unused"),
        (assigned, None),
        ("old", "a"),
        ("", "a"),
        (first, "a"),
    )
    codes = [one.error_code for one in left]
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert codes == [UNKNOWN, UNKNOWN, UNKNOWN, NONE, fenced, NONE, UNKNOWN]
    assert left[5].group_instance_id == "a"
    assert bench.group().state is ClassicGroupState.EMPTY


def test_no_member_can_leave_a_group_that_does_not_exist() -> None:
    (left,) = Workbench().leave(("x", "i"))
    assert (left.member_id, left.group_instance_id, left.error_code) == ("x", "i", UNKNOWN)


def test_an_unknown_member_that_leaves_causes_no_rebalance() -> None:
    bench, leader = bench_in(ClassicGroupState.STABLE)
    bench.leave(("stranger", None))
    assert bench.heartbeat(leader, 1) is NONE
