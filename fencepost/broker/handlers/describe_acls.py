"""DescribeAcls (29), versions 1-3: the ACLs that match a filter (KIP-140).

The cluster has no authorizer: SECURITY_DISABLED. A filter with an element of type UNKNOWN closes
the connection, as Kafka fails to parse it.

Versions: v2 compact types; v3 user resources (KIP-373).
"""

from fencepost.broker.core.outcomes import HANG_UP, HangUp
from fencepost.broker.handlers.context import Context
from fencepost.broker.security.authorizer import NO_AUTHORIZER_ON_BROKER, has_unknown_elements
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def handle(_ctx: Context, request: DescribeAclsRequest) -> DescribeAclsResponse | HangUp:
    """Refuse it."""
    if has_unknown_elements(
        request.resource_type_filter,
        request.pattern_type_filter,
        request.operation,
        request.permission_type,
    ):
        return HANG_UP
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER_ON_BROKER
    )


def refuse(_request: DescribeAclsRequest, error_code: int) -> DescribeAclsResponse:
    """The error alone."""
    return DescribeAclsResponse(error_code=error_code, error_message=None)
