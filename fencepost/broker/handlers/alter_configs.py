"""AlterConfigs (33), versions 0 to 2.

Replaces all the dynamic configs of a topic or a broker by those of the request; what it leaves out
goes back to its default. Clients of today send IncrementalAlterConfigs instead. A resource that
stands in the request twice is refused in both places (Apache Kafka 4.3.1 never answers then).

Versions: 1 is 0, 2 is 1 in the compact encoding.
"""

from fencepost.broker.configs.operations import AlterConfigOp
from fencepost.broker.controller.config_changes import Alteration, ConfigChanges
from fencepost.broker.controller.controller_apis import ControllerContext
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def handle(ctx: ControllerContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    changes = ConfigChanges(
        registry=ctx.controller,
        broker_id=ctx.broker_id,
        any_broker=ctx.to_controller,
        layers=ctx.layers,
        replace=True,
    )
    errors = changes.apply(
        [_alteration(resource) for resource in request.resources],
        validate_only=request.validate_only,
    )
    return AlterConfigsResponse(
        responses=tuple(
            _response(resource, ErrorCode.NONE, None)
            if error is None
            else _response(resource, error.code, error.message)
            for resource, error in zip(request.resources, errors, strict=True)
        )
    )


def refuse(request: AlterConfigsRequest, error_code: int) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=tuple(_response(resource, error_code, None) for resource in request.resources)
    )


def _alteration(resource: AlterConfigsResource) -> Alteration:
    return Alteration(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        operations=[AlterConfigOp(name=c.name, value=c.value) for c in resource.configs],
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
