"""GetTelemetrySubscriptions (71), versions 0 to 0.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from uuid import UUID

from msgspec import Struct


class GetTelemetrySubscriptionsRequest(Struct, frozen=True, kw_only=True, gc=False):
    client_instance_id: UUID | None = None


class GetTelemetrySubscriptionsResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    client_instance_id: UUID | None = None
    subscription_id: int = 0
    accepted_compression_types: tuple[int, ...] = ()
    push_interval_ms: int = 0
    telemetry_max_bytes: int = 0
    delta_temporality: bool = False
    requested_metrics: tuple[str, ...] = ()
