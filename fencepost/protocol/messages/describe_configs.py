"""DescribeConfigs (32), versions 1 to 4.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class DescribeConfigsResource(Struct, frozen=True, kw_only=True, gc=False):
    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: tuple[str, ...] | None = ()


class DescribeConfigsRequest(Struct, frozen=True, kw_only=True, gc=False):
    resources: tuple[DescribeConfigsResource, ...] = ()
    include_synonyms: bool = False
    include_documentation: bool = False  # v3+


class DescribeConfigsSynonym(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    value: str | None = ""
    source: int = 0


class DescribeConfigsResourceResult(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: tuple[DescribeConfigsSynonym, ...] = ()
    config_type: int = 0  # v3+
    documentation: str | None = ""  # v3+


class DescribeConfigsResult(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    configs: tuple[DescribeConfigsResourceResult, ...] = ()


class DescribeConfigsResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    results: tuple[DescribeConfigsResult, ...] = ()
