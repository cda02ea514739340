"""UpdateFeatures (57), versions 0-2: raise or lower finalized features (KIP-584, KIP-778).

All features of a request change in one new image of the cluster, or none does: the first that can't
refuses them all, with INVALID_UPDATE_VERSION of the whole. One that is named twice counts as it is
named last. What is finalized already is so again, without error. A level has to be supported by the
controller and by all brokers; unstable ones are where ``unstable.feature.versions.enable`` says so.

An unsafe downgrade is carried out, for there is no metadata here that it could lose. With
``conformance=apache`` it is refused, as Apache Kafka 4.3.1 does.

Versions: v0 can't downgrade, for `allow_downgrade` is not heeded; v1 what kind of update it is, and
validation alone; v2 has no results of single features. The results are those of a success, with
NONE for a message; a refusal has none.
"""

from fencepost.broker.controller.controller_apis import ControllerContext
from fencepost.broker.metadata.features import FeatureUpdate, UpgradeType, update_error
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_FIRST_WITH_TYPE = 1


def handle(ctx: ControllerContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Have the controller finalize all levels that are asked for."""
    controller = ctx.controller
    updates = _updates(request, ctx.version)
    image = controller.image
    levels = {update.feature: update.level for update in updates}
    for update in updates:
        problem = update_error(
            update,
            image.features,
            updated={**image.features, **levels},
            unstable=controller.unstable_features,
            controller_id=image.voters[0],
            downgrades_unsafely=controller.downgrades_unsafely,
        )
        if problem is not None:
            return UpdateFeaturesResponse(
                error_code=ErrorCode.INVALID_UPDATE_VERSION,
                error_message="The update failed for all features since the following feature had "
                f"an error: {problem}",
            )
    if not request.validate_only:
        known = {name: level for name, level in levels.items() if name in image.features}
        controller.update_features(known)
    return UpdateFeaturesResponse(
        error_message=None,
        results=tuple(
            UpdatableFeatureResult(feature=asked.feature, error_message="NONE")
            for asked in request.feature_updates
        ),
    )


def refuse(_request: UpdateFeaturesRequest, error_code: int) -> UpdateFeaturesResponse:
    """The error of the whole."""
    return UpdateFeaturesResponse(error_code=error_code, error_message=None)


def _updates(request: UpdateFeaturesRequest, version: int) -> list[FeatureUpdate]:
    """What is wanted of each feature, in order of the request."""
    updates = {
        asked.feature: FeatureUpdate(
            feature=asked.feature,
            level=asked.max_version_level,
            upgrade_type=(
                asked.upgrade_type if version >= _FIRST_WITH_TYPE else UpgradeType.UPGRADE
            ),
        )
        for asked in request.feature_updates
    }
    return list(updates.values())
