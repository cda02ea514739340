"""AddRaftVoter (80), versions 0 to 1.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from uuid import UUID

from msgspec import Struct


class Listener(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    host: str = ""
    port: int = 0


class AddRaftVoterRequest(Struct, frozen=True, kw_only=True, gc=False):
    cluster_id: str | None = ""
    timeout_ms: int = 0
    voter_id: int = 0
    voter_directory_id: UUID | None = None
    listeners: tuple[Listener, ...] = ()
    ack_when_committed: bool = True  # v1+


class AddRaftVoterResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
