"""ListOffsets (2), versions 1 to 11.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class ListOffsetsPartition(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    timestamp: int = 0
    current_leader_epoch: int = -1  # v4+


class ListOffsetsTopic(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    partitions: tuple[ListOffsetsPartition, ...] = ()


class ListOffsetsRequest(Struct, frozen=True, kw_only=True, gc=False):
    replica_id: int = 0
    topics: tuple[ListOffsetsTopic, ...] = ()
    isolation_level: int = 0  # v2+
    timeout_ms: int = 0  # v10+


class ListOffsetsPartitionResponse(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1  # v4+


class ListOffsetsTopicResponse(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    partitions: tuple[ListOffsetsPartitionResponse, ...] = ()


class ListOffsetsResponse(Struct, frozen=True, kw_only=True, gc=False):
    topics: tuple[ListOffsetsTopicResponse, ...] = ()
    throttle_time_ms: int = 0  # v2+
