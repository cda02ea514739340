"""DescribeCluster (60), versions 0-2: the brokers or the controller, and the cluster id (KIP-700).

Versions: v1 the kind of endpoint (KIP-919): a broker's listener tells of brokers, the controller's
of controllers, and the other kind is MISMATCHED_ENDPOINT_TYPE (in v0 INVALID_REQUEST), anything
else UNSUPPORTED_ENDPOINT_TYPE; v2 fenced brokers on request (KIP-1073).
"""

from typing import Final

from fencepost.broker.handlers.context import ListenerContext
from fencepost.broker.security import authorizer
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS: Final = 1
CONTROLLERS: Final = 2
_NAMES: Final = {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}
_FIRST_WITH_TYPE: Final = 1


def handle(ctx: ListenerContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Describe the cluster as this node sees it."""
    node, view = ctx.broker, ctx.broker.view
    wanted, here = request.endpoint_type, CONTROLLERS if node.is_controller else BROKERS
    if wanted not in _NAMES:
        return _error(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {wanted}")
    if wanted != here:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        return _error(
            code if ctx.version >= _FIRST_WITH_TYPE else ErrorCode.INVALID_REQUEST,
            f"The request was sent to an endpoint of type {_NAMES[here]}, "
            f"but we wanted an endpoint of type {_NAMES[wanted]}",
        )
    wants_operations = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        endpoint_type=here,
        cluster_id=view.cluster_id,
        controller_id=view.voters[0] if node.is_controller else view.controller_id,
        brokers=_controllers(ctx) if node.is_controller else _brokers(ctx, request),
        cluster_authorized_operations=(
            authorizer.CLUSTER if wants_operations else authorizer.NOT_REQUESTED
        ),
    )


def refuse(_request: DescribeClusterRequest, error_code: int) -> DescribeClusterResponse:
    """The error alone."""
    return _error(error_code, None)


def _brokers(
    ctx: ListenerContext, request: DescribeClusterRequest
) -> tuple[DescribeClusterBroker, ...]:
    return tuple(
        DescribeClusterBroker(
            broker_id=b.broker_id,
            host=ctx.host_of(b),
            port=ctx.port_of(b),
            rack=b.rack,
            is_fenced=b.fenced,
        )
        for b in ctx.broker.view.brokers.values()
        if request.include_fenced_brokers or not b.fenced
    )


def _controllers(ctx: ListenerContext) -> tuple[DescribeClusterBroker, ...]:
    """The active one alone: no other listens."""
    where = ctx.broker.view.controller_address
    if where is None:
        return ()
    host = where.host or ctx.peer.listener_host
    return (
        DescribeClusterBroker(
            broker_id=ctx.broker.view.voters[0], host=host, port=where.port, rack=None
        ),
    )


def _error(code: int, message: str | None) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=message)
