"""ListPartitionReassignments (46), versions 0 to 0.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class ListPartitionReassignmentsTopics(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    partition_indexes: tuple[int, ...] = ()


class ListPartitionReassignmentsRequest(Struct, frozen=True, kw_only=True, gc=False):
    timeout_ms: int = 60000
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = ()


class OngoingPartitionReassignment(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


class OngoingTopicReassignment(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    partitions: tuple[OngoingPartitionReassignment, ...] = ()


class ListPartitionReassignmentsResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    topics: tuple[OngoingTopicReassignment, ...] = ()
