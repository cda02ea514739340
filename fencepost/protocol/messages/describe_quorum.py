"""DescribeQuorum (55), versions 0 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from uuid import UUID

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class PartitionData:
    partition_index: int = 0


@struct(frozen=True, slots=True, kw_only=True)
class TopicData:
    topic_name: str = ""
    partitions: tuple[PartitionData, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class DescribeQuorumRequest:
    topics: tuple[TopicData, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    replica_id: int = 0
    log_end_offset: int = 0
    last_fetch_timestamp: int = -1  # v1+
    last_caught_up_timestamp: int = -1  # v1+
    replica_directory_id: UUID | None = None  # v2+


@struct(frozen=True, slots=True, kw_only=True)
class ResponsePartitionData:
    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    high_watermark: int = 0
    current_voters: tuple[ReplicaState, ...] = ()
    observers: tuple[ReplicaState, ...] = ()
    error_message: str | None = ""  # v2+


@struct(frozen=True, slots=True, kw_only=True)
class ResponseTopicData:
    topic_name: str = ""
    partitions: tuple[ResponsePartitionData, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class Listener:
    name: str = ""  # v2+
    host: str = ""  # v2+
    port: int = 0  # v2+


@struct(frozen=True, slots=True, kw_only=True)
class Node:
    node_id: int = 0  # v2+
    listeners: tuple[Listener, ...] = ()  # v2+


@struct(frozen=True, slots=True, kw_only=True)
class DescribeQuorumResponse:
    error_code: int = 0
    topics: tuple[ResponseTopicData, ...] = ()
    error_message: str | None = ""  # v2+
    nodes: tuple[Node, ...] = ()  # v2+
