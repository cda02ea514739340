"""ExpireDelegationToken (40), versions 1 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class ExpireDelegationTokenRequest(Struct, frozen=True, kw_only=True, gc=False):
    hmac: bytes = b""
    expiry_time_period_ms: int = 0


class ExpireDelegationTokenResponse(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    expiry_timestamp: int = 0
    throttle_time_ms: int = 0
