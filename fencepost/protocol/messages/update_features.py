"""UpdateFeatures (57), versions 0 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class FeatureUpdateKey(Struct, frozen=True, kw_only=True, gc=False):
    feature: str = ""
    max_version_level: int = 0
    allow_downgrade: bool = False  # v0 only
    upgrade_type: int = 1  # v1+


class UpdateFeaturesRequest(Struct, frozen=True, kw_only=True, gc=False):
    timeout_ms: int = 60000
    feature_updates: tuple[FeatureUpdateKey, ...] = ()
    validate_only: bool = False  # v1+


class UpdatableFeatureResult(Struct, frozen=True, kw_only=True, gc=False):
    feature: str = ""  # v0-v1
    error_code: int = 0  # v0-v1
    error_message: str | None = ""  # v0-v1


class UpdateFeaturesResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: tuple[UpdatableFeatureResult, ...] = ()  # v0-v1
