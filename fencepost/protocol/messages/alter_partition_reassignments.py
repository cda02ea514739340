"""AlterPartitionReassignments (45), versions 0 to 1.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class ReassignablePartition(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    replicas: tuple[int, ...] | None = None


class ReassignableTopic(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    partitions: tuple[ReassignablePartition, ...] = ()


class AlterPartitionReassignmentsRequest(Struct, frozen=True, kw_only=True, gc=False):
    timeout_ms: int = 60000
    topics: tuple[ReassignableTopic, ...] = ()
    allow_replication_factor_change: bool = True  # v1+


class ReassignablePartitionResponse(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""


class ReassignableTopicResponse(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    partitions: tuple[ReassignablePartitionResponse, ...] = ()


class AlterPartitionReassignmentsResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    responses: tuple[ReassignableTopicResponse, ...] = ()
    allow_replication_factor_change: bool = True  # v1+
