"""LeaveGroup (13), versions 0 to 5: remove members from a group.

A static member stays in its group when its client stops; an admin removes it by its instance id.

Versions: 3 several members, each with its own error, and static ones (KIP-345); 5 reasons
(KIP-800). Before 3 the response has the one member's error.
"""

from typing import Final

from fencepost.broker.core.outcomes import map_response
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import requests
from fencepost.broker.handlers.context import Context
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)

_FIRST_WITH_MANY_MEMBERS: Final = 3


def handle(
    ctx: Context, request: LeaveGroupRequest
) -> LeaveGroupResponse | Wait[LeaveGroupResponse]:
    shard = ctx.broker.coordinator.shard_for_named_group(request.group_id)
    if isinstance(shard, ErrorCode):
        return refuse(request, shard)
    if ctx.version >= _FIRST_WITH_MANY_MEMBERS:
        return requests.leave(shard, request.group_id, request.members)
    alone = (MemberIdentity(member_id=request.member_id),)
    return map_response(requests.leave(shard, request.group_id, alone), _of_one)


def _of_one(left: LeaveGroupResponse) -> LeaveGroupResponse:
    """The response before v3: the group's error, or else the one member's."""
    codes = (left.error_code, *(member.error_code for member in left.members))
    return LeaveGroupResponse(error_code=next(filter(None, codes), ErrorCode.NONE))


def refuse(_request: LeaveGroupRequest, error_code: int) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error_code)
