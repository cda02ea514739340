"""Groups as others see them: ListGroups, DescribeGroups, DeleteGroups."""

from typing import Final

from fencepost.broker.groups.decision import Decision
from fencepost.broker.groups.durable import DurableState
from fencepost.broker.groups.group import ClassicGroup, Member
from fencepost.broker.groups.offsets import all_of_group
from fencepost.broker.groups.records import GroupRecord
from fencepost.broker.groups.state import GroupState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from fencepost.protocol.messages.list_groups import ListedGroup

CLASSIC_TYPE: Final = "classic"


def listed(group: ClassicGroup) -> ListedGroup:
    """A group's line in ListGroups."""
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=CLASSIC_TYPE,
    )


def described(group: ClassicGroup) -> DescribedGroup:
    """A group in DescribeGroups; protocol and metadata are those of a STABLE group alone."""
    protocol = group.protocol if group.state is GroupState.STABLE else None
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=tuple(_described_member(one, protocol) for one in group.members.values()),
    )


def _described_member(member: Member, protocol: str | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol is None else member.metadata(protocol),
        member_assignment=member.assignment,
    )


def not_found(group_id: str) -> DescribedGroup:
    """A group that does not exist. Before v6 a client sees only that it is Dead (KIP-1043)."""
    return DescribedGroup(
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"Group {group_id} not found.",
        group_id=group_id,
        group_state=GroupState.DEAD.value,
    )


def decide_group_deletion(state: DurableState, group: ClassicGroup | None) -> Decision[ErrorCode]:
    """Delete a group with all that it has committed, if nobody is in it."""
    if group is None:
        return Decision(response=ErrorCode.GROUP_ID_NOT_FOUND)
    if group.state is not GroupState.EMPTY:
        return Decision(response=ErrorCode.NON_EMPTY_GROUP)
    return Decision(
        response=ErrorCode.NONE,
        records=(
            *all_of_group(state, group.group_id),
            GroupRecord(group_id=group.group_id, value=None),
        ),
    )
