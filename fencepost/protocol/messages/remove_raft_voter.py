"""RemoveRaftVoter (81), versions 0 to 0.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from uuid import UUID

from msgspec import Struct


class RemoveRaftVoterRequest(Struct, frozen=True, kw_only=True, gc=False):
    cluster_id: str | None = ""
    voter_id: int = 0
    voter_directory_id: UUID | None = None


class RemoveRaftVoterResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
