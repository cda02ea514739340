"""Groups as the control API shows them."""

from collections.abc import Iterator, Mapping
from typing import Final

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.groups.classic_group import ClassicGroup
from fencepost.broker.groups.classic_group_member import ClassicGroupMember
from fencepost.broker.groups.records import CommittedOffset
from fencepost.broker.node import group_actions
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.node.group_actions import FoundGroup
from fencepost.broker.node.record_actions import readable_range
from fencepost.client.consumer_protocol import decode_assignment
from fencepost.client.errors import MalformedAnswer
from fencepost.verbs.answers.groups import (
    CommittedOffsetState,
    GroupsState,
    GroupState,
    ListedGroup,
    MemberState,
)
from fencepost.verbs.group_bodies import GroupStateName

_NO_OFFSET: Final = -1
_NOT_COMMITTED: Final = CommittedOffset(offset=_NO_OFFSET, commit_timestamp_ms=0)
Partition = tuple[str, int]


def groups_state(cluster: Cluster) -> GroupsState:
    """All groups, by name."""
    return GroupsState(
        groups=tuple(
            ListedGroup(group=found.group.group_id, type="classic", state=_state_name(found.group))
            for found in group_actions.all_groups(cluster)
        )
    )


def group_state(cluster: Cluster, found: FoundGroup) -> GroupState:
    """One group, with its members and offsets."""
    group = found.group
    return GroupState(
        group=group.group_id,
        type="classic",
        state=_state_name(group),
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        coordinator=found.coordinator,
        offsets_partition=found.offsets_partition,
        members=tuple(_member_state(group, member) for member in group.members.values()),
        offsets=tuple(offset_states(cluster, found)),
    )


def _state_name(group: ClassicGroup) -> GroupStateName:
    return group.state.value


def _member_state(group: ClassicGroup, member: ClassicGroupMember) -> MemberState:
    partitions = sorted(_assigned(group, member))
    return MemberState(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=tuple(f"{topic}-{index}" for topic, index in partitions),
    )


def _assigned(group: ClassicGroup, member: ClassicGroupMember) -> list[Partition]:
    """The partitions of a member; none where its assignment cannot be read."""
    if not group.uses_consumer_protocol:
        return []
    try:
        return decode_assignment(member.assignment)
    except MalformedAnswer:
        return []


def offset_states(cluster: Cluster, found: FoundGroup) -> Iterator[CommittedOffsetState]:
    """The partitions that a group has offsets of, or has assigned, by topic and partition."""
    committed: dict[Partition, CommittedOffset] = {
        (topic, index): offset for topic, index, offset in found.committed_offsets()
    }
    owners: Mapping[Partition, str] = {
        partition: member.member_id
        for member in found.group.members.values()
        for partition in _assigned(found.group, member)
    }
    for topic, index in sorted(committed.keys() | owners.keys()):
        offset = committed.get((topic, index), _NOT_COMMITTED)
        end = _log_end(cluster, topic, index)
        is_known = end >= 0 and offset is not _NOT_COMMITTED
        yield CommittedOffsetState(
            topic=topic,
            partition=index,
            committed_offset=offset.offset,
            leader_epoch=offset.leader_epoch,
            log_end_offset=end,
            lag=end - offset.offset if is_known else None,
            member_id=owners.get((topic, index)),
        )


def _log_end(cluster: Cluster, topic: str, index: int) -> int:
    """Where a partition ends for consumers; -1 while it has no leader, or is no more."""
    try:
        return readable_range(cluster, topic, index).end
    except ControllerError:
        return _NO_OFFSET
