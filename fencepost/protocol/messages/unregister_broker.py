"""UnregisterBroker (64), versions 0 to 0.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class UnregisterBrokerRequest(Struct, frozen=True, kw_only=True, gc=False):
    broker_id: int = 0


class UnregisterBrokerResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
