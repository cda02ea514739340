"""CreateAcls (30), versions 1-3: new ACLs (KIP-140).

The cluster has no authorizer: each is SECURITY_DISABLED, whatever it says. One with an element of
type UNKNOWN closes the connection, as Kafka fails to parse it.

Versions: v2 compact types; v3 user resources (KIP-373).
"""

from fencepost.broker.controller.controller_apis import ControllerContext
from fencepost.broker.core.outcomes import HANG_UP, HangUp
from fencepost.broker.security.authorizer import NO_AUTHORIZER, has_unknown_elements
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


def handle(_ctx: ControllerContext, request: CreateAclsRequest) -> CreateAclsResponse | HangUp:
    """Refuse each."""
    if any(
        has_unknown_elements(
            acl.resource_type, acl.resource_pattern_type, acl.operation, acl.permission_type
        )
        for acl in request.creations
    ):
        return HANG_UP
    return _refused(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)


def refuse(request: CreateAclsRequest, error_code: int) -> CreateAclsResponse:
    """The error for each."""
    return _refused(request, error_code, None)


def _refused(request: CreateAclsRequest, code: int, message: str | None) -> CreateAclsResponse:
    result = AclCreationResult(error_code=code, error_message=message)
    return CreateAclsResponse(results=(result,) * len(request.creations))
