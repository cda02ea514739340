"""DeleteAcls (31), versions 1-3: the ACLs that match filters go (KIP-140).

The cluster has no authorizer: each filter is SECURITY_DISABLED. One with an element of type UNKNOWN
closes the connection, as Kafka fails to parse it.

Versions: v2 compact types; v3 user resources (KIP-373).
"""

from fencepost.broker.controller.controller_apis import ControllerContext
from fencepost.broker.core.outcomes import HANG_UP, HangUp
from fencepost.broker.security.authorizer import NO_AUTHORIZER, has_unknown_elements
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


def handle(_ctx: ControllerContext, request: DeleteAclsRequest) -> DeleteAclsResponse | HangUp:
    """Refuse each filter."""
    if any(
        has_unknown_elements(
            each.resource_type_filter,
            each.pattern_type_filter,
            each.operation,
            each.permission_type,
        )
        for each in request.filters
    ):
        return HANG_UP
    return _refused(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)


def refuse(request: DeleteAclsRequest, error_code: int) -> DeleteAclsResponse:
    """The error for each filter."""
    return _refused(request, error_code, None)


def _refused(request: DeleteAclsRequest, code: int, message: str | None) -> DeleteAclsResponse:
    result = DeleteAclsFilterResult(error_code=code, error_message=message)
    return DeleteAclsResponse(filter_results=(result,) * len(request.filters))
