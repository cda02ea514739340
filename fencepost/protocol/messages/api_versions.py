"""ApiVersions (18), versions 0 to 4.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class ApiVersionsRequest:
    client_software_name: str = ""  # v3+
    client_software_version: str = ""  # v3+
    dialect_requested: bool = False  # kip-320-draft


@struct(frozen=True, slots=True, kw_only=True)
class ApiVersion:
    api_key: int = 0
    min_version: int = 0
    max_version: int = 0


@struct(frozen=True, slots=True, kw_only=True)
class SupportedFeatureKey:
    name: str = ""  # v3+
    min_version: int = 0  # v3+
    max_version: int = 0  # v3+


@struct(frozen=True, slots=True, kw_only=True)
class FinalizedFeatureKey:
    name: str = ""  # v3+
    max_version_level: int = 0  # v3+
    min_version_level: int = 0  # v3+


@struct(frozen=True, slots=True, kw_only=True)
class ApiVersionsResponse:
    error_code: int = 0
    api_keys: tuple[ApiVersion, ...] = ()
    throttle_time_ms: int = 0  # v1+
    supported_features: tuple[SupportedFeatureKey, ...] = ()  # v3+
    finalized_features_epoch: int = -1  # v3+
    finalized_features: tuple[FinalizedFeatureKey, ...] = ()  # v3+
    zk_migration_ready: bool = False  # v3+
