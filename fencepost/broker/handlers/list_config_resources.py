"""ListConfigResources (74), versions 0 to 1: what has configs, by its kind (KIP-1000, KIP-1142).

Groups and client metrics subscriptions are listed where they have configs of their own; topics and
brokers, the latter also with their loggers, are listed always. They come in the order groups,
subscriptions, loggers, brokers, topics, whatever the order of the request. A kind that has no
configs, or that a version does not know, is UNSUPPORTED_VERSION.

Versions: v0 lists client metrics subscriptions alone, by which name the API went then; v1 the kinds
that it names, or all of them.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from fencepost.broker.controller.config_changes import ResourceType
from fencepost.broker.core.outcomes import Steps, read_each, take_turns
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers.context import Context
from fencepost.broker.metadata.image import ClusterImage, online_brokers
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

FIRST_WITH_TYPES: Final = 1


def handle(
    ctx: Context, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse | Wait[ListConfigResourcesResponse]:
    return take_turns(ctx.broker.scheduler, _read(ctx, request))


def refuse(_request: ListConfigResourcesRequest, error_code: int) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(error_code=error_code)


def _read(ctx: Context, request: ListConfigResourcesRequest) -> Steps[ListConfigResourcesResponse]:
    known = ResourceType if ctx.version >= FIRST_WITH_TYPES else [ResourceType.CLIENT_METRICS]
    asked = set((yield from read_each(request.resource_types, int))) or set(known)
    if not asked <= set(known):
        return refuse(request, ErrorCode.UNSUPPORTED_VERSION)
    resources = [
        (kind, name)
        for kind, names in _resources(ctx.broker.view).items()
        if kind in asked
        for name in names
    ]
    listed = yield from read_each(
        resources, lambda each: ConfigResource(resource_type=each[0], resource_name=each[1])
    )
    return ListConfigResourcesResponse(config_resources=tuple(listed))


def _resources(view: ClusterImage) -> Mapping[ResourceType, Iterable[str]]:
    """Names by kind, in the order of the answer."""
    brokers = [str(broker_id) for broker_id in sorted(online_brokers(view))]
    return {
        ResourceType.GROUP: view.group_configs,
        ResourceType.CLIENT_METRICS: view.client_metrics_configs,
        ResourceType.BROKER_LOGGER: brokers,
        ResourceType.BROKER: brokers,
        ResourceType.TOPIC: view.topics,
    }
