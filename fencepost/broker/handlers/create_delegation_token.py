"""CreateDelegationToken (38), versions 1-3: a token for others to authenticate by (KIP-48).

A client on a plaintext listener is not authenticated itself: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
before anything else is looked at.

Versions: v2 compact types; v3 an owner who is not the requester (KIP-373), empty or null for none.
"""

from typing import Final

from fencepost.broker.handlers.context import Context
from fencepost.broker.security.authorizer import ANONYMOUS, Principal
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

_NO_TIME: Final = -1


def handle(_ctx: Context, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    """Refuse it."""
    return refuse(request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def refuse(request: CreateDelegationTokenRequest, error_code: int) -> CreateDelegationTokenResponse:
    """The error, with the owner and the requester, and no token."""
    owner = ANONYMOUS
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    return CreateDelegationTokenResponse(
        error_code=error_code,
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=ANONYMOUS.kind,
        token_requester_principal_name=ANONYMOUS.name,
        issue_timestamp=_NO_TIME,
        expiry_timestamp=_NO_TIME,
        max_timestamp=_NO_TIME,
    )
