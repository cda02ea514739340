"""DeleteGroups (42), versions 0 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class DeleteGroupsRequest(Struct, frozen=True, kw_only=True, gc=False):
    groups_names: tuple[str, ...] = ()


class DeletableGroupResult(Struct, frozen=True, kw_only=True, gc=False):
    group_id: str = ""
    error_code: int = 0


class DeleteGroupsResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    results: tuple[DeletableGroupResult, ...] = ()
