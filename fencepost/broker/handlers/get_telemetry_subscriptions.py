"""GetTelemetrySubscriptions (71), version 0: the metrics that a client should push (KIP-714).

The answer has the metrics of all client metrics subscriptions that the client matches, sorted, and
the shortest of their intervals; none without a subscription. A client without an instance id gets
one. A second request within the push interval is THROTTLING_QUOTA_EXCEEDED, unless the last push
was refused for its subscription id or its compression, or subscriptions have changed.

It is served also where ApiVersions does not advertise it, as at a real broker.
"""

from uuid import UUID

from fencepost.broker.handlers.client_metrics import ACCEPTED_COMPRESSION
from fencepost.broker.handlers.context import Context
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)


def handle(
    ctx: Context, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    """Answer with what the client is asked for, and its instance id."""
    instance_id = request.client_instance_id
    if instance_id is None:
        instance_id = UUID(int=ctx.broker.rng.getrandbits(128), version=4)
    instance = ctx.broker.client_metrics.instance(
        instance_id,
        configs=ctx.broker.view.client_metrics_configs,
        client_id=ctx.client_id,
        peer=ctx.peer,
        now_ms=ctx.now_ms,
    )
    if not instance.may_get_subscription(ctx.now_ms):
        return refuse(request, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=ACCEPTED_COMPRESSION,
        push_interval_ms=instance.push_interval_ms,
        telemetry_max_bytes=ctx.broker.configs.telemetry_max_bytes,
        delta_temporality=True,
        requested_metrics=instance.metrics,
    )


def refuse(
    _request: GetTelemetrySubscriptionsRequest, error_code: int
) -> GetTelemetrySubscriptionsResponse:
    """Answer with an error."""
    return GetTelemetrySubscriptionsResponse(error_code=error_code)
