"""ListGroups (16), versions 0 to 5.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class ListGroupsRequest(Struct, frozen=True, kw_only=True, gc=False):
    states_filter: tuple[str, ...] = ()  # v4+
    types_filter: tuple[str, ...] = ()  # v5+


class ListedGroup(Struct, frozen=True, kw_only=True, gc=False):
    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""  # v4+
    group_type: str = ""  # v5+


class ListGroupsResponse(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    groups: tuple[ListedGroup, ...] = ()
    throttle_time_ms: int = 0  # v1+
