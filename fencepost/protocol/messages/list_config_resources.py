"""ListConfigResources (74), versions 0 to 1.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class ListConfigResourcesRequest:
    resource_types: tuple[int, ...] = ()  # v1+


@struct(frozen=True, slots=True, kw_only=True)
class ConfigResource:
    resource_name: str = ""
    resource_type: int = 16  # v1+


@struct(frozen=True, slots=True, kw_only=True)
class ListConfigResourcesResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: tuple[ConfigResource, ...] = ()
