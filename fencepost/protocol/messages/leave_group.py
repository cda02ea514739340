"""LeaveGroup (13), versions 0 to 5.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class MemberIdentity(Struct, frozen=True, kw_only=True, gc=False):
    member_id: str = ""  # v3+
    group_instance_id: str | None = None  # v3+
    reason: str | None = None  # v5+


class LeaveGroupRequest(Struct, frozen=True, kw_only=True, gc=False):
    group_id: str = ""
    member_id: str = ""  # v0-v2
    members: tuple[MemberIdentity, ...] = ()  # v3+


class MemberResponse(Struct, frozen=True, kw_only=True, gc=False):
    member_id: str = ""  # v3+
    group_instance_id: str | None = ""  # v3+
    error_code: int = 0  # v3+


class LeaveGroupResponse(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    throttle_time_ms: int = 0  # v1+
    members: tuple[MemberResponse, ...] = ()  # v3+
