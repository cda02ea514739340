"""SyncGroup, Heartbeat and LeaveGroup."""

from fencepost.broker.groups import rebalance
from fencepost.broker.groups.group import ClassicGroup
from fencepost.broker.groups.rebalance import Host
from fencepost.broker.groups.state import GroupState
from fencepost.broker.waits import Wait
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.heartbeat import HeartbeatRequest
from fencepost.protocol.messages.leave_group import MemberIdentity, MemberResponse
from fencepost.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def sync(
    host: Host, group: ClassicGroup, request: SyncGroupRequest, answer: Wait[SyncGroupResponse]
) -> None:
    """Tell a member its assignment, or let it wait until the leader has assigned."""
    error = _check_sync(group, request)
    if error is ErrorCode.NONE and group.state is GroupState.PREPARING_REBALANCE:
        error = ErrorCode.REBALANCE_IN_PROGRESS
    if error is not ErrorCode.NONE:
        answer.complete(SyncGroupResponse(error_code=error))
        return
    member = group.members[request.member_id]
    rebalance.synced(group, member.member_id)
    if group.state is GroupState.STABLE:
        answer.complete(rebalance.assignment_of(group, member))
        return
    member.park_sync(answer)
    if member.member_id == group.leader_id:
        assigned = {one.member_id: one.assignment for one in request.assignments}
        rebalance.assign(
            host, group, {member_id: assigned.get(member_id, b"") for member_id in group.members}
        )


def _check_sync(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
    if group.state is GroupState.EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.check_member(request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differ(request.protocol_type, group.protocol_type):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if _differ(request.protocol_name, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _differ(claimed: str | None, actual: str | None) -> bool:
    """Whether both are known and not the same; before v5 clients do not say (KIP-559)."""
    return claimed is not None and actual is not None and claimed != actual


def heartbeat(host: Host, group: ClassicGroup, request: HeartbeatRequest) -> ErrorCode:
    """A member is alive. REBALANCE_IN_PROGRESS asks it to join again."""
    error = group.check_member(request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    rebalance.expect_heartbeat(host, group, group.members[request.member_id])
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def leave(
    host: Host, group: ClassicGroup, members: tuple[MemberIdentity, ...]
) -> tuple[MemberResponse, ...]:
    """Drop members; a static one can be named by its instance id alone, as admins do (KIP-345)."""
    responses = tuple(left(member, _leave_one(group, member)) for member in members)
    gone = [one for one in responses if one.error_code == ErrorCode.NONE]
    if gone and group.state is not GroupState.EMPTY:
        reasons = ", ".join(member.reason or "not provided" for member in members)
        rebalance.rebalance_or_complete(host, group, f"members left; client reason: {reasons}")
    return responses


def left(member: MemberIdentity, error: ErrorCode) -> MemberResponse:
    """What LeaveGroup answers for one member."""
    return MemberResponse(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        error_code=error,
    )


def _leave_one(group: ClassicGroup, member: MemberIdentity) -> ErrorCode:
    member_id = member.member_id
    if not member_id:
        known = group.static_members.get(member.group_instance_id or "")
        if member.group_instance_id is None or known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = known
    elif member_id in group.pending_joins:
        group.forget_pending(member_id)
        return ErrorCode.NONE
    else:
        error = group.check_member(member_id, member.group_instance_id)
        if error is not ErrorCode.NONE:
            return error
    group.remove(member_id)
    return ErrorCode.NONE
