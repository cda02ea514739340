"""ListConfigResources (74), versions 0 to 1.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class ListConfigResourcesRequest(Struct, frozen=True, kw_only=True, gc=False):
    resource_types: tuple[int, ...] = ()  # v1+


class ConfigResource(Struct, frozen=True, kw_only=True, gc=False):
    resource_name: str = ""
    resource_type: int = 16  # v1+


class ListConfigResourcesResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: tuple[ConfigResource, ...] = ()
