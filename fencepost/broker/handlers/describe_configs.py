"""DescribeConfigs (32), versions 1 to 4.

Answers every config of a topic, of the broker that is asked, or of all brokers by default (an empty
broker name: only what is set dynamically), with its source, and on request with its synonyms and a
line of documentation. Groups and client metrics subscriptions without configs answer the defaults,
whether or not there is one of that name. Loggers are those of this server.

Versions: 3 adds the type of a config and its documentation.

An unknown kind of resource refuses the whole request, as at a real broker.
"""

from collections.abc import Collection
from typing import Final

from msgspec.structs import replace

from fencepost.broker.configs import config_entries
from fencepost.broker.configs.config_def import ConfigError
from fencepost.broker.configs.config_layers import NO_CONFIGS
from fencepost.broker.controller.config_changes import ResourceType, parse_node_id
from fencepost.broker.controller.topic_changes import topic_name_problem
from fencepost.broker.core.outcomes import answer_in_slices
from fencepost.broker.core.waits import Wait
from fencepost.broker.handlers.context import ListenerContext
from fencepost.protocol.errors import MALFORMED_REQUEST, ErrorCode
from fencepost.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

_KNOWN = frozenset(ResourceType)
MAX_ENTRIES: Final = 1_000_000
"""Configs in one answer: those of 20,000 topics."""
_TOO_MANY: Final = f"The answer has more than {MAX_ENTRIES} configs: name fewer resources."


def handle(
    ctx: ListenerContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse | Wait[DescribeConfigsResponse]:
    if any(resource.resource_type not in _KNOWN for resource in request.resources):
        return _refused(request, ErrorCode.INVALID_REQUEST, MALFORMED_REQUEST)
    # A resource that is named again is answered again, by the same objects.
    known: dict[DescribeConfigsResource, DescribeConfigsResult] = {}
    entries = 0

    def describe(resource: DescribeConfigsResource) -> DescribeConfigsResult:
        nonlocal entries
        result = known.get(resource)
        if result is None:
            result = known[resource] = _result(ctx, request, resource)
        entries += len(result.configs)
        if entries > MAX_ENTRIES:
            return _error(resource, ErrorCode.POLICY_VIOLATION, _TOO_MANY)
        return result

    return answer_in_slices(
        ctx.broker.scheduler,
        request.resources,
        describe,
        lambda results: DescribeConfigsResponse(results=tuple(results)),
    )


def refuse(request: DescribeConfigsRequest, error_code: int) -> DescribeConfigsResponse:
    return _refused(request, error_code, None)


def _refused(
    request: DescribeConfigsRequest, error_code: int, message: str | None
) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=tuple(_error(resource, error_code, message) for resource in request.resources)
    )


def _error(
    resource: DescribeConfigsResource, error_code: int, message: str | None
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error_code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _result(
    ctx: ListenerContext, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    found = _entries(ctx, resource)
    if isinstance(found, ConfigError):
        return _error(resource, found.code, found.message)
    return DescribeConfigsResult(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(_as_asked(entry, request) for entry in found),
    )


def _as_asked(
    entry: DescribeConfigsResourceResult, request: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    if request.include_synonyms and request.include_documentation:
        return entry
    return replace(
        entry,
        synonyms=entry.synonyms if request.include_synonyms else (),
        documentation=entry.documentation if request.include_documentation else None,
    )


def _entries(
    ctx: ListenerContext, resource: DescribeConfigsResource
) -> config_entries.Entries | ConfigError:
    name, keys = resource.resource_name, frozenset(resource.configuration_keys or ()) or None
    match resource.resource_type:
        case ResourceType.TOPIC:
            return _topic(ctx, name, keys)
        case ResourceType.BROKER:
            return _broker(ctx, name, keys)
        case ResourceType.BROKER_LOGGER:
            return _loggers(ctx, name, keys)
        case ResourceType.CLIENT_METRICS:
            if not name:
                return _invalid_request("Client metrics subscription name must not be empty")
            configs = ctx.broker.view.client_metrics_configs.get(name, NO_CONFIGS)
            return config_entries.client_metrics_entries(configs, keys)
        case _:
            if not name:
                return _invalid_request("Group name must not be empty")
            configs = ctx.broker.view.group_configs.get(name, NO_CONFIGS)
            return config_entries.group_entries(ctx.broker.configs.layers, configs, keys)


def _topic(
    ctx: ListenerContext, name: str, keys: Collection[str] | None
) -> config_entries.Entries | ConfigError:
    problem = topic_name_problem(name)
    if problem is not None:
        return ConfigError(
            code=ErrorCode.INVALID_TOPIC_EXCEPTION, message=f"Topic name is invalid: {problem}"
        )
    view = ctx.broker.view
    if name not in view.topics:
        return ConfigError(code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message="")
    return config_entries.topic_entries(ctx.broker.configs.layers, view.configs_of(name), keys)


def _broker(
    ctx: ListenerContext, name: str, keys: Collection[str] | None
) -> config_entries.Entries | ConfigError:
    layers = ctx.broker.configs.layers
    if not name:
        return config_entries.cluster_default_entries(layers, keys)
    return _not_this_broker(ctx, name, " or empty string,") or config_entries.broker_entries(
        layers, keys
    )


def _loggers(
    ctx: ListenerContext, name: str, keys: Collection[str] | None
) -> config_entries.Entries | ConfigError:
    if not name:
        return _invalid_request("Broker id must not be empty")
    return _not_this_broker(ctx, name, "") or config_entries.logger_entries(
        ctx.broker.log_levels, keys
    )


def _not_this_broker(ctx: ListenerContext, name: str, otherwise: str) -> ConfigError | None:
    broker_id = parse_node_id(name)
    if broker_id is None:
        return _invalid_request(f"Broker id must be an integer, but it is: {name}")
    if broker_id != ctx.broker.broker_id:
        return _invalid_request(
            f"Unexpected broker id, expected {ctx.broker.broker_id}{otherwise} but received {name}"
        )
    return None


def _invalid_request(message: str) -> ConfigError:
    return ConfigError(code=ErrorCode.INVALID_REQUEST, message=message)
