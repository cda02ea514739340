"""SyncGroup (14), versions 0 to 5.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class SyncGroupRequestAssignment(Struct, frozen=True, kw_only=True, gc=False):
    member_id: str = ""
    assignment: bytes = b""


class SyncGroupRequest(Struct, frozen=True, kw_only=True, gc=False):
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    assignments: tuple[SyncGroupRequestAssignment, ...] = ()
    group_instance_id: str | None = None  # v3+
    protocol_type: str | None = None  # v5+
    protocol_name: str | None = None  # v5+


class SyncGroupResponse(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    assignment: bytes = b""
    throttle_time_ms: int = 0  # v1+
    protocol_type: str | None = None  # v5+
    protocol_name: str | None = None  # v5+
