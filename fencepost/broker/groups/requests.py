"""Each API on the shard of its group: find the group, decide, commit the result.

DescribeGroups, ListGroups and DeleteGroups are whole here; the others' decisions are in
``classic_membership`` and ``offsets``.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from fencepost.broker.coordinator.shard import CoordinatorResult, TransactionalProducer
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import classic_membership, offsets, rebalance
from fencepost.broker.groups.classic_group import ClassicGroup, ClassicGroupState
from fencepost.broker.groups.classic_group_member import ClassicGroupMember
from fencepost.broker.groups.classic_membership import JoinAttempt
from fencepost.broker.groups.group_coordinator import GroupCoordinatorShard
from fencepost.broker.groups.offsets import Commit, tombstones_of_group
from fencepost.broker.groups.records import GroupRecord, GroupResult, ReplayedState, StoredGroup
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from fencepost.protocol.messages.heartbeat import HeartbeatRequest
from fencepost.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity
from fencepost.protocol.messages.list_groups import ListedGroup
from fencepost.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

CLASSIC_TYPE: Final = "classic"


def listed_group(group: ClassicGroup) -> ListedGroup:
    """A group in ListGroups."""
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=CLASSIC_TYPE,
    )


def described_group(group: ClassicGroup) -> DescribedGroup:
    """A group in DescribeGroups; only a STABLE group has a protocol and metadata."""
    protocol = group.protocol if group.state is ClassicGroupState.STABLE else None
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=tuple(_described_member(one, protocol) for one in group.members.values()),
    )


def _described_member(member: ClassicGroupMember, protocol: str | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol is None else member.metadata(protocol),
        member_assignment=member.assignment,
    )


def dead_group(group_id: str) -> DescribedGroup:
    """A group that does not exist, as v6 answers (KIP-1043)."""
    return DescribedGroup(
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"Group {group_id} not found.",
        group_id=group_id,
        group_state=ClassicGroupState.DEAD.value,
    )


def decide_group_deletion(
    state: ReplayedState, group: ClassicGroup | None
) -> GroupResult[ErrorCode]:
    """Delete a group and its committed offsets, if it has no members."""
    if group is None:
        return CoordinatorResult(response=ErrorCode.GROUP_ID_NOT_FOUND)
    if group.state is not ClassicGroupState.EMPTY:
        return CoordinatorResult(response=ErrorCode.NON_EMPTY_GROUP)
    return CoordinatorResult(
        response=ErrorCode.NONE,
        records=(
            *tombstones_of_group(state, group.group_id),
            GroupRecord(group_id=group.group_id, value=None),
        ),
    )


Codes: TypeAlias = tuple[ErrorCode, ...]
Deleted: TypeAlias = tuple[ErrorCode, dict[str, ErrorCode]]
"""Of OffsetDelete: the group's error, and the error of each topic."""


class OffsetsView(NamedTuple):
    """Of OffsetFetch: the state to look offsets up in, or an error."""

    state: ReplayedState
    error: ErrorCode = ErrorCode.NONE


def join(shard: GroupCoordinatorShard, joining: JoinAttempt) -> None:
    """JoinGroup: answered when the group has its next generation."""
    group_id, member_id = joining.request.group_id, joining.request.member_id
    group = shard.find(group_id)
    if group is not None:
        shard.add_group(group)
        classic_membership.join(shard, group, joining)
    elif member_id:
        joining.refuse(ErrorCode.UNKNOWN_MEMBER_ID, member_id)
    else:
        _join_new_group(shard, joining)


def _join_new_group(shard: GroupCoordinatorShard, joining: JoinAttempt) -> None:
    """The first attempt to join creates a group, and writes its record."""
    now_ms = shard.scheduler.wall_ms()
    group = ClassicGroup(joining.request.group_id, state_timestamp_ms=now_ms)

    def created(error: ErrorCode) -> None:
        if error is not ErrorCode.NONE and shard.groups.get(group.group_id) is group:
            joining.refuse(error)
            shard.remove_group(group.group_id)

    shard.add_group(group)
    classic_membership.join(shard, group, joining)
    empty = StoredGroup(state_timestamp_ms=now_ms)
    shard.write([GroupRecord(group_id=group.group_id, value=empty)], created)


def sync(
    shard: GroupCoordinatorShard, request: SyncGroupRequest, answer: Wait[SyncGroupResponse]
) -> None:
    """SyncGroup: answered when the leader's assignment is committed."""
    group = shard.find(request.group_id)
    if group is None:
        answer.complete(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    else:
        classic_membership.sync(shard, group, request, answer)


def heartbeat(
    shard: GroupCoordinatorShard, request: HeartbeatRequest
) -> ErrorCode | Wait[ErrorCode]:
    """Heartbeat."""
    group = shard.find(request.group_id)
    error = ErrorCode.UNKNOWN_MEMBER_ID
    if group is not None:
        error = classic_membership.heartbeat(shard, group, request)
    return shard.commit_result(CoordinatorResult(response=error), lambda failure, _: failure)


def leave(
    shard: GroupCoordinatorShard, group_id: str, members: tuple[MemberIdentity, ...]
) -> LeaveGroupResponse | Wait[LeaveGroupResponse]:
    """LeaveGroup, in the form of v3 and later."""
    group = shard.find(group_id)
    if group is not None:
        responses = classic_membership.leave(shard, group, members)
    else:
        responses = tuple(
            classic_membership.leave_response(one, ErrorCode.UNKNOWN_MEMBER_ID) for one in members
        )
    return shard.commit_result(
        CoordinatorResult(response=LeaveGroupResponse(members=responses)),
        lambda error, _: LeaveGroupResponse(error_code=error),
    )


def commit(shard: GroupCoordinatorShard, commit: Commit) -> Codes | Wait[Codes]:
    """OffsetCommit: an error code for each partition, in the request's order."""
    group = shard.find(commit.group_id)
    error = offsets.check_commit(group, commit)
    if error is not ErrorCode.NONE:
        return shard.commit_result(
            CoordinatorResult(response=(error,) * len(commit.partitions)), _all
        )
    if group is not None and group.state in {
        ClassicGroupState.STABLE,
        ClassicGroupState.PREPARING_REBALANCE,
    }:
        rebalance.expect_heartbeat(shard, group, group.members[commit.member_id])
    result = offsets.decide_commit(commit, shard.config, shard.scheduler.wall_ms())
    return shard.commit_result(result, _all)


def commit_in_transaction(
    shard: GroupCoordinatorShard, commit: Commit, producer: TransactionalProducer
) -> Codes | Wait[Codes]:
    """TxnOffsetCommit: an error code for each partition, in the request's order.

    The offsets are pending until the transaction ends. A member's session is not restarted.
    """
    error = offsets.check_transactional_commit(shard.find(commit.group_id), commit)
    if error is not ErrorCode.NONE:
        return shard.commit_result(
            CoordinatorResult(response=(error,) * len(commit.partitions)), _all
        )
    result = offsets.decide_commit(commit, shard.config, shard.scheduler.wall_ms())
    return shard.commit_result(result, _all, producer)


def _all(error: ErrorCode, codes: Codes) -> Codes:
    return (error,) * len(codes)


def read_offsets(shard: GroupCoordinatorShard, *, stable: bool) -> OffsetsView | Wait[OffsetsView]:
    """The state that OffsetFetch looks offsets up in.

    :param stable: Wait until every commit so far is replicated (KIP-447); otherwise the replicated
        commits alone.
    """
    if not stable:
        return OffsetsView(shard.committed)
    return shard.commit_result(
        CoordinatorResult(response=OffsetsView(shard.latest)),
        lambda error, read: OffsetsView(read.state, error),
    )


def delete_offsets(
    shard: GroupCoordinatorShard, group_id: str, partitions: Mapping[str, Sequence[int]]
) -> Deleted | Wait[Deleted]:
    """OffsetDelete."""
    group = shard.find(group_id)
    error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else offsets.check_delete(group)
    if group is None or error is not ErrorCode.NONE:
        return shard.commit_result(CoordinatorResult(response=(error, {})), _failed)
    deletion = offsets.decide_delete(shard.latest, group, partitions)
    result = CoordinatorResult(
        response=(ErrorCode.NONE, deletion.response), records=deletion.records
    )
    return shard.commit_result(result, _failed)


def _failed(error: ErrorCode, _deleted: Deleted) -> Deleted:
    return error, {}


def list_groups(shard: GroupCoordinatorShard) -> list[ListedGroup]:
    """ListGroups, not filtered."""
    return [listed_group(group) for group in shard.visible_groups()]


def describe(shard: GroupCoordinatorShard, group_id: str) -> DescribedGroup:
    """DescribeGroups, in the form of v6."""
    group = shard.find_visible(group_id)
    return dead_group(group_id) if group is None else described_group(group)


def delete_groups(shard: GroupCoordinatorShard, group_ids: Sequence[str]) -> Codes | Wait[Codes]:
    """DeleteGroups: an error code for each group, in the request's order."""
    deletions = [
        decide_group_deletion(shard.latest, shard.find(group_id)) for group_id in group_ids
    ]
    result = CoordinatorResult(
        response=tuple(one.response for one in deletions),
        records=tuple(record for one in deletions for record in one.records),
    )
    return shard.commit_result(result, _all)
