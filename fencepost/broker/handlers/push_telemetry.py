"""PushTelemetry (72), version 0: a client's metrics, which nobody here reads (KIP-714).

A push is checked as a real broker checks it, unpacked, and dropped: INVALID_REQUEST without an
instance id or after the client's last push, THROTTLING_QUOTA_EXCEEDED before the push interval has
passed (the last push may come early), UNKNOWN_SUBSCRIPTION_ID, UNSUPPORTED_COMPRESSION_TYPE,
TELEMETRY_TOO_LARGE above ``telemetry.max.bytes``, and INVALID_RECORD for bytes that are not what
their codec says.
"""

from fencepost.broker.handlers.context import Context
from fencepost.protocol.compression import CompressionError, decompress
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.push_telemetry import (
    PushTelemetryRequest,
    PushTelemetryResponse,
)


def handle(ctx: Context, request: PushTelemetryRequest) -> PushTelemetryResponse:
    """Check a push, and forget it."""
    if request.client_instance_id is None:
        return refuse(request, ErrorCode.INVALID_REQUEST)
    instance = ctx.broker.client_metrics.instance(request.client_instance_id)
    most = ctx.broker.configs.telemetry_max_bytes
    error = instance.record_push(request, now_ms=ctx.now_ms, max_bytes=most)
    if error is ErrorCode.NONE and request.metrics:
        try:
            decompress(request.compression_type, request.metrics)
        except CompressionError:
            error = ErrorCode.INVALID_RECORD
    return refuse(request, error)


def refuse(_request: PushTelemetryRequest, error_code: int) -> PushTelemetryResponse:
    """The error alone."""
    return PushTelemetryResponse(error_code=error_code)
