"""SaslHandshake (17), versions 0-1: the mechanism of an authentication that is to follow (KIP-43).

Every listener is a plaintext one, on which a client has nothing to authenticate: as at a real
broker the answer is ILLEGAL_SASL_STATE, names no mechanism, and the connection goes on. An event
tells that the client expects another listener.

Versions: v1 asks for SaslAuthenticate requests in place of bare tokens (KIP-152).
"""

from fencepost.broker.core.events import Kind
from fencepost.broker.handlers.context import Context
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from fencepost.protocol.other_protocols import SASL_HANDSHAKE


def handle(ctx: Context, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Refuse it."""
    ctx.broker.events.emit(
        Kind.OTHER_PROTOCOL,
        broker=ctx.broker.broker_id,
        protocol=SASL_HANDSHAKE,
        connection=ctx.peer.connection_id,
        client_id=ctx.client_id,
    )
    return refuse(request, ErrorCode.ILLEGAL_SASL_STATE)


def refuse(_request: SaslHandshakeRequest, error_code: int) -> SaslHandshakeResponse:
    """The error, without a mechanism."""
    return SaslHandshakeResponse(error_code=error_code)
