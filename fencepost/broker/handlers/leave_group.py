"""LeaveGroup (13), versions 0 to 5: members go, or are sent away.

A static member stays in its group when its client stops; an admin sends it away by its instance id.

Versions: 3 many members, each with an error of its own, and static ones (KIP-345); 5 reasons
(KIP-800). Before 3 the one member's error is the answer's.
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
    if not request.group_id:
        return refuse(request, ErrorCode.INVALID_GROUP_ID)
    shard = ctx.broker.coordinator.shard_for(request.group_id)
    if isinstance(shard, ErrorCode):
        return refuse(request, shard)
    if ctx.version >= _FIRST_WITH_MANY_MEMBERS:
        return requests.leave(shard, request.group_id, request.members)
    alone = (MemberIdentity(member_id=request.member_id),)
    return map_response(requests.leave(shard, request.group_id, alone), _of_one)


def _of_one(left: LeaveGroupResponse) -> LeaveGroupResponse:
    """The answer before v3: the one member's error, if the group has none."""
    codes = (left.error_code, *(member.error_code for member in left.members))
    return LeaveGroupResponse(error_code=next(filter(None, codes), ErrorCode.NONE))


def refuse(_request: LeaveGroupRequest, error_code: int) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error_code)
