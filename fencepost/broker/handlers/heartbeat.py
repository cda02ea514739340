"""Heartbeat (12), versions 0 to 4: restart a member's session; the response may ask it to rejoin.

While the group's shard is loading every heartbeat succeeds, because members are not known yet.

Versions: 3 static members (KIP-345).
"""

from fencepost.broker.core.outcomes import map_response
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import requests
from fencepost.broker.handlers.context import Context
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(ctx: Context, request: HeartbeatRequest) -> HeartbeatResponse | Wait[HeartbeatResponse]:
    shard = ctx.broker.coordinator.shard_for_named_group(request.group_id)
    if shard is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return HeartbeatResponse()
    if isinstance(shard, ErrorCode):
        return refuse(request, shard)
    return map_response(
        requests.heartbeat(shard, request), lambda error: HeartbeatResponse(error_code=error)
    )


def refuse(_request: HeartbeatRequest, error_code: int) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error_code)
