"""DescribeGroups (15), versions 0 to 6.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class DescribeGroupsRequest(Struct, frozen=True, kw_only=True, gc=False):
    groups: tuple[str, ...] = ()
    include_authorized_operations: bool = False  # v3+


class DescribedGroupMember(Struct, frozen=True, kw_only=True, gc=False):
    member_id: str = ""
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""
    group_instance_id: str | None = None  # v4+


class DescribedGroup(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedGroupMember, ...] = ()
    authorized_operations: int = -2147483648  # v3+
    error_message: str | None = None  # v6+


class DescribeGroupsResponse(Struct, frozen=True, kw_only=True, gc=False):
    groups: tuple[DescribedGroup, ...] = ()
    throttle_time_ms: int = 0  # v1+
