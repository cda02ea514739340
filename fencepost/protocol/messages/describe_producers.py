"""DescribeProducers (61), versions 0 to 0.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from fencepost.protocol.messages import struct


@struct(frozen=True, slots=True, kw_only=True)
class TopicRequest:
    name: str = ""
    partition_indexes: tuple[int, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class DescribeProducersRequest:
    topics: tuple[TopicRequest, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class ProducerState:
    producer_id: int = 0
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1


@struct(frozen=True, slots=True, kw_only=True)
class PartitionResponse:
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    active_producers: tuple[ProducerState, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class TopicResponse:
    name: str = ""
    partitions: tuple[PartitionResponse, ...] = ()


@struct(frozen=True, slots=True, kw_only=True)
class DescribeProducersResponse:
    throttle_time_ms: int = 0
    topics: tuple[TopicResponse, ...] = ()
