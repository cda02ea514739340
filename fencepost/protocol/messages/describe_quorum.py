"""DescribeQuorum (55), versions 0 to 2.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from uuid import UUID

from msgspec import Struct


class PartitionData(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0


class TopicData(Struct, frozen=True, kw_only=True, gc=False):
    topic_name: str = ""
    partitions: tuple[PartitionData, ...] = ()


class DescribeQuorumRequest(Struct, frozen=True, kw_only=True, gc=False):
    topics: tuple[TopicData, ...] = ()


class ReplicaState(Struct, frozen=True, kw_only=True, gc=False):
    replica_id: int = 0
    log_end_offset: int = 0
    last_fetch_timestamp: int = -1  # v1+
    last_caught_up_timestamp: int = -1  # v1+
    replica_directory_id: UUID | None = None  # v2+


class ResponsePartitionData(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    high_watermark: int = 0
    current_voters: tuple[ReplicaState, ...] = ()
    observers: tuple[ReplicaState, ...] = ()
    error_message: str | None = ""  # v2+


class ResponseTopicData(Struct, frozen=True, kw_only=True, gc=False):
    topic_name: str = ""
    partitions: tuple[ResponsePartitionData, ...] = ()


class Listener(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""  # v2+
    host: str = ""  # v2+
    port: int = 0  # v2+


class Node(Struct, frozen=True, kw_only=True, gc=False):
    node_id: int = 0  # v2+
    listeners: tuple[Listener, ...] = ()  # v2+


class DescribeQuorumResponse(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    topics: tuple[ResponseTopicData, ...] = ()
    error_message: str | None = ""  # v2+
    nodes: tuple[Node, ...] = ()  # v2+
