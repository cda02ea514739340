"""ListPartitionReassignments (46), versions 0 to 0.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class ListPartitionReassignmentsTopics:
    name: str = ""
    partition_indexes: tuple[int, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class ListPartitionReassignmentsRequest:
    timeout_ms: int = 60000
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = ()


@struct(frozen=True, slots=True, kw_only=True)
class OngoingPartitionReassignment:
    partition_index: int = 0
    replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class OngoingTopicReassignment:
    name: str = ""
    partitions: tuple[OngoingPartitionReassignment, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class ListPartitionReassignmentsResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    topics: tuple[OngoingTopicReassignment, ...] = ()
