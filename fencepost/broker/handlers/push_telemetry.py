"""PushTelemetry (72), version 0: a client's metrics, which are checked and dropped (KIP-714).

The errors are Kafka's: INVALID_REQUEST without an instance id or after the client's terminating
push, THROTTLING_QUOTA_EXCEEDED within the push interval (the terminating push may come early),
UNKNOWN_SUBSCRIPTION_ID, UNSUPPORTED_COMPRESSION_TYPE, TELEMETRY_TOO_LARGE above
``telemetry.max.bytes``, and INVALID_RECORD for bytes that cannot be decompressed.
"""

from fencepost.broker.handlers.context import Context
from fencepost.protocol.compression import CompressionError, decompress
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.push_telemetry import (
    PushTelemetryRequest,
    PushTelemetryResponse,
)


def handle(ctx: Context, request: PushTelemetryRequest) -> PushTelemetryResponse:
    """Check a push and drop it."""
    if request.client_instance_id is None:
        return refuse(request, ErrorCode.INVALID_REQUEST)
    instance = ctx.broker.client_metrics.instance(request.client_instance_id)
    max_bytes = ctx.broker.configs.telemetry_max_bytes
    error = instance.record_push(request, now_ms=ctx.now_ms, max_bytes=max_bytes)
    if error is ErrorCode.NONE and request.metrics:
        try:
            decompress(request.compression_type, request.metrics)
        except CompressionError:
            error = ErrorCode.INVALID_RECORD
    return refuse(request, error)


def refuse(_request: PushTelemetryRequest, error_code: int) -> PushTelemetryResponse:
    """Answer with an error, or NONE."""
    return PushTelemetryResponse(error_code=error_code)
