"""SyncGroup (14), versions 0 to 5: a member fetches its assignment, the leader sends all of them.

The response waits until the leader's assignment is committed.

Versions: 3 static members (KIP-345); 5 protocol type and name are mandatory and must be the
group's, INCONSISTENT_GROUP_PROTOCOL otherwise (KIP-559).
"""

from typing import Final

from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import requests
from fencepost.broker.handlers.context import Context
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_FIRST_WITH_PROTOCOL: Final = 5


def handle(ctx: Context, request: SyncGroupRequest) -> SyncGroupResponse | Wait[SyncGroupResponse]:
    names_protocol = request.protocol_type is not None and request.protocol_name is not None
    if ctx.version >= _FIRST_WITH_PROTOCOL and not names_protocol:
        return refuse(request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    shard = ctx.broker.coordinator.shard_for_named_group(request.group_id)
    if isinstance(shard, ErrorCode):
        return refuse(request, shard)
    answer: Wait[SyncGroupResponse] = Wait()
    requests.sync(shard, request, answer)
    return answer


def refuse(_request: SyncGroupRequest, error_code: int) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error_code)
