"""Requests on the groups of one shard: find the group, let it decide, carry that out."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from fencepost.broker.groups import directory, joins, membership, offsets, rebalance
from fencepost.broker.groups.decision import Decision
from fencepost.broker.groups.durable import DurableState
from fencepost.broker.groups.group import ClassicGroup
from fencepost.broker.groups.joins import Join
from fencepost.broker.groups.offsets import Commit
from fencepost.broker.groups.records import GroupRecord, StoredGroup
from fencepost.broker.groups.shard import Shard
from fencepost.broker.groups.state import GroupState
from fencepost.broker.waits import Wait
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_groups import DescribedGroup
from fencepost.protocol.messages.heartbeat import HeartbeatRequest
from fencepost.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity
from fencepost.protocol.messages.list_groups import ListedGroup
from fencepost.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

Codes: TypeAlias = tuple[ErrorCode, ...]
Deleted: TypeAlias = tuple[ErrorCode, dict[str, ErrorCode]]
"""Of OffsetDelete: the group's error, and each topic's."""


class Offsets(NamedTuple):
    """Of OffsetFetch: where to look offsets up, unless there is an error."""

    state: DurableState
    error: ErrorCode = ErrorCode.NONE


def join(shard: Shard, joining: Join) -> None:
    """JoinGroup: answered when the group's next generation is known."""
    group_id, member_id = joining.request.group_id, joining.request.member_id
    group = shard.find(group_id)
    if group is not None:
        shard.hold(group)
        joins.join(shard, group, joining)
    elif member_id:
        joining.refuse(ErrorCode.UNKNOWN_MEMBER_ID, member_id)
    else:
        _join_new_group(shard, joining)


def _join_new_group(shard: Shard, joining: Join) -> None:
    """A group exists from the first attempt to join it, and its record says so."""
    now_ms = shard.scheduler.now_ms()
    group = ClassicGroup(joining.request.group_id, state_timestamp_ms=now_ms)

    def created(error: ErrorCode) -> None:
        if error is not ErrorCode.NONE and shard.groups.get(group.group_id) is group:
            joining.refuse(error)
            shard.drop(group.group_id)

    shard.hold(group)
    joins.join(shard, group, joining)
    empty = StoredGroup(state_timestamp_ms=now_ms)
    shard.write([GroupRecord(group_id=group.group_id, value=empty)], created)


def sync(shard: Shard, request: SyncGroupRequest, answer: Wait[SyncGroupResponse]) -> None:
    """SyncGroup: answered when the leader has assigned."""
    group = shard.find(request.group_id)
    if group is None:
        answer.complete(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    else:
        membership.sync(shard, group, request, answer)


def heartbeat(shard: Shard, request: HeartbeatRequest) -> ErrorCode | Wait[ErrorCode]:
    """Heartbeat."""
    group = shard.find(request.group_id)
    error = ErrorCode.UNKNOWN_MEMBER_ID
    if group is not None:
        error = membership.heartbeat(shard, group, request)
    return shard.carry_out(Decision(response=error), lambda failure, _: failure)


def leave(
    shard: Shard, group_id: str, members: tuple[MemberIdentity, ...]
) -> LeaveGroupResponse | Wait[LeaveGroupResponse]:
    """LeaveGroup, as v3 and later answer."""
    group = shard.find(group_id)
    if group is not None:
        left = membership.leave(shard, group, members)
    else:
        left = tuple(membership.left(one, ErrorCode.UNKNOWN_MEMBER_ID) for one in members)
    return shard.carry_out(
        Decision(response=LeaveGroupResponse(members=left)),
        lambda error, _: LeaveGroupResponse(error_code=error),
    )


def commit(shard: Shard, commit: Commit) -> Codes | Wait[Codes]:
    """OffsetCommit: an error code for each partition, in their order."""
    group = shard.find(commit.group_id)
    error = offsets.check_commit(group, commit)
    if error is not ErrorCode.NONE:
        return shard.carry_out(Decision(response=(error,) * len(commit.partitions)), _all)
    if group is not None and group.state in {GroupState.STABLE, GroupState.PREPARING_REBALANCE}:
        rebalance.expect_heartbeat(shard, group, group.members[commit.member_id])
    decision = offsets.decide_commit(commit, shard.config, shard.scheduler.now_ms())
    return shard.carry_out(decision, _all)


def _all(error: ErrorCode, codes: Codes) -> Codes:
    return (error,) * len(codes)


def read_offsets(shard: Shard, *, stable: bool) -> Offsets | Wait[Offsets]:
    """What OffsetFetch looks offsets up in.

    :param stable: Everything that has been committed to by now, once it is replicated (KIP-447);
        otherwise what is.
    """
    if not stable:
        return Offsets(shard.committed)
    return shard.carry_out(
        Decision(response=Offsets(shard.latest)), lambda error, read: Offsets(read.state, error)
    )


def delete_offsets(
    shard: Shard, group_id: str, partitions: Mapping[str, tuple[int, ...]]
) -> Deleted | Wait[Deleted]:
    """OffsetDelete."""
    group = shard.find(group_id)
    error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else offsets.check_delete(group)
    if group is None or error is not ErrorCode.NONE:
        return shard.carry_out(Decision(response=(error, {})), _failed)
    decided = offsets.decide_delete(shard.latest, group, partitions)
    whole = Decision(response=(ErrorCode.NONE, decided.response), records=decided.records)
    return shard.carry_out(whole, _failed)


def _failed(error: ErrorCode, _deleted: Deleted) -> Deleted:
    return error, {}


def list_groups(shard: Shard) -> list[ListedGroup]:
    """ListGroups, not filtered."""
    return [directory.listed(group) for group in shard.visible()]


def describe(shard: Shard, group_id: str) -> DescribedGroup:
    """DescribeGroups, as v6 answers."""
    group = shard.see(group_id)
    return directory.not_found(group_id) if group is None else directory.described(group)


def delete_groups(shard: Shard, group_ids: Sequence[str]) -> Codes | Wait[Codes]:
    """DeleteGroups: an error code for each group, in their order."""
    decisions = [
        directory.decide_group_deletion(shard.latest, shard.find(group_id))
        for group_id in group_ids
    ]
    whole = Decision(
        response=tuple(one.response for one in decisions),
        records=tuple(record for one in decisions for record in one.records),
    )
    return shard.carry_out(whole, _all)
