"""AlterConfigs (33), versions 0 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class AlterableConfig(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    value: str | None = ""


class AlterConfigsResource(Struct, frozen=True, kw_only=True, gc=False):
    resource_type: int = 0
    resource_name: str = ""
    configs: tuple[AlterableConfig, ...] = ()


class AlterConfigsRequest(Struct, frozen=True, kw_only=True, gc=False):
    resources: tuple[AlterConfigsResource, ...] = ()
    validate_only: bool = False


class AlterConfigsResourceResponse(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""


class AlterConfigsResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    responses: tuple[AlterConfigsResourceResponse, ...] = ()
