"""AlterPartitionReassignments (45), versions 0 to 1.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class ReassignablePartition:
    partition_index: int = 0
    replicas: tuple[int, ...] | None = None


@struct(frozen=True, slots=True, kw_only=True)
class ReassignableTopic:
    name: str = ""
    partitions: tuple[ReassignablePartition, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class AlterPartitionReassignmentsRequest:
    timeout_ms: int = 60000
    topics: tuple[ReassignableTopic, ...] = ()
    allow_replication_factor_change: bool = True  # v1+


@struct(frozen=True, slots=True, kw_only=True)
class ReassignablePartitionResponse:
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""


@struct(frozen=True, slots=True, kw_only=True)
class ReassignableTopicResponse:
    name: str = ""
    partitions: tuple[ReassignablePartitionResponse, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class AlterPartitionReassignmentsResponse:
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    responses: tuple[ReassignableTopicResponse, ...] = ()
    allow_replication_factor_change: bool = True  # v1+
