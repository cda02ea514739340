"""Heartbeat (12), versions 0 to 4: a member is alive, and learns whether it has to join again.

While the group is being loaded every heartbeat is welcome: nobody can say otherwise yet.

Versions: 3 static members (KIP-345).
"""

from fencepost.broker.core.outcomes import map_response
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import requests
from fencepost.broker.handlers.context import Context
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(ctx: Context, request: HeartbeatRequest) -> HeartbeatResponse | Wait[HeartbeatResponse]:
    if not request.group_id:
        return refuse(request, ErrorCode.INVALID_GROUP_ID)
    shard = ctx.broker.coordinator.shard_for(request.group_id)
    if shard is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return HeartbeatResponse()
    if isinstance(shard, ErrorCode):
        return refuse(request, shard)
    return map_response(
        requests.heartbeat(shard, request), lambda error: HeartbeatResponse(error_code=error)
    )


def refuse(_request: HeartbeatRequest, error_code: int) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error_code)
