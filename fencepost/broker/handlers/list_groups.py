"""ListGroups (16), versions 0 to 5: the groups that this broker coordinates.

Versions: 4 states, and a filter by them (KIP-518); 5 types, and a filter by them (KIP-848). Both
filters ignore case. All groups here have the type ``classic``.
"""

from collections.abc import Iterable

from fencepost.broker.groups import requests
from fencepost.broker.handlers.context import Context
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def handle(ctx: Context, request: ListGroupsRequest) -> ListGroupsResponse:
    runtime = ctx.broker.coordinator.runtime
    if runtime.is_loading:
        return refuse(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    states, types = _names(request.states_filter), _names(request.types_filter)
    return ListGroupsResponse(
        groups=tuple(
            group
            for shard in runtime.shards.values()
            for group in requests.list_groups(shard)
            if not states or group.group_state.lower() in states
            if not types or group.group_type.lower() in types
        )
    )


def refuse(_request: ListGroupsRequest, error_code: int) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=error_code)


def _names(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.strip().lower() for name in names)
