"""CreatePartitions (37), versions 0 to 3.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class CreatePartitionsAssignment(Struct, frozen=True, kw_only=True, gc=False):
    broker_ids: tuple[int, ...] = ()


class CreatePartitionsTopic(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    count: int = 0
    assignments: tuple[CreatePartitionsAssignment, ...] | None = ()


class CreatePartitionsRequest(Struct, frozen=True, kw_only=True, gc=False):
    topics: tuple[CreatePartitionsTopic, ...] = ()
    timeout_ms: int = 0
    validate_only: bool = False


class CreatePartitionsTopicResult(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    error_code: int = 0
    error_message: str | None = None


class CreatePartitionsResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    results: tuple[CreatePartitionsTopicResult, ...] = ()
