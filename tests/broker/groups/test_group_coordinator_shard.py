"""A shard of the group coordinator: commits, visibility, load and unload."""

from __future__ import annotations

import gc
import weakref

import pytest

from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import requests
from fencepost.broker.groups.classic_group import ClassicGroupState
from fencepost.broker.groups.group_config import GroupConfig
from fencepost.broker.groups.records import CommittedOffset, GroupRecord, ReplayedState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.heartbeat import HeartbeatRequest
from fencepost.protocol.messages.leave_group import MemberIdentity
from fencepost.protocol.records import Record
from tests.broker.groups.workbench import NOW_MS, SESSION_MS, Workbench, result_of
from tests.harness.fake_log import FakeLog

NONE = ErrorCode.NONE
UNAVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


def waiting(answer: requests.Codes | Wait[requests.Codes]) -> Wait[requests.Codes]:
    assert isinstance(answer, Wait)
    assert not answer.done
    return answer


def seen(bench: Workbench, group: str = "g") -> CommittedOffset | None:
    return bench.shard.committed.offset(group, "t", 0)


def test_a_commit_is_answered_and_seen_when_it_is_replicated() -> None:
    bench = Workbench()
    bench.log.held = True
    answer = waiting(bench.commit())
    assert bench.shard.latest.offset("g", "t", 0) is not None
    assert seen(bench) is None
    bench.log.commit()
    assert answer.result == (NONE,)
    assert seen(bench) is not None


def test_commits_are_answered_as_far_as_the_high_watermark_has_come() -> None:
    bench = Workbench()
    bench.log.held = True
    answers = [waiting(bench.commit(offset)) for offset in (1, 2, 3)]
    bench.log.commit(up_to=2)
    assert [answer.done for answer in answers] == [True, True, False]
    value = seen(bench)
    assert value is not None
    assert value.offset == 2
    bench.log.commit()
    assert answers[2].result == (NONE,)


def test_a_fetch_of_unstable_offsets_sees_the_replicated_ones() -> None:
    bench = Workbench()
    bench.commit(1)
    bench.log.held = True
    bench.commit(2)
    read = requests.read_offsets(bench.shard, stable=False)
    assert isinstance(read, requests.OffsetsView)
    value = read.state.offset("g", "t", 0)
    assert value is not None
    assert value.offset == 1


def test_a_fetch_of_stable_offsets_waits_for_them() -> None:
    bench = Workbench()
    bench.log.held = True
    bench.commit(2)
    answer = requests.read_offsets(bench.shard, stable=True)
    assert isinstance(answer, Wait)
    assert not answer.done
    bench.log.commit()
    assert answer.result is not None
    value = answer.result.state.offset("g", "t", 0)
    assert value is not None
    assert value.offset == 2


def test_stable_offsets_that_do_not_become_stable_are_an_error() -> None:
    bench = Workbench()
    bench.log.held = True
    bench.commit()
    answer = requests.read_offsets(bench.shard, stable=True)
    bench.advance(bench.config.offsets_commit_timeout_ms)
    assert isinstance(answer, Wait)
    assert answer.result is not None
    assert answer.result.error is UNAVAILABLE


def test_a_commit_that_is_not_replicated_in_time_is_an_error_and_may_be_replicated_later() -> None:
    bench = Workbench()
    bench.log.held = True
    answer = waiting(bench.commit())
    bench.advance(bench.config.offsets_commit_timeout_ms - 1)
    assert not answer.done
    bench.advance(1)
    assert answer.result == (UNAVAILABLE,)
    bench.log.commit()
    assert seen(bench) is not None


def test_a_heartbeat_waits_for_the_records_that_it_may_have_seen() -> None:
    bench = Workbench()
    (member,) = bench.stable()
    bench.log.held = True
    bench.commit(generation=1, member_id=member)
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id=member)
    answer = requests.heartbeat(bench.shard, request)
    assert isinstance(answer, Wait)
    assert not answer.done
    bench.log.commit()
    assert answer.result is NONE


@pytest.mark.parametrize("replicated", [True, False])
def test_a_leave_waits_for_its_record(replicated: bool) -> None:
    bench = Workbench()
    (member,) = bench.stable()
    bench.log.held = True
    left = requests.leave(bench.shard, "g", (MemberIdentity(member_id=member),))
    assert isinstance(left, Wait)
    assert not left.done
    if replicated:
        bench.log.commit()
    bench.advance(bench.config.offsets_commit_timeout_ms)
    assert left.result is not None
    assert left.result.error_code == (NONE if replicated else UNAVAILABLE)
    assert len(left.result.members) == (1 if replicated else 0)


@pytest.mark.parametrize(
    ("of_log", "of_coordinator"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, UNAVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, UNAVAILABLE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNAVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_clients_get_a_coordinators_error_for_the_logs(
    of_log: ErrorCode, of_coordinator: ErrorCode
) -> None:
    bench = Workbench()
    bench.log.refusal = of_log
    assert bench.commit() == (of_coordinator,)


def test_a_record_that_its_format_cannot_hold_is_an_error() -> None:
    bench = Workbench()
    assert bench.commit(topic="t" * 40_000) == (ErrorCode.UNKNOWN_SERVER_ERROR,)
    assert bench.log.records == []


def test_records_say_when_they_were_written() -> None:
    bench = Workbench()
    bench.advance(5)
    bench.commit()
    assert [record.timestamp for record in bench.log.records] == [NOW_MS + 5]


# -- ListGroups, DescribeGroups -------------------------------------------------------------------


def test_a_group_is_seen_when_its_record_is_replicated() -> None:
    bench = Workbench()
    bench.log.held = True
    bench.join()
    assert requests.list_groups(bench.shard) == []
    assert requests.describe(bench.shard, "g").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    bench.log.commit()
    assert [group.group_id for group in requests.list_groups(bench.shard)] == ["g"]
    assert requests.describe(bench.shard, "g").error_code == NONE


def test_a_group_is_described_as_it_is_now() -> None:
    bench = Workbench()
    (member,) = bench.stable()
    stable = requests.describe(bench.shard, "g")
    assert (stable.group_state, stable.protocol_data) == ("Stable", "range")
    assert stable.members[0].member_assignment == member.encode()
    assert stable.members[0].member_metadata
    bench.enter()
    preparing = requests.describe(bench.shard, "g")
    assert (preparing.group_state, preparing.protocol_data) == ("PreparingRebalance", "")
    assert [one.member_metadata for one in preparing.members] == [b"", b""]


def test_groups_without_members_are_deleted_with_their_offsets() -> None:
    bench = Workbench()
    bench.commit(group="simple")
    bench.stable(group="used")
    codes = requests.delete_groups(bench.shard, ["simple", "used", "none"])
    assert codes == (NONE, ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND)
    assert bench.shard.committed.groups.keys() == {"used"}
    assert bench.shard.committed.offsets == {}


def test_a_deleted_groups_pending_members_are_removed() -> None:
    bench = Workbench()
    assigned = result_of(bench.join()).member_id
    assert requests.delete_groups(bench.shard, ["g"]) == (NONE,)
    assert result_of(bench.join(assigned)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_deletion_that_fails_fails_for_all() -> None:
    bench = Workbench()
    bench.commit(group="g")
    bench.log.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
    codes = requests.delete_groups(bench.shard, ["g", "none"])
    assert codes == (UNAVAILABLE, UNAVAILABLE)
    assert seen(bench) is not None


# -- leadership -----------------------------------------------------------------------------------


def test_a_loaded_group_is_stable_and_its_members_go_on() -> None:
    bench = Workbench()
    leader, follower = bench.stable(2)
    loaded = bench.after_failover()
    assert loaded.group().state is ClassicGroupState.STABLE
    assert loaded.heartbeat(follower, 2) is NONE
    assert result_of(loaded.sync(follower, 2)).assignment == follower.encode()
    assert loaded.group().leader_id == leader


def test_a_loaded_groups_members_have_one_session_timeout() -> None:
    bench = Workbench()
    bench.stable()
    loaded = bench.after_failover()
    loaded.advance(SESSION_MS - 1)
    assert loaded.group().state is ClassicGroupState.STABLE
    loaded.advance(1)
    assert loaded.group().state is ClassicGroupState.EMPTY


def test_a_group_that_was_rebalancing_is_loaded_in_its_last_generation() -> None:
    bench = Workbench()
    (leader,) = bench.stable()
    bench.join(leader, topics=("u",))
    assert bench.group().generation == 2
    assert bench.after_failover().group().generation == 1


def test_a_loaded_group_that_is_too_large_rebalances() -> None:
    bench = Workbench()
    bench.stable(2)
    loaded = bench.after_failover(GroupConfig(max_size=2))
    assert loaded.group().state is ClassicGroupState.STABLE
    loaded = bench.after_failover(GroupConfig(max_size=1))
    assert loaded.group().state is ClassicGroupState.PREPARING_REBALANCE


def test_a_commit_that_was_not_replicated_at_the_election_is_seen_later() -> None:
    log = FakeLog()
    Workbench(log=log).commit(1)
    log.held = True
    Workbench(log=log).commit(2)
    log.held = False
    log.high_watermark = 1
    loaded = Workbench(log=log)
    value = seen(loaded)
    assert value is not None
    assert value.offset == 1
    log.commit()
    value = seen(loaded)
    assert value is not None
    assert value.offset == 2


def test_records_that_cannot_be_read_are_skipped() -> None:
    log = FakeLog()
    Workbench(log=log).commit()
    others = [(None, b"v"), (b"", None), (b"\0\3\0\1g", b"\0\0"), (b"\0\2\0\1g", b"\0\x63")]
    for key, value in others:
        log.records.append(Record(len(log.records), 0, key, value))
    log.high_watermark = len(log.records)
    loaded = Workbench(log=log)
    assert loaded.shard.loaded
    assert loaded.shard.latest.groups.keys() == {"g"}
    assert seen(loaded) is not None


def test_waiting_requests_are_answered_when_the_leadership_is_lost() -> None:
    bench = Workbench()
    first, second = bench.stable(2, group="joining")
    joining = bench.join(first, group="joining")
    leader, follower = bench.stable(2, group="syncing")
    bench.join(leader, group="syncing")
    bench.join(follower, group="syncing")
    syncing = bench.sync(follower, 3, group="syncing")
    bench.log.held = True
    commit = waiting(bench.commit(group="simple"))
    groups = list(bench.shard.groups.values())
    bench.shard.close()
    assert {group.state for group in groups} == {ClassicGroupState.DEAD}
    assert (result_of(joining).error_code, result_of(joining).member_id) == (
        ErrorCode.NOT_COORDINATOR,
        first,
    )
    assert result_of(syncing).error_code == ErrorCode.NOT_COORDINATOR
    assert commit.result == (ErrorCode.NOT_COORDINATOR,)
    assert second
    assert bench.scheduler.next_deadline_ms() is None, "timers are left behind"


def test_a_closed_shard_writes_and_commits_nothing() -> None:
    bench = Workbench()
    bench.log.held = True
    bench.commit()
    bench.shard.close()
    bench.log.commit()
    assert bench.shard.committed == ReplayedState()
    errors: list[ErrorCode] = []
    bench.shard.write([GroupRecord(group_id="g", value=None)], errors.append)
    assert errors == [ErrorCode.NOT_COORDINATOR]
    assert len(bench.log.records) == 1


def test_a_shard_that_is_closed_before_it_has_loaded_does_not_load() -> None:
    log = FakeLog()
    Workbench(log=log).stable()
    bench = Workbench(log=log)
    shard = type(bench.shard)(
        log=log, scheduler=bench.scheduler, rng=bench.shard.rng, config=bench.config
    )
    shard.close()
    bench.scheduler.run_due()
    assert not shard.loaded
    assert shard.groups == {}


def test_a_closed_shard_is_freed_at_once() -> None:
    """It has all offsets of its groups, and its next timer is due in minutes."""
    bench = Workbench()
    bench.stable()
    shard = weakref.ref(bench.shard)
    bench.shard.close()
    gc.disable()
    try:
        scheduler = bench.scheduler
        del bench
        assert shard() is None
        scheduler.run_due()
    finally:
        gc.enable()
