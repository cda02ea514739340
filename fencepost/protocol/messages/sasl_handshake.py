"""SaslHandshake (17), versions 0 to 1.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class SaslHandshakeRequest(Struct, frozen=True, kw_only=True, gc=False):
    mechanism: str = ""


class SaslHandshakeResponse(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    mechanisms: tuple[str, ...] = ()
