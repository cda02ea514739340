"""DeleteTopics (20), versions 1 to 6.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from uuid import UUID

from msgspec import Struct


class DeleteTopicState(Struct, frozen=True, kw_only=True, gc=False):
    name: str | None = None  # v6+
    topic_id: UUID | None = None  # v6+


class DeleteTopicsRequest(Struct, frozen=True, kw_only=True, gc=False):
    topic_names: tuple[str, ...] = ()  # v1-v5
    timeout_ms: int = 0
    topics: tuple[DeleteTopicState, ...] = ()  # v6+


class DeletableTopicResult(Struct, frozen=True, kw_only=True, gc=False):
    name: str | None = ""
    error_code: int = 0
    error_message: str | None = None  # v5+
    topic_id: UUID | None = None  # v6+


class DeleteTopicsResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    responses: tuple[DeletableTopicResult, ...] = ()
