"""DescribeProducers (61), versions 0 to 0.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from msgspec import Struct


class TopicRequest(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    partition_indexes: tuple[int, ...] = ()


class DescribeProducersRequest(Struct, frozen=True, kw_only=True, gc=False):
    topics: tuple[TopicRequest, ...] = ()


class ProducerState(Struct, frozen=True, kw_only=True, gc=False):
    producer_id: int = 0
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1


class PartitionResponse(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    active_producers: tuple[ProducerState, ...] = ()


class TopicResponse(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    partitions: tuple[PartitionResponse, ...] = ()


class DescribeProducersResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    topics: tuple[TopicResponse, ...] = ()
