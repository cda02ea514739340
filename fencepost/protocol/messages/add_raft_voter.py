"""AddRaftVoter (80), versions 0 to 1.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from uuid import UUID

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class Listener:
    name: str = ""
    host: str = ""
    port: int = 0


@struct(frozen=True, slots=True, kw_only=True)
class AddRaftVoterRequest:
    cluster_id: str | None = ""
    timeout_ms: int = 0
    voter_id: int = 0
    voter_directory_id: UUID | None = None
    listeners: tuple[Listener, ...] = ()
    ack_when_committed: bool = True  # v1+


@struct(frozen=True, slots=True, kw_only=True)
class AddRaftVoterResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
