"""DescribeGroups (15), versions 0 to 6: state and members of groups.

Only a STABLE group has a protocol and member metadata. A group that does not exist is Dead.

Versions: 3 authorized operations on request (KIP-430); 4 instance ids (KIP-345); 6 a group that
does not exist is GROUP_ID_NOT_FOUND with a message, before that no error (KIP-1043).
"""

from typing import Final

from msgspec.structs import replace

from fencepost.broker.core.outcomes import answer_in_slices
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups import requests
from fencepost.broker.handlers.context import Context
from fencepost.broker.security import authorizer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_FIRST_WITH_NOT_FOUND: Final = 6


def handle(
    ctx: Context, request: DescribeGroupsRequest
) -> DescribeGroupsResponse | Wait[DescribeGroupsResponse]:
    def describe(group_id: str) -> DescribedGroup:
        group = _describe(ctx, group_id)
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            return replace(group, authorized_operations=authorizer.GROUP)
        return group

    return answer_in_slices(
        ctx.broker.scheduler,
        request.groups,
        describe,
        lambda groups: DescribeGroupsResponse(groups=tuple(groups)),
    )


def refuse(request: DescribeGroupsRequest, error_code: int) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=tuple(_refused(group_id, error_code) for group_id in request.groups)
    )


def _describe(ctx: Context, group_id: str) -> DescribedGroup:
    shard = ctx.broker.coordinator.shard_for(group_id)
    if isinstance(shard, ErrorCode):
        return _refused(group_id, shard)
    group = requests.describe(shard, group_id)
    if ctx.version < _FIRST_WITH_NOT_FOUND and group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return replace(group, error_code=ErrorCode.NONE)
    return group


def _refused(group_id: str, error_code: int) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error_code)
