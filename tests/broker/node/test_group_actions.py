"""Groups as a test sees and changes them, at their coordinator."""

from __future__ import annotations

import pytest

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.waits import Wait
from fencepost.broker.faults.rules import FaultRule
from fencepost.broker.groups.classic_group import ClassicGroupState
from fencepost.broker.node import group_actions, operator_actions
from fencepost.broker.node.group_actions import FoundGroup, NewOffset
from fencepost.client.consumer_protocol import encode_assignment, encode_subscription
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.heartbeat import HeartbeatRequest
from fencepost.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from fencepost.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from fencepost.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.harness.driver import Asked, Driver
from tests.harness.driver_requests import create

GROUP = "g"
CONFIGS = {"offsets.topic.num.partitions": "2"}


class Grouped(Driver):
    """Three brokers, topic ``t`` with one partition, and members of a group."""

    def __init__(self) -> None:
        super().__init__(configs=CONFIGS)
        create(self, "t", [(1, 2, 3)])
        assert group_actions.set_offsets(self.cluster, GROUP, [NewOffset("t", 0, 3)]) == 0

    def found(self) -> FoundGroup:
        return group_actions.find_group(self.cluster, GROUP)

    def state(self) -> tuple[ClassicGroupState, int, int]:
        """State, generation and number of members."""
        group = self.found().group
        return group.state, group.generation, len(group.members)

    def offsets(self) -> dict[tuple[str, int], int]:
        return {
            (topic, index): committed.offset
            for topic, index, committed in self.found().committed_offsets()
        }

    def join(self, member_id: str = "") -> Asked:
        """A JoinGroup, which waits for the other members."""
        protocols = (JoinGroupRequestProtocol(name="range", metadata=encode_subscription(["t"])),)
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=protocols,
        )
        return self.send(self.found().coordinator, "join_group", 3, request)

    def sync(self, member_id: str, generation: int) -> None:
        """The leader of the group gives itself partition 0."""
        assigned = SyncGroupRequestAssignment(
            member_id=member_id, assignment=encode_assignment([("t", 0)])
        )
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=member_id,
            assignments=(assigned,),
        )
        answer = self.ask(self.found().coordinator, "sync_group", 3, request)
        assert answer.error_code == ErrorCode.NONE

    def member(self) -> str:
        """The id of a member that has joined and is assigned partition 0."""
        joined = self.join().response
        self.sync(joined.member_id, joined.generation_id)
        member_id: str = joined.member_id
        return member_id

    def heartbeat(self, member_id: str) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=GROUP, generation_id=self.found().group.generation, member_id=member_id
        )
        answer = self.ask(self.found().coordinator, "heartbeat", 3, request)
        return ErrorCode(answer.error_code)


@pytest.fixture
def driver() -> Grouped:
    return Grouped()


def refused(code: ErrorCode, words: str = ".") -> pytest.RaisesExc[ControllerError]:
    return pytest.raises(ControllerError, match=words, check=lambda error: error.code is code)


def test_a_group_begins_with_its_first_offset(driver: Grouped) -> None:
    assert driver.state() == (ClassicGroupState.EMPTY, 0, 0)
    assert driver.offsets() == {("t", 0): 3}
    assert [each.group.group_id for each in group_actions.all_groups(driver.cluster)] == [GROUP]


def test_there_is_no_group_before() -> None:
    driver = Driver(configs=CONFIGS)
    assert group_actions.all_groups(driver.cluster) == []
    create(driver, "t")
    for _ in range(2):
        with refused(ErrorCode.GROUP_ID_NOT_FOUND, "there is no group 'x'"):
            group_actions.find_group(driver.cluster, "x")
        group_actions.set_offsets(driver.cluster, GROUP, [NewOffset("t", 0, 3)])


def test_a_client_is_answered_the_offset_that_was_set(driver: Grouped) -> None:
    offset = NewOffset("t", 0, 17, leader_epoch=2)
    assert group_actions.set_offsets(driver.cluster, GROUP, [offset]) is ErrorCode.NONE
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=None),))
    answer = driver.ask(driver.found().coordinator, "offset_fetch", 8, request)
    (partition,) = answer.groups[0].topics[0].partitions
    assert (partition.committed_offset, partition.committed_leader_epoch) == (17, 2)


def test_offsets_are_set_and_deleted_behind_the_back_of_a_member(driver: Grouped) -> None:
    driver.member()
    group_actions.set_offsets(driver.cluster, GROUP, [NewOffset("t", 0, 1)])
    assert driver.offsets() == {("t", 0): 1}
    assert group_actions.delete_offsets(driver.cluster, GROUP, ["t"]) is ErrorCode.NONE
    assert driver.offsets() == {}
    assert driver.state() == (ClassicGroupState.STABLE, 1, 1)


def test_an_offset_of_no_partition_is_refused(driver: Grouped) -> None:
    with refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no partition t-7"):
        group_actions.set_offsets(driver.cluster, GROUP, [NewOffset("t", 7, 0)])
    with refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no offsets of topic 'u', only of t"):
        group_actions.delete_offsets(driver.cluster, GROUP, ["u"])
    assert driver.offsets() == {("t", 0): 3}


def test_an_offset_waits_for_the_replicas_of_the_coordinator(driver: Grouped) -> None:
    driver.hold(*({1, 2, 3} - {driver.found().coordinator}))
    answer = group_actions.set_offsets(driver.cluster, GROUP, [NewOffset("t", 0, 17)])
    assert isinstance(answer, Wait)
    told: list[ErrorCode | None] = []
    answer.then(told.append)
    assert told == []
    assert driver.offsets() == {("t", 0): 3}
    driver.release(1, 2, 3)
    assert told == [ErrorCode.NONE]
    assert driver.offsets() == {("t", 0): 17}


def test_a_member_is_removed_and_the_others_rebalance(driver: Grouped) -> None:
    first = driver.member()
    second = driver.join()
    assert driver.heartbeat(first) is ErrorCode.REBALANCE_IN_PROGRESS
    driver.join(first)
    second_id = second.response.member_id
    assert driver.state() == (ClassicGroupState.COMPLETING_REBALANCE, 2, 2)
    group_actions.remove_member(driver.cluster, GROUP, second_id)
    assert driver.state() == (ClassicGroupState.PREPARING_REBALANCE, 2, 1)
    assert driver.heartbeat(second_id) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_whose_last_member_is_removed_is_empty(driver: Grouped) -> None:
    group_actions.remove_member(driver.cluster, GROUP, driver.member())
    assert driver.state() == (ClassicGroupState.EMPTY, 2, 0)
    assert driver.offsets() == {("t", 0): 3}


def test_a_member_that_there_is_not_is_refused_with_those_that_there_are(driver: Grouped) -> None:
    member = driver.member()
    with refused(ErrorCode.UNKNOWN_MEMBER_ID, f"'g' has no member 'x'; it has {member}"):
        group_actions.remove_member(driver.cluster, GROUP, "x")


def test_a_rebalance_has_every_member_join_again(driver: Grouped) -> None:
    member = driver.member()
    group_actions.force_rebalance(driver.cluster, GROUP)
    assert driver.state() == (ClassicGroupState.PREPARING_REBALANCE, 1, 1)
    assert driver.heartbeat(member) is ErrorCode.REBALANCE_IN_PROGRESS
    group_actions.force_rebalance(driver.cluster, GROUP)  # one is under way
    joined = driver.join(member).response
    driver.sync(member, joined.generation_id)
    assert driver.state() == (ClassicGroupState.STABLE, 2, 1)


def test_a_group_without_members_has_nothing_to_rebalance(driver: Grouped) -> None:
    with refused(ErrorCode.INVALID_REQUEST, "group 'g' has no members that could rebalance"):
        group_actions.force_rebalance(driver.cluster, GROUP)


def test_a_coordinator_moves_with_the_members_and_offsets_of_all_groups_of_its_partition(
    driver: Grouped,
) -> None:
    member = driver.member()
    for group in map(str, range(8)):
        group_actions.set_offsets(driver.cluster, group, [NewOffset("t", 0, 3)])
    before = {each.group.group_id: each for each in group_actions.all_groups(driver.cluster)}
    assert len(before) == 9
    target = driver.found().coordinator % 3 + 1
    group_actions.move_coordinator(driver.cluster, GROUP, target)
    moved = driver.found()
    assert (moved.coordinator, driver.state()) == (target, (ClassicGroupState.STABLE, 1, 1))
    assert driver.offsets() == {("t", 0): 3}
    assert driver.heartbeat(member) is ErrorCode.NONE
    for each in group_actions.all_groups(driver.cluster):
        is_beside = each.offsets_partition == moved.offsets_partition
        assert each.coordinator == (
            target if is_beside else before[each.group.group_id].coordinator
        )


def test_a_coordinator_is_a_replica_in_sync(driver: Grouped) -> None:
    with refused(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE):
        group_actions.move_coordinator(driver.cluster, GROUP, 9)


def test_a_group_without_a_coordinator_cannot_be_looked_at(driver: Grouped) -> None:
    for broker_id in (1, 2, 3):
        operator_actions.kill(driver.cluster, broker_id)
    with refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, "has no leader at present"):
        driver.found()
    assert group_actions.all_groups(driver.cluster) == []


def test_no_fault_hits(driver: Grouped) -> None:
    driver.member()
    for api in ("OffsetCommit", "OffsetDelete", "LeaveGroup", "DescribeGroups", "ElectLeaders"):
        driver.cluster.faults.add(FaultRule.from_json({"api": api, "action": {"drop": True}}))
    group_actions.set_offsets(driver.cluster, GROUP, [NewOffset("t", 0, 5)])
    group_actions.remove_member(driver.cluster, GROUP, next(iter(driver.found().group.members)))
    assert driver.offsets() == {("t", 0): 5}
    assert {fault.hits for fault in driver.cluster.faults.all()} == {0}
