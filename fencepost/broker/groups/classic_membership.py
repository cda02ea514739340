"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of one classic group."""

from msgspec import Struct

from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import rebalance
from fencepost.broker.groups.classic_group import ClassicGroup, ClassicGroupState
from fencepost.broker.groups.classic_group_member import ClassicGroupMember, MemberProtocol
from fencepost.broker.groups.group_config import NEW_MEMBER_JOIN_TIMEOUT_MS
from fencepost.broker.groups.rebalance import RebalanceContext
from fencepost.broker.groups.records import GroupRecord
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.heartbeat import HeartbeatRequest
from fencepost.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from fencepost.protocol.messages.leave_group import MemberIdentity, MemberResponse
from fencepost.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class JoinAttempt(Struct, frozen=True, kw_only=True):
    """A JoinGroup request, the rules of its version, and its response to come."""

    request: JoinGroupRequest
    rebalance_timeout_ms: int
    client_id: str
    client_host: str
    """In Kafka's form: ``/`` and the address."""
    member_id_required: bool
    """v4+: a new member gets its id first and joins with it (KIP-394)."""
    can_skip_assignment: bool
    """v9+: the response can ask a returning static leader to skip the assignment (KIP-814)."""
    answer: Wait[JoinGroupResponse]

    @property
    def protocols(self) -> tuple[MemberProtocol, ...]:
        """The protocols that the member offers, each once."""
        offers = {offer.name: offer.metadata for offer in reversed(self.request.protocols)}
        names = dict.fromkeys(offer.name for offer in self.request.protocols)
        return tuple(MemberProtocol(name, offers[name]) for name in names)

    @property
    def reason(self) -> str:
        """The client's reason for joining (KIP-800)."""
        return self.request.reason or "not provided"

    def refuse(self, error: ErrorCode, member_id: str = "") -> None:
        """Answer with an error."""
        self.answer.complete(join_error(error, member_id))


def join_error(error: int, member_id: str = "") -> JoinGroupResponse:
    """The response to a JoinGroup that failed."""
    return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None)


def join(host: RebalanceContext, group: ClassicGroup, joining: JoinAttempt) -> None:
    """Let a member join, which parks the request, or answer an error."""
    member_id = joining.request.member_id
    if not _is_below_max_size(host, group, member_id):
        group.remove_member(member_id)
        joining.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED)
    elif not group.supports(
        joining.request.protocol_type, [offer.name for offer in joining.protocols]
    ):
        joining.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
    elif not member_id:
        _join_new(host, group, joining)
    elif member_id in group.pending_joins:
        _join_pending(host, group, joining)
    else:
        error = group.check_member(member_id, joining.request.group_instance_id)
        if error is ErrorCode.NONE:
            _rejoin(host, group, group.members[member_id], joining)
        else:
            joining.refuse(error, member_id)


def _is_below_max_size(host: RebalanceContext, group: ClassicGroup, member_id: str) -> bool:
    """Whether ``group.max.size`` allows this member.

    In PREPARING_REBALANCE the parked members count, not those of the last generation: of a group
    that has become too large the last members to join are refused.
    """
    member = group.members.get(member_id)
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        waits = member is not None and member.joining is not None
        return waits or group.waiting_count < host.config.max_size
    return member is not None or len(group.members) < host.config.max_size


def _join_new(host: RebalanceContext, group: ClassicGroup, joining: JoinAttempt) -> None:
    request = joining.request
    instance_id = request.group_instance_id
    if instance_id is not None:
        member_id = rebalance.new_member_id(host, instance_id)
        if instance_id in group.static_members:
            _replace_static(host, group, instance_id, member_id, joining)
        else:
            _add(host, group, member_id, joining)
        return
    member_id = rebalance.new_member_id(host, joining.client_id)
    if joining.member_id_required:
        rebalance.expect_join(host, group, member_id, request.session_timeout_ms)
        joining.refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id)
    else:
        _add(host, group, member_id, joining)


def _join_pending(host: RebalanceContext, group: ClassicGroup, joining: JoinAttempt) -> None:
    """A member joins with the id that was assigned to it, which a static member never has."""
    if joining.request.group_instance_id is not None:
        joining.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
    else:
        _add(host, group, joining.request.member_id, joining)


def _add(host: RebalanceContext, group: ClassicGroup, member_id: str, joining: JoinAttempt) -> None:
    request = joining.request
    member = ClassicGroupMember(
        member_id=member_id,
        group_instance_id=request.group_instance_id,
        client_id=joining.client_id,
        client_host=joining.client_host,
        protocol_type=request.protocol_type,
        rebalance_timeout_ms=joining.rebalance_timeout_ms,
        session_timeout_ms=request.session_timeout_ms,
        protocols=joining.protocols,
        is_new=True,
        joining=joining.answer,
    )
    if _is_in_initial_delay(group):
        group.new_member_added = True
    group.add_member(member)
    # It cannot heartbeat while it waits for its first response, so it gets a longer time; but a
    # member that has disconnected and joined under another id must be removed at last.
    rebalance.expect_heartbeat(host, group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalance.rebalance_or_complete(
        host, group, f"adding new member {member_id}; client reason: {joining.reason}"
    )


def _is_in_initial_delay(group: ClassicGroup) -> bool:
    return (
        group.state is ClassicGroupState.PREPARING_REBALANCE
        and group.previous_state is ClassicGroupState.EMPTY
    )


def _rejoin(
    host: RebalanceContext, group: ClassicGroup, member: ClassicGroupMember, joining: JoinAttempt
) -> None:
    """A member joins again: a rebalance, unless nothing changes."""
    unchanged = member.protocols == joining.protocols
    leads = member.member_id == group.leader_id
    completing = group.state is ClassicGroupState.COMPLETING_REBALANCE
    if unchanged and (completing or (group.state is ClassicGroupState.STABLE and not leads)):
        # Either the response was lost, or a follower asks for its generation.
        joining.answer.complete(rebalance.join_response(group, member.member_id))
        return
    _update(member, joining)
    rebalance.rebalance_or_complete(
        host,
        group,
        f"member {member.member_id} joins in {group.state.value}; client reason: {joining.reason}",
    )


def _update(member: ClassicGroupMember, joining: JoinAttempt) -> None:
    member.offer(joining.protocols)
    member.rebalance_timeout_ms = joining.rebalance_timeout_ms
    member.session_timeout_ms = joining.request.session_timeout_ms
    member.park_join(joining.answer)


def _replace_static(
    host: RebalanceContext,
    group: ClassicGroup,
    instance_id: str,
    member_id: str,
    joining: JoinAttempt,
) -> None:
    """A static member has restarted: it gets a new member id for its old place (KIP-345)."""
    leader_before = group.leader_id
    old = group.members[group.static_members[instance_id]]
    member = group.replace_static_member(instance_id, member_id)
    rebalance.expect_heartbeat(host, group, member)
    _update(member, joining)
    reason = f"static member {instance_id} joins again; client reason: {joining.reason}"
    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        # The leader may be computing an assignment with the old member id.
        rebalance.prepare_rebalance(host, group, reason)
    elif group.state is not ClassicGroupState.STABLE:
        rebalance.complete_if_all_joined(host, group)
    elif group.select_protocol() != group.protocol:
        rebalance.prepare_rebalance(host, group, reason)
    else:
        _store_replacement(host, group, member, old, leader_before or "", joining)


def _store_replacement(
    host: RebalanceContext,
    group: ClassicGroup,
    member: ClassicGroupMember,
    old: ClassicGroupMember,
    leader_before: str,
    joining: JoinAttempt,
) -> None:
    """Only the member id changes: store it, and answer with the present generation."""
    record = GroupRecord(group_id=group.group_id, value=group.to_stored(group.assignments))

    def stored(error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            _restore_replaced(host, group, member, old)
            member.answer_join(join_error(error))
            return
        leads = member.member_id == group.leader_id
        if joining.can_skip_assignment:
            answer = rebalance.join_response(group, member.member_id, skip_assignment=leads)
        else:
            # An older client that is the leader would assign; naming the old leader prevents it.
            answer = JoinGroupResponse(
                generation_id=group.generation,
                protocol_type=group.protocol_type,
                protocol_name=group.protocol,
                leader=leader_before,
                member_id=member.member_id,
            )
        member.answer_join(answer)

    host.write([record], stored)


def _restore_replaced(
    host: RebalanceContext, group: ClassicGroup, member: ClassicGroupMember, old: ClassicGroupMember
) -> None:
    """The new member id could not be stored: the old one is valid again."""
    if member.group_instance_id is None or group.members.get(member.member_id) is not member:
        return
    answer, member.joining = member.joining, None
    back = group.replace_static_member(member.group_instance_id, old.member_id)
    member.joining = answer
    back.offer(old.protocols)
    back.rebalance_timeout_ms = old.rebalance_timeout_ms
    back.session_timeout_ms = old.session_timeout_ms
    rebalance.expect_heartbeat(host, group, back)


def sync(
    host: RebalanceContext,
    group: ClassicGroup,
    request: SyncGroupRequest,
    answer: Wait[SyncGroupResponse],
) -> None:
    """Answer with the member's assignment, or park the request until the leader has assigned."""
    error = _check_sync(group, request)
    if error is ErrorCode.NONE and group.state is ClassicGroupState.PREPARING_REBALANCE:
        error = ErrorCode.REBALANCE_IN_PROGRESS
    if error is not ErrorCode.NONE:
        answer.complete(SyncGroupResponse(error_code=error))
        return
    member = group.members[request.member_id]
    rebalance.on_synced(group, member.member_id)
    if group.state is ClassicGroupState.STABLE:
        answer.complete(rebalance.sync_response(group, member))
        return
    member.park_sync(answer)
    if member.member_id == group.leader_id:
        assigned = {one.member_id: one.assignment for one in request.assignments}
        rebalance.store_assignment(
            host, group, {member_id: assigned.get(member_id, b"") for member_id in group.members}
        )


def _check_sync(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
    if group.state is ClassicGroupState.EMPTY:
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
    """Whether both are set and not equal; before v5 clients do not send them (KIP-559)."""
    return claimed is not None and actual is not None and claimed != actual


def heartbeat(host: RebalanceContext, group: ClassicGroup, request: HeartbeatRequest) -> ErrorCode:
    """Restart a member's session. REBALANCE_IN_PROGRESS asks it to join again."""
    error = group.check_member(request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    rebalance.expect_heartbeat(host, group, group.members[request.member_id])
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def leave(
    host: RebalanceContext, group: ClassicGroup, members: tuple[MemberIdentity, ...]
) -> tuple[MemberResponse, ...]:
    """Remove members; an admin names a static one by its instance id alone (KIP-345)."""
    responses = tuple(leave_response(member, _leave_one(group, member)) for member in members)
    gone = [one for one in responses if one.error_code == ErrorCode.NONE]
    if gone and group.state is not ClassicGroupState.EMPTY:
        reasons = ", ".join(member.reason or "not provided" for member in members)
        rebalance.rebalance_or_complete(host, group, f"members left; client reason: {reasons}")
    return responses


def leave_response(member: MemberIdentity, error: ErrorCode) -> MemberResponse:
    """LeaveGroup's response for one member."""
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
        group.remove_pending(member_id)
        return ErrorCode.NONE
    else:
        error = group.check_member(member_id, member.group_instance_id)
        if error is not ErrorCode.NONE:
            return error
    group.remove_member(member_id)
    return ErrorCode.NONE
