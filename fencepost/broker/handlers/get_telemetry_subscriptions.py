"""GetTelemetrySubscriptions (71), version 0: the metrics that a client should push (KIP-714).

There are no subscriptions: the list of metrics is empty, and clients push nothing. A client without
an instance id gets one. A second request within the push interval is THROTTLING_QUOTA_EXCEEDED,
unless the last push was refused for its subscription id or its compression.
"""

from uuid import UUID

from fencepost.broker.handlers.client_metrics import ACCEPTED_COMPRESSION, PUSH_INTERVAL_MS
from fencepost.broker.handlers.context import Context
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)


def handle(
    ctx: Context, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    """Answer with the empty subscription and the instance id."""
    instance_id = request.client_instance_id
    if instance_id is None:
        instance_id = UUID(int=ctx.broker.rng.getrandbits(128), version=4)
    instance = ctx.broker.client_metrics.instance(instance_id)
    if not instance.may_get_subscription(ctx.now_ms):
        return refuse(request, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=ACCEPTED_COMPRESSION,
        push_interval_ms=PUSH_INTERVAL_MS,
        telemetry_max_bytes=ctx.broker.configs.telemetry_max_bytes,
        delta_temporality=True,
    )


def refuse(
    _request: GetTelemetrySubscriptionsRequest, error_code: int
) -> GetTelemetrySubscriptionsResponse:
    """Answer with an error."""
    return GetTelemetrySubscriptionsResponse(error_code=error_code)
