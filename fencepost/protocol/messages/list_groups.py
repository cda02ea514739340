"""ListGroups (16), versions 0 to 5.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class ListGroupsRequest:
    states_filter: tuple[str, ...] = ()  # v4+
    types_filter: tuple[str, ...] = ()  # v5+


@struct(frozen=True, slots=True, kw_only=True)
class ListedGroup:
    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""  # v4+
    group_type: str = ""  # v5+


@struct(frozen=True, slots=True, kw_only=True)
class ListGroupsResponse:
    error_code: int = 0
    groups: tuple[ListedGroup, ...] = ()
    throttle_time_ms: int = 0  # v1+
