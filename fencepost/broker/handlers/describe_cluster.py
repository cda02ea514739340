"""DescribeCluster (60), versions 0-2: the brokers and the cluster id (KIP-700).

Versions: v1 the kind of endpoint (KIP-919): brokers are served, controllers are
MISMATCHED_ENDPOINT_TYPE, because this is no controller's listener, and anything else is
UNSUPPORTED_ENDPOINT_TYPE; v2 fenced brokers on request (KIP-1073).
"""

from typing import Final

from fencepost.broker.handlers.context import Context
from fencepost.broker.security import authorizer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS: Final = 1
CONTROLLERS: Final = 2


def handle(ctx: Context, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Describe the cluster as this broker sees it."""
    endpoint_type = request.endpoint_type
    if endpoint_type == CONTROLLERS:
        return _error(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, "
            "but we wanted an endpoint of type CONTROLLER",
        )
    if endpoint_type != BROKERS:
        return _error(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {endpoint_type}"
        )
    view = ctx.broker.view
    wants_operations = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=view.cluster_id,
        controller_id=view.controller_id,
        brokers=tuple(
            DescribeClusterBroker(
                broker_id=b.broker_id,
                host=ctx.host_of(b),
                port=b.port,
                rack=b.rack,
                is_fenced=b.fenced,
            )
            for b in view.brokers.values()
            if request.include_fenced_brokers or not b.fenced
        ),
        cluster_authorized_operations=(
            authorizer.CLUSTER if wants_operations else authorizer.NOT_REQUESTED
        ),
    )


def refuse(_request: DescribeClusterRequest, error_code: int) -> DescribeClusterResponse:
    """The error alone."""
    return _error(error_code, None)


def _error(code: int, message: str | None) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=message)
