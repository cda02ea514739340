"""JoinGroup: which members may join, and which rebalances follow."""

from __future__ import annotations

import re

import pytest

from fencepost.broker.groups.classic_group import ClassicGroupState
from fencepost.broker.groups.group_config import NEW_MEMBER_JOIN_TIMEOUT_MS, GroupConfig
from fencepost.protocol.errors import ErrorCode
from tests.broker.groups.workbench import NOW_MS, SESSION_MS, Workbench, result_of

REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def test_member_ids_begin_with_the_client_id_or_the_instance_id() -> None:
    bench = Workbench()
    dynamic = result_of(bench.join(group="d", client_id="me")).member_id
    assert re.fullmatch(f"me-{UUID}", dynamic)
    static = result_of(bench.join(group="s", client_id="me", instance="one")).member_id
    assert re.fullmatch(f"one-{UUID}", static)


def test_a_seed_gives_the_same_ids_again() -> None:
    ids = [result_of(Workbench(seed=seed).join()).member_id for seed in (5, 5, 6)]
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(("version", "required"), [(3, False), (4, True)])
def test_a_new_member_gets_its_id_first_from_version_4(version: int, required: bool) -> None:
    answer = result_of(Workbench().join(version=version))
    assert (answer.error_code == ErrorCode.MEMBER_ID_REQUIRED) is required
    assert answer.generation_id == (-1 if required else 1)


def test_the_first_attempt_makes_the_group_and_its_record() -> None:
    bench = Workbench()
    bench.join()
    assert bench.shard.latest.groups["g"].state_timestamp_ms == NOW_MS
    assert bench.group().state is ClassicGroupState.EMPTY
    assert len(bench.log.records) == 1


def test_a_group_that_cannot_be_stored_does_not_exist() -> None:
    bench = Workbench()
    bench.log.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    parked = bench.join(version=3)
    assert result_of(parked).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.shard.find("g") is None
    assert bench.scheduler.next_deadline_ms() == NOW_MS + 600_000, "timers are left behind"


def test_an_assigned_member_id_expires_after_the_session_timeout() -> None:
    bench = Workbench()
    member_id = result_of(bench.join()).member_id
    bench.advance(SESSION_MS - 1)
    assert member_id in bench.group().pending_joins
    bench.advance(1)
    assert result_of(bench.join(member_id)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_initial_delay_is_extended_while_members_come() -> None:
    bench = Workbench(GroupConfig(initial_rebalance_delay_ms=3000))
    _, first = bench.enter(rebalance_ms=10_000)
    bench.advance(2999)
    _, second = bench.enter(rebalance_ms=10_000)
    bench.advance(1)
    assert not first.done
    bench.advance(2999)
    assert not first.done
    bench.advance(1)
    assert result_of(first).generation_id == result_of(second).generation_id == 1
    assert len(result_of(first).members) == 2
    assert result_of(second).members == ()


def test_the_initial_delay_ends_with_the_rebalance_timeout() -> None:
    bench = Workbench(GroupConfig(initial_rebalance_delay_ms=3000))
    answers = [bench.enter(rebalance_ms=7000)[1]]
    for _ in range(6):
        bench.advance(1000)
        answers.append(bench.enter(rebalance_ms=7000)[1])
    assert not any(answer.done for answer in answers)
    bench.advance(1000)
    assert all(answer.done for answer in answers)
    assert len(result_of(answers[0]).members) == 7


def test_one_member_waits_out_the_initial_delay_once() -> None:
    bench = Workbench(GroupConfig(initial_rebalance_delay_ms=3000))
    _, answer = bench.enter()
    bench.advance(2999)
    assert not answer.done
    bench.advance(1)
    assert result_of(answer).generation_id == 1


def test_a_new_member_without_a_response_is_removed_after_five_minutes() -> None:
    bench = Workbench(GroupConfig(initial_rebalance_delay_ms=NEW_MEMBER_JOIN_TIMEOUT_MS * 2))
    _, answer = bench.enter(rebalance_ms=NEW_MEMBER_JOIN_TIMEOUT_MS * 4)
    bench.advance(NEW_MEMBER_JOIN_TIMEOUT_MS - 1)
    assert not answer.done
    bench.advance(1)
    assert result_of(answer).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_second_member_makes_the_first_join_again() -> None:
    bench = Workbench()
    (first,) = bench.stable()
    second, parked = bench.enter()
    assert bench.group().state is ClassicGroupState.PREPARING_REBALANCE
    assert not parked.done
    leader = result_of(bench.join(first))
    assert (leader.generation_id, leader.leader, len(leader.members)) == (2, first, 2)
    assert result_of(parked).member_id == second
    assert bench.group().state is ClassicGroupState.COMPLETING_REBALANCE


def test_new_members_extend_only_the_initial_delay() -> None:
    bench = Workbench()
    bench.stable()
    bench.enter()
    bench.enter()
    assert not bench.group().new_member_added


def test_the_leaders_join_is_a_rebalance_and_a_followers_is_not() -> None:
    bench = Workbench()
    leader, follower = bench.stable(2)
    assert result_of(bench.join(follower)).generation_id == 2
    assert bench.group().state is ClassicGroupState.STABLE
    assert not bench.join(leader).done
    assert bench.group().state is ClassicGroupState.PREPARING_REBALANCE


def test_a_follower_with_another_subscription_is_a_rebalance() -> None:
    bench = Workbench()
    _, follower = bench.stable(2)
    assert not bench.join(follower, topics=("u",)).done
    assert bench.group().state is ClassicGroupState.PREPARING_REBALANCE


def test_the_reason_is_kept() -> None:
    bench = Workbench()
    (leader,) = bench.stable()
    bench.join(leader, reason="topics changed")
    assert bench.group().rebalance_reason.endswith("client reason: topics changed")


def test_members_may_offer_a_protocol_twice() -> None:
    bench = Workbench()
    answer = result_of(bench.join(version=3, protocols=("range", "range")))
    assert (answer.error_code, answer.protocol_name) == (ErrorCode.NONE, "range")


def test_a_protocol_that_no_other_member_has_is_refused() -> None:
    bench = Workbench()
    bench.stable(protocols=("range", "rr"))
    assert (
        result_of(bench.join(protocols=("x",))).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )
    odd = result_of(bench.join(protocol_type="connect"))
    assert odd.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


# -- group.max.size --------------------------------------------------------------------------------


def test_a_stable_group_has_no_room_above_its_size() -> None:
    bench = Workbench(GroupConfig(initial_rebalance_delay_ms=0, max_size=1))
    (leader,) = bench.stable()
    refused = result_of(bench.join())
    assert (refused.error_code, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert result_of(bench.join(leader)).generation_id == 2


def test_in_a_rebalance_the_parked_members_count() -> None:
    bench = Workbench(GroupConfig(initial_rebalance_delay_ms=0, max_size=2))
    first, second = bench.stable(2)
    third = bench.join(first)
    assert not third.done
    bench.join(second)
    assert bench.group().generation == 3
    smaller = bench.after_failover(GroupConfig(initial_rebalance_delay_ms=0, max_size=1))
    assert smaller.group().state is ClassicGroupState.PREPARING_REBALANCE, "it is too large by now"
    assert not smaller.join(second).done
    assert result_of(smaller.join(first)).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_member_that_waits_already_may_ask_again() -> None:
    bench = Workbench(GroupConfig(initial_rebalance_delay_ms=0, max_size=2))
    _, second = bench.stable(2)
    bench.join(second, topics=("u",))
    assert not bench.join(second, topics=("v",)).done


def test_a_pending_member_above_the_size_is_not_waited_for() -> None:
    bench = Workbench(GroupConfig(initial_rebalance_delay_ms=0, max_size=2))
    leader, follower = bench.stable(2, session_ms=100_000)
    bench.leave((follower, None))
    assigned = result_of(bench.join(session_ms=100_000)).member_id
    bench.enter(session_ms=100_000)
    waiting = bench.join(leader, session_ms=100_000)
    assert not waiting.done
    assert result_of(bench.join(assigned)).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert assigned not in bench.group().pending_joins


# -- static members --------------------------------------------------------------------------------


def stable_static(bench: Workbench, *instances: str) -> list[str]:
    answers = [bench.join(instance=instance) for instance in instances]
    if len(answers) > 1:
        answers[0] = bench.join(result_of(answers[0]).member_id, instance=instances[0])
    ids = [result_of(answer).member_id for answer in answers]
    generation = result_of(answers[0]).generation_id
    for member_id, instance in list(zip(ids, instances, strict=True))[1:]:
        bench.sync(member_id, generation, instance=instance)
    parts = {member_id: member_id.encode() for member_id in ids}
    assert result_of(bench.sync(ids[0], generation, parts, instance=instances[0])).error_code == 0
    return ids


@pytest.mark.parametrize(("version", "skips", "leads"), [(9, True, True), (8, False, False)])
def test_a_static_leader_comes_back_without_a_rebalance(
    version: int, skips: bool, leads: bool
) -> None:
    bench = Workbench()
    old, follower = stable_static(bench, "a", "b")
    answer = result_of(bench.join(instance="a", version=version))
    assert (answer.generation_id, answer.skip_assignment) == (2, skips)
    assert answer.member_id not in {old, follower}
    assert answer.leader == (answer.member_id if leads else old)
    assert len(answer.members) == (2 if leads else 0)
    group = bench.group()
    assert (group.state, group.leader_id) == (ClassicGroupState.STABLE, answer.member_id)
    assert result_of(bench.sync(answer.member_id, 2, instance="a")).assignment == old.encode()


def test_a_static_follower_comes_back_without_a_rebalance() -> None:
    bench = Workbench()
    leader, old = stable_static(bench, "a", "b")
    answer = result_of(bench.join(instance="b"))
    assert (answer.generation_id, answer.skip_assignment, answer.leader) == (2, False, leader)
    assert bench.heartbeat(old, 2, instance="b") is ErrorCode.FENCED_INSTANCE_ID
    assert bench.heartbeat(old, 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.heartbeat(answer.member_id, 2, instance="b") is ErrorCode.NONE


def test_the_replaced_members_record_is_written() -> None:
    bench = Workbench()
    stable_static(bench, "a")
    new = result_of(bench.join(instance="a")).member_id
    assert bench.after_failover().heartbeat(new, 1, instance="a") is ErrorCode.NONE


def test_a_static_member_that_changes_the_vote_is_a_rebalance() -> None:
    bench = Workbench()
    first = result_of(bench.join(instance="a", protocols=("range", "rr"))).member_id
    bench.sync(first, 1, {}, instance="a")
    answer = result_of(bench.join(instance="a", protocols=("rr",)))
    assert (answer.generation_id, answer.protocol_name) == (2, "rr")


def test_a_static_member_that_comes_back_while_the_leader_assigns_is_a_rebalance() -> None:
    bench = Workbench()
    leader, _ = stable_static(bench, "a", "b")
    bench.join(leader, instance="a")
    bench.join(instance="b")
    assert bench.group().state is ClassicGroupState.COMPLETING_REBALANCE
    assert bench.group().generation == 3
    assert not bench.join(instance="b").done
    assert result_of(bench.sync(leader, 3, {}, instance="a")).error_code == REBALANCE


def test_a_static_member_replaced_while_it_waits_is_fenced() -> None:
    bench = Workbench()
    stable_static(bench, "a", "b")
    waiting = bench.join(instance="c")
    again = bench.join(instance="c")
    fenced = result_of(waiting)
    assert fenced.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert not again.done


def test_a_static_member_replaced_before_it_has_synced_has_to_sync() -> None:
    bench = Workbench()
    leader, follower = stable_static(bench, "a", "b")
    bench.join(leader, instance="a")
    bench.join(follower, instance="b")
    bench.sync(leader, 3, {}, instance="a")
    new = result_of(bench.join(instance="b")).member_id
    assert bench.group().pending_syncs == {new}
    assert result_of(bench.sync(new, 3, instance="b")).error_code == ErrorCode.NONE
    bench.heartbeat(leader, 3, instance="a")
    assert bench.group().pending_syncs == set()
    timer = bench.group().sync_timer
    assert timer is not None
    assert timer.deadline_ms is None


def test_a_replacement_that_cannot_be_stored_is_taken_back() -> None:
    bench = Workbench()
    (old,) = stable_static(bench, "a")
    before = bench.group().to_stored(bench.group().assignments)
    bench.log.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    refused = result_of(
        bench.join(instance="a", topics=("u",), session_ms=SESSION_MS + 1, rebalance_ms=1)
    )
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.group().static_members == {"a": old}
    assert bench.group().to_stored(bench.group().assignments) == before
    assert bench.heartbeat(old, 1, instance="a") is ErrorCode.NONE
    bench.advance(SESSION_MS)
    assert bench.group().members == {}, "the old member's session does not run"


def test_a_static_member_stays_through_a_rebalance_that_it_misses() -> None:
    bench = Workbench()
    leader, sleeper = stable_static(bench, "a", "b")
    parked = bench.join(leader, instance="a", rebalance_ms=2000)
    bench.join(sleeper, instance="b", rebalance_ms=2000)
    assert result_of(parked).generation_id == 3
    bench.sync(sleeper, 3, instance="b")
    bench.sync(leader, 3, {}, instance="a")
    again = bench.join(leader, instance="a", rebalance_ms=2000)
    bench.advance(2000)
    assert result_of(again).generation_id == 4
    assert len(result_of(again).members) == 2
