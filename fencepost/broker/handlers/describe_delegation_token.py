"""DescribeDelegationToken (41), versions 1-3: the tokens of owners (KIP-48).

A client on a plaintext listener is not authenticated: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, before
anything else is looked at.

Versions: v2 compact types; v3 who asked for a token, where that is not its owner (KIP-373).
"""

from fencepost.broker.handlers.context import Context
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def handle(
    _ctx: Context, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """Refuse it."""
    return refuse(request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def refuse(
    _request: DescribeDelegationTokenRequest, error_code: int
) -> DescribeDelegationTokenResponse:
    """The error, without a token."""
    return DescribeDelegationTokenResponse(error_code=error_code)
