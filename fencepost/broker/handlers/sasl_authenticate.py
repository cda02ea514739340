"""SaslAuthenticate (36), versions 0-2: a token of an authentication (KIP-152).

Every listener is a plaintext one, and as at a real broker the answer is that of a connection that
is authenticated already: ILLEGAL_SASL_STATE.

Versions: v1 how long the session lasts (KIP-368); v2 compact types.
"""

from typing import Final

from fencepost.broker.handlers.context import Context
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)

_AUTHENTICATED: Final = "SaslAuthenticate request received after successful authentication"


def handle(_ctx: Context, _request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """Refuse it."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=_AUTHENTICATED
    )


def refuse(_request: SaslAuthenticateRequest, error_code: int) -> SaslAuthenticateResponse:
    """The error alone."""
    return SaslAuthenticateResponse(error_code=error_code, error_message=None)
