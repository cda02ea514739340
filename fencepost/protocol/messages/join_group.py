"""JoinGroup (11), versions 0 to 9.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class JoinGroupRequestProtocol(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    metadata: bytes = b""


class JoinGroupRequest(Struct, frozen=True, kw_only=True, gc=False):
    group_id: str = ""
    session_timeout_ms: int = 0
    member_id: str = ""
    protocol_type: str = ""
    protocols: tuple[JoinGroupRequestProtocol, ...] = ()
    rebalance_timeout_ms: int = -1  # v1+
    group_instance_id: str | None = None  # v5+
    reason: str | None = None  # v8+


class JoinGroupResponseMember(Struct, frozen=True, kw_only=True, gc=False):
    member_id: str = ""
    metadata: bytes = b""
    group_instance_id: str | None = None  # v5+


class JoinGroupResponse(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    generation_id: int = -1
    protocol_name: str | None = ""
    leader: str = ""
    member_id: str = ""
    members: tuple[JoinGroupResponseMember, ...] = ()
    throttle_time_ms: int = 0  # v2+
    protocol_type: str | None = None  # v7+
    skip_assignment: bool = False  # v9+
