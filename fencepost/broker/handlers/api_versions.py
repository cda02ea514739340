"""ApiVersions (18), versions 0-4: what this broker serves (KIP-35, KIP-482, KIP-511).

The list is the API table, under the ceilings of the broker (``--api-max``, ``--like-kafka``, and
the level of ``metadata.version``), without what they leave nothing of. Telemetry (71, 72) is in it
only where it is asked for: otherwise clients would request their subscriptions for nothing. Of
features only those are supported that stand for what is served here, with their unstable levels
where ``unstable.feature.versions.enable`` says so, and the draft of
``--dialect``: a client asks for it by a tagged field (v3+), and its connection speaks it from then
on. The epoch of the finalized ones is the number of the view: as at a real broker it rises whenever
anything changes, and not with features alone.

A version of this API that is not served is answered by the edge, with UNSUPPORTED_VERSION in a
version 0 body: closing makes librdkafka repeat it for ever.

Versions: v1 throttle time; v3 the client's software name and version, which must look like such,
and features in the answer; v4 supported features whose lowest level
is 0, that is off.
"""

import re
from typing import Final

from fencepost.broker.handlers.client_metrics import asks_for_telemetry
from fencepost.broker.handlers.context import ListenerContext, ListenerNode
from fencepost.broker.metadata.features import finalized, supported_features
from fencepost.protocol.apis import APIS, BY_NAME
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

FIRST_WITH_SOFTWARE: Final = 3
_FIRST_WITH_OFF: Final = 4
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
TELEMETRY: Final = ("get_telemetry_subscriptions", "push_telemetry")
_ALL: Final = tuple(
    ApiVersion(api_key=api.key, min_version=api.advertised_min, max_version=api.max_version)
    for api in APIS
)
_WITHOUT_TELEMETRY: Final = tuple(
    each for api, each in zip(APIS, _ALL, strict=True) if api.name not in TELEMETRY
)
_OWN: Final = BY_NAME["api_versions"]
_FEATURES: Final = {
    unstable: tuple(
        SupportedFeatureKey(name=name, min_version=low, max_version=high)
        for name, (low, high) in supported_features(unstable=unstable).items()
    )
    for unstable in (False, True)
}
"""The supported ones, by whether unstable levels are."""


def handle(ctx: ListenerContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """List the APIs, and remember who asks."""
    if ctx.version >= FIRST_WITH_SOFTWARE:
        name, version = request.client_software_name, request.client_software_version
        if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version)):
            return refuse(request, ErrorCode.INVALID_REQUEST)
        ctx.peer.software_name, ctx.peer.software_version = name, version
    features = _FEATURES[ctx.broker.configs.unstable_feature_versions_enable]
    if ctx.version < _FIRST_WITH_OFF:
        features = tuple(feature for feature in features if feature.min_version > 0)
    view, dialect = ctx.broker.view, ctx.broker.dialect
    if dialect is not None:
        features += (SupportedFeatureKey(name=dialect.feature, min_version=1, max_version=1),)
        if request.dialect_requested:
            ctx.peer.dialect = dialect
    return ApiVersionsResponse(
        api_keys=_served(ctx.broker),
        supported_features=features,
        finalized_features_epoch=view.version,
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in finalized(view.features).items()
        ),
    )


def refuse(_request: ApiVersionsRequest, error_code: int) -> ApiVersionsResponse:
    """The error alone; for UNSUPPORTED_VERSION with the versions of this API itself (KIP-511)."""
    keys = (_own(_OWN.max_version),) if error_code == ErrorCode.UNSUPPORTED_VERSION else ()
    return ApiVersionsResponse(error_code=error_code, api_keys=keys)


def refuse_version(node: ListenerNode) -> ApiVersionsResponse:
    """The answer, in version 0, to a version of this API that the broker does not serve."""
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=(_own(node.max_version(_OWN)),)
    )


def _own(max_version: int) -> ApiVersion:
    return ApiVersion(api_key=_OWN.key, min_version=_OWN.min_version, max_version=max_version)


def _served(node: ListenerNode) -> tuple[ApiVersion, ...]:
    with_telemetry = asks_for_telemetry(node.configs, node.view)
    if not node.version_limits:
        return _ALL if with_telemetry else _WITHOUT_TELEMETRY
    return tuple(
        ApiVersion(
            api_key=api.key,
            min_version=api.advertised_min,
            max_version=node.max_version(api),
        )
        for api in APIS
        if node.serves(api) and (with_telemetry or api.name not in TELEMETRY)
    )
