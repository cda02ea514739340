"""DeleteGroups (42), versions 0 to 2: delete groups that have no members, with their offsets.

Errors: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND. A group that the request names twice is deleted once,
and has one result.

Versions: 1 and 2 equal 0; 2 is compact.
"""

from fencepost.broker.core.outcomes import gather_responses, map_response
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import requests
from fencepost.broker.groups.group_coordinator import GroupCoordinatorShard
from fencepost.broker.handlers.context import Context
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def handle(
    ctx: Context, request: DeleteGroupsRequest
) -> DeleteGroupsResponse | Wait[DeleteGroupsResponse]:
    names = tuple(dict.fromkeys(request.groups_names))
    refused: dict[str, ErrorCode] = {}
    by_shard: dict[GroupCoordinatorShard, list[str]] = {}
    for name in names:
        shard = ctx.broker.coordinator.shard_for(name)
        if isinstance(shard, ErrorCode):
            refused[name] = shard
        else:
            by_shard.setdefault(shard, []).append(name)
    deletions = [_delete(shard, of_shard) for shard, of_shard in by_shard.items()]

    def respond(deleted: list[dict[str, ErrorCode]]) -> DeleteGroupsResponse:
        codes = {name: code for results in (refused, *deleted) for name, code in results.items()}
        return DeleteGroupsResponse(
            results=tuple(
                DeletableGroupResult(group_id=name, error_code=codes[name]) for name in names
            )
        )

    return gather_responses(deletions, respond)


def refuse(request: DeleteGroupsRequest, error_code: int) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=tuple(
            DeletableGroupResult(group_id=name, error_code=error_code)
            for name in request.groups_names
        )
    )


def _delete(
    shard: GroupCoordinatorShard, names: list[str]
) -> dict[str, ErrorCode] | Wait[dict[str, ErrorCode]]:
    return map_response(
        requests.delete_groups(shard, names),
        lambda codes: dict(zip(names, codes, strict=True)),
    )
