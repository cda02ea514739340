"""SaslAuthenticate (36), versions 0 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class SaslAuthenticateRequest(Struct, frozen=True, kw_only=True, gc=False):
    auth_bytes: bytes = b""


class SaslAuthenticateResponse(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0  # v1+
