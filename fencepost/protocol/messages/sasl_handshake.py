"""SaslHandshake (17), versions 0 to 1.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class SaslHandshakeRequest:
    mechanism: str = ""


@struct(frozen=True, slots=True, kw_only=True)
class SaslHandshakeResponse:
    error_code: int = 0
    mechanisms: tuple[str, ...] = ()
