"""ListOffsets (2), versions 1 to 11.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class ListOffsetsPartition:
    partition_index: int = 0
    timestamp: int = 0
    current_leader_epoch: int = -1  # v4+


@struct(frozen=True, slots=True, kw_only=True)
class ListOffsetsTopic:
    name: str = ""
    partitions: tuple[ListOffsetsPartition, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class ListOffsetsRequest:
    replica_id: int = 0
    topics: tuple[ListOffsetsTopic, ...] = ()
    isolation_level: int = 0  # v2+
    timeout_ms: int = 0  # v10+


@struct(frozen=True, slots=True, kw_only=True)
class ListOffsetsPartitionResponse:
    partition_index: int = 0
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1  # v4+


@struct(frozen=True, slots=True, kw_only=True)
class ListOffsetsTopicResponse:
    name: str = ""
    partitions: tuple[ListOffsetsPartitionResponse, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class ListOffsetsResponse:
    topics: tuple[ListOffsetsTopicResponse, ...] = ()
    throttle_time_ms: int = 0  # v2+
