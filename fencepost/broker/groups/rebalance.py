"""The rebalance of a classic group: its transitions and the timers that cause them.

Each function moves one group one step, with the clock, the configs and the log of its shard.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Protocol
from uuid import UUID

from fencepost.broker.core.scheduler import Scheduler, Timer
from fencepost.broker.groups.classic_group import ClassicGroup, ClassicGroupState
from fencepost.broker.groups.classic_group_member import ClassicGroupMember
from fencepost.broker.groups.group_config import GroupConfig
from fencepost.broker.groups.records import CoordinatorRecord, GroupRecord
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from fencepost.protocol.messages.sync_group import SyncGroupResponse


class RebalanceContext(Protocol):
    """What a rebalance needs of the group's shard."""

    config: GroupConfig
    scheduler: Scheduler
    rng: Random

    def write(
        self, records: Sequence[CoordinatorRecord], done: Callable[[ErrorCode], None]
    ) -> None:
        """Append and replay records.

        :param done: Called with NONE once they are committed, or with the error.
        """
        ...


def new_member_id(host: RebalanceContext, prefix: str) -> str:
    """A new member id."""
    return f"{prefix}-{UUID(int=host.rng.getrandbits(128), version=4)}"


# -- preparing -----------------------------------------------------------------------------------


def rebalance_or_complete(host: RebalanceContext, group: ClassicGroup, reason: str) -> None:
    """Begin a rebalance, or complete the one under way if all members have joined."""
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        complete_if_all_joined(host, group)
    else:
        prepare_rebalance(host, group, reason)


def prepare_rebalance(host: RebalanceContext, group: ClassicGroup, reason: str) -> None:
    """Begin a rebalance."""
    group.rebalance_reason = reason
    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        for member in group.members.values():
            member.assignment = b""
        _propagate(host, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_syncs.clear()
    _cancel(group.sync_timer)
    initial = group.state is ClassicGroupState.EMPTY
    group.transition_to(ClassicGroupState.PREPARING_REBALANCE, host.scheduler.wall_ms())
    if initial:
        delay_ms = host.config.initial_rebalance_delay_ms
        remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        _complete_after(
            host, group, delay_ms, lambda: _extend_initial(host, group, delay_ms, remaining_ms)
        )
    elif group.all_joined:
        complete_join(host, group)
    else:
        _complete_after(host, group, group.rebalance_timeout_ms, lambda: complete_join(host, group))


def complete_if_all_joined(host: RebalanceContext, group: ClassicGroup) -> None:
    """Complete the join phase if all members have joined and there is no initial delay."""
    waiting = group.state is ClassicGroupState.PREPARING_REBALANCE
    if waiting and group.previous_state is not ClassicGroupState.EMPTY and group.all_joined:
        complete_join(host, group)


def _extend_initial(
    host: RebalanceContext, group: ClassicGroup, delay_ms: int, remaining_ms: int
) -> None:
    """The initial delay is over: wait again if a member joined during it (KIP-134)."""
    if not group.new_member_added or remaining_ms == 0:
        complete_join(host, group)
        return
    group.new_member_added = False
    next_ms = min(host.config.initial_rebalance_delay_ms, remaining_ms)
    left_ms = max(remaining_ms - delay_ms, 0)
    _complete_after(host, group, next_ms, lambda: _extend_initial(host, group, next_ms, left_ms))


def complete_join(host: RebalanceContext, group: ClassicGroup) -> None:
    """Complete the join phase: remove members that did not join, begin the next generation."""
    _cancel(group.join_timer)
    missing = [
        member
        for member in group.members.values()
        if member.joining is None and not member.is_static
    ]
    for member in missing:
        group.remove_member(member.member_id)
    if not group.ensure_joined_leader() and group.members:
        # Only static members are left and none has joined: wait for their session timeouts.
        _complete_after(host, group, group.rebalance_timeout_ms, lambda: complete_join(host, group))
        return
    group.next_generation(host.scheduler.wall_ms())
    if group.state is ClassicGroupState.EMPTY:
        record = GroupRecord(group_id=group.group_id, value=group.to_stored({}))
        # If the append fails, a failover restores the last generation, whose members time out.
        host.write([record], lambda _: None)
        return
    for member in list(group.members.values()):
        member.answer_join(join_response(group, member.member_id))
        expect_heartbeat(host, group, member)
        member.is_new = False
        group.pending_syncs.add(member.member_id)
    group.sync_timer = _reset_timer(
        group.sync_timer, host, group.rebalance_timeout_ms, lambda: _expire_syncs(host, group)
    )


def join_response(
    group: ClassicGroup, member_id: str, *, skip_assignment: bool = False
) -> JoinGroupResponse:
    """The response to a JoinGroup: the leader's has the subscriptions of all members."""
    members: tuple[JoinGroupResponseMember, ...] = ()
    if member_id == group.leader_id and group.protocol is not None:
        members = tuple(
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(group.protocol),
            )
            for member in group.members.values()
        )
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader_id or "",
        member_id=member_id,
        members=members,
        skip_assignment=skip_assignment,
    )


# -- completing ----------------------------------------------------------------------------------


def store_assignment(
    host: RebalanceContext, group: ClassicGroup, assignments: Mapping[str, bytes]
) -> None:
    """Store the leader's assignment; once it is committed, answer the parked SyncGroups."""
    generation = group.generation
    record = GroupRecord(group_id=group.group_id, value=group.to_stored(assignments))

    def stored(error: ErrorCode) -> None:
        # A rebalance may have begun while the record was replicated.
        if (
            group.state is not ClassicGroupState.COMPLETING_REBALANCE
            or generation != group.generation
        ):
            return
        if error is not ErrorCode.NONE:
            _propagate(host, group, error)
            prepare_rebalance(host, group, f"the assignment could not be stored: {error.name}")
            return
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        _propagate(host, group, ErrorCode.NONE)
        group.transition_to(ClassicGroupState.STABLE, host.scheduler.wall_ms())

    host.write([record], stored)


def sync_response(group: ClassicGroup, member: ClassicGroupMember) -> SyncGroupResponse:
    """The response to a SyncGroup."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        assignment=member.assignment,
    )


def on_synced(group: ClassicGroup, member_id: str) -> None:
    """A member has sent its SyncGroup; after the last one the sync timer stops."""
    group.pending_syncs.discard(member_id)
    if not group.pending_syncs:
        _cancel(group.sync_timer)


def _propagate(host: RebalanceContext, group: ClassicGroup, error: ErrorCode) -> None:
    """Answer every parked SyncGroup, and expect heartbeats from these members."""
    for member in list(group.members.values()):
        response = (
            sync_response(group, member)
            if error is ErrorCode.NONE
            else SyncGroupResponse(error_code=error)
        )
        if member.answer_sync(response):
            expect_heartbeat(host, group, member)


def _expire_syncs(host: RebalanceContext, group: ClassicGroup) -> None:
    """Remove the members that have not sent SyncGroup within the rebalance timeout.

    The timer stops when all have sent it, and when the next rebalance begins.
    """
    late = sorted(group.pending_syncs)
    for member_id in late:
        group.remove_member(member_id)
    prepare_rebalance(host, group, f"removing {', '.join(late)}: no SyncGroup in time")


# -- sessions ------------------------------------------------------------------------------------


def expect_heartbeat(
    host: RebalanceContext,
    group: ClassicGroup,
    member: ClassicGroupMember,
    within_ms: int | None = None,
) -> None:
    """Restart a member's session timer, with its session timeout or with another time."""
    timeout_ms = member.session_timeout_ms if within_ms is None else within_ms
    member.session = _reset_timer(
        member.session, host, timeout_ms, lambda: _expire_session(host, group, member)
    )


def expect_join(
    host: RebalanceContext, group: ClassicGroup, member_id: str, within_ms: int
) -> None:
    """Drop an assigned member id unless the member joins in time (KIP-394)."""

    def expire() -> None:
        group.remove_pending(member_id)
        if group.state is ClassicGroupState.PREPARING_REBALANCE and group.all_joined:
            complete_join(host, group)

    group.pending_joins[member_id] = host.scheduler.at(host.scheduler.now_ms() + within_ms, expire)


def _expire_session(
    host: RebalanceContext, group: ClassicGroup, member: ClassicGroupMember
) -> None:
    if group.members.get(member.member_id) is member and not member.awaits_response:
        remove_member(host, group, member.member_id, f"{member.member_id} was silent too long")


def remove_member(host: RebalanceContext, group: ClassicGroup, member_id: str, reason: str) -> None:
    """Remove a member, and rebalance without it."""
    group.remove_member(member_id)
    if group.state in {ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE}:
        prepare_rebalance(host, group, reason)
    elif group.state is ClassicGroupState.PREPARING_REBALANCE and group.all_joined:
        complete_join(host, group)


# -- unload --------------------------------------------------------------------------------------


def unload(group: ClassicGroup, now_ms: int) -> None:
    """End a group that this broker does not coordinate any more: answer its parked requests."""
    group.transition_to(ClassicGroupState.DEAD, now_ms)
    _cancel(group.join_timer)
    _cancel(group.sync_timer)
    for member_id in list(group.pending_joins):
        group.remove_pending(member_id)
    for member in list(group.members.values()):
        member.end_session()
        member.answer_join(
            JoinGroupResponse(
                error_code=ErrorCode.NOT_COORDINATOR,
                member_id=member.member_id,
                protocol_name=None,
            )
        )
        member.answer_sync(SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))


def _complete_after(
    host: RebalanceContext, group: ClassicGroup, delay_ms: int, callback: Callable[[], None]
) -> None:
    group.join_timer = _reset_timer(group.join_timer, host, delay_ms, callback)


def _reset_timer(
    timer: Timer | None, host: RebalanceContext, delay_ms: int, callback: Callable[[], None]
) -> Timer:
    """The timer with a new deadline: a group or a member has one timer of each kind."""
    deadline_ms = host.scheduler.now_ms() + max(delay_ms, 0)
    if timer is None or timer.deadline_ms is None:
        return host.scheduler.at(deadline_ms, callback)
    timer.callback = callback
    timer.move_to(deadline_ms)
    return timer


def _cancel(timer: Timer | None) -> None:
    if timer is not None:
        timer.end()
