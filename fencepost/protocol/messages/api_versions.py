"""ApiVersions (18), versions 0 to 4.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class ApiVersionsRequest(Struct, frozen=True, kw_only=True, gc=False):
    client_software_name: str = ""  # v3+
    client_software_version: str = ""  # v3+
    dialect_requested: bool = False  # kip-320-draft


class ApiVersion(Struct, frozen=True, kw_only=True, gc=False):
    api_key: int = 0
    min_version: int = 0
    max_version: int = 0


class SupportedFeatureKey(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""  # v3+
    min_version: int = 0  # v3+
    max_version: int = 0  # v3+


class FinalizedFeatureKey(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""  # v3+
    max_version_level: int = 0  # v3+
    min_version_level: int = 0  # v3+


class ApiVersionsResponse(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    api_keys: tuple[ApiVersion, ...] = ()
    throttle_time_ms: int = 0  # v1+
    supported_features: tuple[SupportedFeatureKey, ...] = ()  # v3+
    finalized_features_epoch: int = -1  # v3+
    finalized_features: tuple[FinalizedFeatureKey, ...] = ()  # v3+
    zk_migration_ready: bool = False  # v3+
