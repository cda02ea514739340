"""ExpireDelegationToken (40), versions 1-2: a token is to be valid no longer (KIP-48).

A client on a plaintext listener is not authenticated: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, before
anything else is looked at.

Versions: v2 compact types.
"""

from typing import Final

from fencepost.broker.handlers.context import Context
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

_NO_TIME: Final = -1


def handle(_ctx: Context, request: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
    """Refuse it."""
    return refuse(request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def refuse(
    _request: ExpireDelegationTokenRequest, error_code: int
) -> ExpireDelegationTokenResponse:
    """The error, without a time."""
    return ExpireDelegationTokenResponse(error_code=error_code, expiry_timestamp=_NO_TIME)
