"""DeleteAcls (31), versions 1 to 3.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class DeleteAclsFilter(Struct, frozen=True, kw_only=True, gc=False):
    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0


class DeleteAclsRequest(Struct, frozen=True, kw_only=True, gc=False):
    filters: tuple[DeleteAclsFilter, ...] = ()


class DeleteAclsMatchingAcl(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class DeleteAclsFilterResult(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    error_message: str | None = ""
    matching_acls: tuple[DeleteAclsMatchingAcl, ...] = ()


class DeleteAclsResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    filter_results: tuple[DeleteAclsFilterResult, ...] = ()
