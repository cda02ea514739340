"""ListGroups (16), versions 0 to 5: the groups that this broker coordinates.

Versions: 4 states, and a filter by them (KIP-518); 5 types, and a filter by them (KIP-848). Both
filters ignore case. All groups here have the type ``classic``.
"""

from collections.abc import Iterable

from fencepost.broker.core.outcomes import Steps, read_each, take_turns
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import requests
from fencepost.broker.handlers.context import Context
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def handle(
    ctx: Context, request: ListGroupsRequest
) -> ListGroupsResponse | Wait[ListGroupsResponse]:
    return take_turns(ctx.broker.scheduler, _read(ctx, request))


def _read(ctx: Context, request: ListGroupsRequest) -> Steps[ListGroupsResponse]:
    states = yield from _names(request.states_filter)
    types = yield from _names(request.types_filter)
    runtime = ctx.broker.coordinator.runtime
    if runtime.is_loading:
        return refuse(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
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


def _names(names: Iterable[str]) -> Steps[set[str]]:
    return set((yield from read_each(names, lambda name: name.strip().lower())))
