"""PushTelemetry (72), versions 0 to 0.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from uuid import UUID

from msgspec import Struct


class PushTelemetryRequest(Struct, frozen=True, kw_only=True, gc=False):
    client_instance_id: UUID | None = None
    subscription_id: int = 0
    terminating: bool = False
    compression_type: int = 0
    metrics: bytes = b""


class PushTelemetryResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
