"""Membership of a group: join, sync, heartbeat, leave, asked of its coordinator.

Each takes a connection to the broker that is asked, whether that coordinates the group or not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fencepost.client.calls import HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP
from fencepost.client.cluster import metadata
from fencepost.client.connection import TIMEOUT_S, Connection
from fencepost.client.consumer_protocol import (
    PROTOCOL_TYPE,
    RANGE,
    assign_by_range,
    decode_subscription,
    encode_assignment,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.heartbeat import HeartbeatRequest
from fencepost.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from fencepost.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from fencepost.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_MANY_LEAVE: Final = 3
"""From this version of LeaveGroup on, it names a list of members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who speaks in a group."""

    group: str
    member_id: str = ""
    """Empty for who is no member."""
    generation: int = -1
    instance: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer that says no more than whether it worked."""

    version: int
    throttle_time_ms: int
    error: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined(Answered):
    """The answer to JoinGroup (11)."""

    member_id: str
    generation: int
    leader_id: str
    protocol: str | None
    members: dict[str, bytes]
    """What each member wants, by member id; told to the leader alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced(Answered):
    """The answer to SyncGroup (14)."""

    assignment: bytes


async def join_group(
    connection: Connection,
    who: Identity,
    subscription: bytes,
    *,
    session_timeout_ms: int = 30_000,
    rebalance_timeout_ms: int = 30_000,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Joined:
    """JoinGroup (11) of a consumer: one request, which may answer MEMBER_ID_REQUIRED."""
    if version is None:
        version = await connection.best_version(JOIN_GROUP.api, timeout_s=timeout_s)
    request = JoinGroupRequest(
        group_id=who.group,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        member_id=who.member_id,
        group_instance_id=who.instance,
        protocol_type=PROTOCOL_TYPE,
        protocols=(JoinGroupRequestProtocol(name=RANGE, metadata=subscription),),
    )
    answer = await connection.ask(JOIN_GROUP, request, version, timeout_s=timeout_s)
    return Joined(
        version=version,
        throttle_time_ms=answer.throttle_time_ms,
        error=answer.error_code,
        member_id=answer.member_id,
        generation=answer.generation_id,
        leader_id=answer.leader,
        protocol=answer.protocol_name,
        members={each.member_id: bytes(each.metadata) for each in answer.members},
    )


async def assign(
    connection: Connection, joined: Joined, *, timeout_s: float = TIMEOUT_S
) -> list[tuple[str, bytes]]:
    """What a group's leader assigns to each member, by Kafka's range assignor.

    :param connection: To any broker: it is asked how many partitions the topics have.
    """
    wanted = {member: decode_subscription(data) for member, data in joined.members.items()}
    topics = sorted({topic for each in wanted.values() for topic in each})
    seen = await metadata(connection, topics, timeout_s=timeout_s)
    counts = {topic: len(found.partitions) for topic, found in seen.topics.items()}
    assigned = assign_by_range(wanted, counts)
    return [(member, encode_assignment(partitions)) for member, partitions in assigned.items()]


async def sync_group(
    connection: Connection,
    who: Identity,
    assignments: Sequence[tuple[str, bytes]],
    *,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Synced:
    """SyncGroup (14).

    :param assignments: Of all members by their ids, from the leader; empty from the others.
    """
    if version is None:
        version = await connection.best_version(SYNC_GROUP.api, timeout_s=timeout_s)
    request = SyncGroupRequest(
        group_id=who.group,
        generation_id=who.generation,
        member_id=who.member_id,
        group_instance_id=who.instance,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=RANGE,
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=member, assignment=assignment)
            for member, assignment in assignments
        ),
    )
    answer = await connection.ask(SYNC_GROUP, request, version, timeout_s=timeout_s)
    return Synced(
        version=version,
        throttle_time_ms=answer.throttle_time_ms,
        error=answer.error_code,
        assignment=bytes(answer.assignment),
    )


async def heartbeat(
    connection: Connection,
    who: Identity,
    *,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Answered:
    """Heartbeat (12)."""
    if version is None:
        version = await connection.best_version(HEARTBEAT.api, timeout_s=timeout_s)
    request = HeartbeatRequest(
        group_id=who.group,
        generation_id=who.generation,
        member_id=who.member_id,
        group_instance_id=who.instance,
    )
    answer = await connection.ask(HEARTBEAT, request, version, timeout_s=timeout_s)
    return Answered(
        version=version, throttle_time_ms=answer.throttle_time_ms, error=answer.error_code
    )


async def leave_group(
    connection: Connection,
    who: Identity,
    *,
    version: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Answered:
    """LeaveGroup (13) of one member."""
    if version is None:
        version = await connection.best_version(LEAVE_GROUP.api, timeout_s=timeout_s)
    if version < _MANY_LEAVE:
        request = LeaveGroupRequest(group_id=who.group, member_id=who.member_id)
    else:
        identity = MemberIdentity(member_id=who.member_id, group_instance_id=who.instance)
        request = LeaveGroupRequest(group_id=who.group, members=(identity,))
    answer = await connection.ask(LEAVE_GROUP, request, version, timeout_s=timeout_s)
    own = next((each.error_code for each in answer.members), ErrorCode.NONE)
    return Answered(
        version=version, throttle_time_ms=answer.throttle_time_ms, error=answer.error_code or own
    )
