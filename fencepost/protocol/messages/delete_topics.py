"""DeleteTopics (20), versions 1 to 6.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from uuid import UUID

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class DeleteTopicState:
    name: str | None = None  # v6+
    topic_id: UUID | None = None  # v6+


@struct(frozen=True, slots=True, kw_only=True)
class DeleteTopicsRequest:
    topic_names: tuple[str, ...] = ()  # v1-v5
    timeout_ms: int = 0
    topics: tuple[DeleteTopicState, ...] = ()  # v6+


@struct(frozen=True, slots=True, kw_only=True)
class DeletableTopicResult:
    name: str | None = ""
    error_code: int = 0
    error_message: str | None = None  # v5+
    topic_id: UUID | None = None  # v6+


@struct(frozen=True, slots=True, kw_only=True)
class DeleteTopicsResponse:
    throttle_time_ms: int = 0
    responses: tuple[DeletableTopicResult, ...] = ()
