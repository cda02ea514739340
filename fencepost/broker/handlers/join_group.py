"""JoinGroup (11), versions 0 to 9: join a group's next generation.

The response waits until all members have joined, or until the rebalance timeout. A member whose
client disconnects is removed after its session timeout. The states of a group are described in
``fencepost.broker.groups.classic_group``.

Versions: 1 a rebalance timeout (before: the session timeout); 4 a new member gets its id first,
MEMBER_ID_REQUIRED (KIP-394); 5 static members (KIP-345); 7 protocol type in the response, and a
nullable protocol name (KIP-559); 8 the client's reason (KIP-800); 9 the response can ask a
returning static leader to skip the assignment (KIP-814).
"""

from typing import Final

from msgspec.structs import replace

from fencepost.broker.core.outcomes import map_response
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import requests
from fencepost.broker.groups.classic_membership import JoinAttempt, join_error
from fencepost.broker.handlers.context import Context
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

_FIRST_WITH_REBALANCE_TIMEOUT: Final = 1
_FIRST_WITH_KNOWN_MEMBER_ID: Final = 4
_FIRST_WITH_NULL_PROTOCOL: Final = 7
_FIRST_WITH_SKIPPED_ASSIGNMENT: Final = 9


def handle(ctx: Context, request: JoinGroupRequest) -> JoinGroupResponse | Wait[JoinGroupResponse]:
    return map_response(_join(ctx, request), lambda response: _as_of(ctx.version, response))


def refuse(_request: JoinGroupRequest, error_code: int) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error_code)


def _join(ctx: Context, request: JoinGroupRequest) -> JoinGroupResponse | Wait[JoinGroupResponse]:
    config = ctx.broker.coordinator.config
    timeout_ms = request.session_timeout_ms
    if not request.group_id:
        return join_error(ErrorCode.INVALID_GROUP_ID, request.member_id)
    if not config.min_session_timeout_ms <= timeout_ms <= config.max_session_timeout_ms:
        return join_error(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id)
    shard = ctx.broker.coordinator.shard_for(request.group_id)
    if isinstance(shard, ErrorCode):
        return join_error(shard)
    has_rebalance_timeout = ctx.version >= _FIRST_WITH_REBALANCE_TIMEOUT
    answer: Wait[JoinGroupResponse] = Wait()
    requests.join(
        shard,
        JoinAttempt(
            request=request,
            rebalance_timeout_ms=(
                request.rebalance_timeout_ms if has_rebalance_timeout else timeout_ms
            ),
            client_id=ctx.client_id or "",
            client_host=f"/{ctx.peer.host}",
            member_id_required=ctx.version >= _FIRST_WITH_KNOWN_MEMBER_ID,
            can_skip_assignment=ctx.version >= _FIRST_WITH_SKIPPED_ASSIGNMENT,
            answer=answer,
        ),
    )
    return answer


def _as_of(version: int, response: JoinGroupResponse) -> JoinGroupResponse:
    """No protocol is the empty string, or null in the versions that have it, as in Kafka."""
    none = "" if version < _FIRST_WITH_NULL_PROTOCOL else None
    if response.protocol_name or response.protocol_name == none:
        return response
    return replace(response, protocol_name=none)
