"""IncrementalAlterConfigs (44), versions 0 to 1: KIP-339.

Sets, removes, appends to and subtracts from single configs of topics, brokers, groups and client
metrics subscriptions, and sets levels of loggers. Each resource is decided by itself and, where
nothing is wrong with it, changed at once; one that stands in the request twice is refused in both
places.

Versions: 1 is 0 in the compact encoding.
"""

from fencepost.broker.configs.operations import AlterConfigOp
from fencepost.broker.controller.config_changes import Alteration, ConfigChanges
from fencepost.broker.controller.controller_apis import ControllerContext
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def handle(
    ctx: ControllerContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    changes = ConfigChanges(
        registry=ctx.controller,
        broker_id=ctx.broker_id,
        any_broker=ctx.to_controller,
        layers=ctx.layers,
        replace=False,
    )
    errors = changes.apply(
        [_alteration(resource) for resource in request.resources],
        validate_only=request.validate_only,
    )
    return IncrementalAlterConfigsResponse(
        responses=tuple(
            _response(resource, ErrorCode.NONE, None)
            if error is None
            else _response(resource, error.code, error.message)
            for resource, error in zip(request.resources, errors, strict=True)
        )
    )


def refuse(
    request: IncrementalAlterConfigsRequest, error_code: int
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=tuple(_response(resource, error_code, None) for resource in request.resources)
    )


def _alteration(resource: AlterConfigsResource) -> Alteration:
    return Alteration(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        operations=[
            AlterConfigOp(name=c.name, op_type=c.config_operation, value=c.value)
            for c in resource.configs
        ],
    )


def _response(
    resource: AlterConfigsResource, error_code: int, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error_code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
