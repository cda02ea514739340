"""Heartbeat (12), versions 0 to 4.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class HeartbeatRequest:
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None  # v3+


@struct(frozen=True, slots=True, kw_only=True)
class HeartbeatResponse:
    error_code: int = 0
    throttle_time_ms: int = 0  # v1+
