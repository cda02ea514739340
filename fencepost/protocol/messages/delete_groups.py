"""DeleteGroups (42), versions 0 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class DeleteGroupsRequest:
    groups_names: tuple[str, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class DeletableGroupResult:
    group_id: str = ""
    error_code: int = 0


@struct(frozen=True, slots=True, kw_only=True)
class DeleteGroupsResponse:
    throttle_time_ms: int = 0
    results: tuple[DeletableGroupResult, ...] = ()
