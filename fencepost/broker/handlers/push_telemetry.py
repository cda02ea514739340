"""PushTelemetry (72), version 0: a client's metrics, which are checked and dropped (KIP-714).

The errors are Kafka's: INVALID_REQUEST without an instance id or after the client's terminating
push, THROTTLING_QUOTA_EXCEEDED within the push interval (the terminating push may come early),
UNKNOWN_SUBSCRIPTION_ID, UNSUPPORTED_COMPRESSION_TYPE, TELEMETRY_TOO_LARGE above
``telemetry.max.bytes``, and INVALID_RECORD for bytes that cannot be decompressed; these are looked
at only where clients are told of telemetry, as by the plugin of a real broker.
"""

from typing import Final
from uuid import UUID

from fencepost.broker.handlers.client_metrics import asks_for_telemetry
from fencepost.broker.handlers.context import Context
from fencepost.protocol.compression import CompressionError, decompress
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.push_telemetry import (
    PushTelemetryRequest,
    PushTelemetryResponse,
)

_RESERVED: Final = (None, UUID(int=1))
"""Ids that are no client's: zero, which is None, and that of the metadata topic."""


def handle(ctx: Context, request: PushTelemetryRequest) -> PushTelemetryResponse:
    """Check a push and drop it."""
    instance_id, broker = request.client_instance_id, ctx.broker
    if instance_id is None or instance_id in _RESERVED:
        return refuse(request, ErrorCode.INVALID_REQUEST)
    instance = broker.client_metrics.instance(
        instance_id,
        configs=broker.view.client_metrics_configs,
        client_id=ctx.client_id,
        peer=ctx.peer,
        now_ms=ctx.now_ms,
    )
    max_bytes = broker.configs.telemetry_max_bytes
    error = instance.record_push(request, now_ms=ctx.now_ms, max_bytes=max_bytes)
    is_received = request.metrics and asks_for_telemetry(broker.configs, broker.view)
    if error is ErrorCode.NONE and is_received:
        try:
            decompress(request.compression_type, request.metrics)
        except CompressionError:
            error = ErrorCode.INVALID_RECORD
    return refuse(request, error)


def refuse(_request: PushTelemetryRequest, error_code: int) -> PushTelemetryResponse:
    """Answer with an error, or NONE."""
    return PushTelemetryResponse(error_code=error_code)
