"""Heartbeat (12), versions 0 to 4.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class HeartbeatRequest(Struct, frozen=True, kw_only=True, gc=False):
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None  # v3+


class HeartbeatResponse(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    throttle_time_ms: int = 0  # v1+
