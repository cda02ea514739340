"""DescribeTopicPartitions (75), versions 0 to 0.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from uuid import UUID

from msgspec import Struct


class TopicRequest(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""


class Cursor(Struct, frozen=True, kw_only=True, gc=False):
    topic_name: str = ""
    partition_index: int = 0


class DescribeTopicPartitionsRequest(Struct, frozen=True, kw_only=True, gc=False):
    topics: tuple[TopicRequest, ...] = ()
    response_partition_limit: int = 2000
    cursor: Cursor | None = None


class DescribeTopicPartitionsResponsePartition(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: tuple[int, ...] = ()
    isr_nodes: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    offline_replicas: tuple[int, ...] = ()


class DescribeTopicPartitionsResponseTopic(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    name: str | None = ""
    topic_id: UUID | None = None
    is_internal: bool = False
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = ()
    topic_authorized_operations: int = -2147483648


class DescribeTopicPartitionsResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = ()
    next_cursor: Cursor | None = None
