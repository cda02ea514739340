"""JoinGroup (11), versions 0 to 9.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class JoinGroupRequestProtocol:
    name: str = ""
    metadata: bytes = b""


@struct(frozen=True, slots=True, kw_only=True)
class JoinGroupRequest:
    group_id: str = ""
    session_timeout_ms: int = 0
    member_id: str = ""
    protocol_type: str = ""
    protocols: tuple[JoinGroupRequestProtocol, ...] = ()
    rebalance_timeout_ms: int = -1  # v1+
    group_instance_id: str | None = None  # v5+
    reason: str | None = None  # v8+


@struct(frozen=True, slots=True, kw_only=True)
class JoinGroupResponseMember:
    member_id: str = ""
    metadata: bytes = b""
    group_instance_id: str | None = None  # v5+


@struct(frozen=True, slots=True, kw_only=True)
class JoinGroupResponse:
    error_code: int = 0
    generation_id: int = -1
    protocol_name: str | None = ""
    leader: str = ""
    member_id: str = ""
    members: tuple[JoinGroupResponseMember, ...] = ()
    throttle_time_ms: int = 0  # v2+
    protocol_type: str | None = None  # v7+
    skip_assignment: bool = False  # v9+
