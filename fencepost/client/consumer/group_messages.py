"""The requests of a member of a classic group, and what the group's leader assigns."""

from collections.abc import Iterable, Mapping
from typing import Final

from fencepost.client.consumer.config import ConsumerConfig
from fencepost.client.consumer_protocol import (
    PROTOCOL_TYPE,
    RANGE,
    assign_by_range,
    encode_assignment,
    encode_subscription,
)
from fencepost.client.model import ConsumerGroupMetadata
from fencepost.protocol.messages.heartbeat import HeartbeatRequest
from fencepost.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from fencepost.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from fencepost.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_MANY_LEAVE: Final = 3
"""From this version of LeaveGroup on, it names a list of members."""


def join_request(
    member: ConsumerGroupMetadata, topics: Iterable[str], config: ConsumerConfig
) -> JoinGroupRequest:
    """JoinGroup (11) of a member that wants the partitions of some topics."""
    subscription = encode_subscription(sorted(topics))
    return JoinGroupRequest(
        group_id=member.group,
        session_timeout_ms=config.session_timeout_ms,
        rebalance_timeout_ms=config.max_poll_interval_ms,
        member_id=member.member_id,
        group_instance_id=member.instance,
        protocol_type=PROTOCOL_TYPE,
        protocols=(JoinGroupRequestProtocol(name=RANGE, metadata=subscription),),
    )


def sync_request(
    member: ConsumerGroupMetadata, assignments: Iterable[SyncGroupRequestAssignment]
) -> SyncGroupRequest:
    """SyncGroup (14).

    :param assignments: Of all members, from the leader; none from the others.
    """
    return SyncGroupRequest(
        group_id=member.group,
        generation_id=member.generation,
        member_id=member.member_id,
        group_instance_id=member.instance,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=RANGE,
        assignments=tuple(assignments),
    )


def assign(
    members: Mapping[str, list[str]], counts: Mapping[str, int]
) -> list[SyncGroupRequestAssignment]:
    """What the leader assigns to each member, by Kafka's range assignor.

    :param members: The topics that each member wants, by member id.
    :param counts: How many partitions each topic has.
    """
    return [
        SyncGroupRequestAssignment(member_id=member, assignment=encode_assignment(partitions))
        for member, partitions in assign_by_range(members, counts).items()
    ]


def heartbeat_request(member: ConsumerGroupMetadata) -> HeartbeatRequest:
    """Heartbeat (12)."""
    return HeartbeatRequest(
        group_id=member.group,
        generation_id=member.generation,
        member_id=member.member_id,
        group_instance_id=member.instance,
    )


def leave_request(group: str, member_id: str, version: int) -> LeaveGroupRequest:
    """LeaveGroup (13) of one member."""
    if version < _MANY_LEAVE:
        return LeaveGroupRequest(group_id=group, member_id=member_id)
    return LeaveGroupRequest(group_id=group, members=(MemberIdentity(member_id=member_id),))
