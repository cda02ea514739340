"""ExpireDelegationToken (40), versions 1 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class ExpireDelegationTokenRequest:
    hmac: bytes = b""
    expiry_time_period_ms: int = 0


@struct(frozen=True, slots=True, kw_only=True)
class ExpireDelegationTokenResponse:
    error_code: int = 0
    expiry_timestamp: int = 0
    throttle_time_ms: int = 0
