"""Produce (0), versions 3 to 13.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from uuid import UUID

from msgspec import Struct

from fencepost.protocol.byte_utils import Buffer


class PartitionProduceData(Struct, frozen=True, kw_only=True, gc=False):
    index: int = 0
    records: Buffer | None = None


class TopicProduceData(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""  # v3-v12
    partition_data: tuple[PartitionProduceData, ...] = ()
    topic_id: UUID | None = None  # v13+


class ProduceRequest(Struct, frozen=True, kw_only=True, gc=False):
    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: tuple[TopicProduceData, ...] = ()


class BatchIndexAndErrorMessage(Struct, frozen=True, kw_only=True, gc=False):
    batch_index: int = 0  # v8+
    batch_index_error_message: str | None = None  # v8+


class LeaderIdAndEpoch(Struct, frozen=True, kw_only=True, gc=False):
    leader_id: int = -1  # v10+
    leader_epoch: int = -1  # v10+


class PartitionProduceResponse(Struct, frozen=True, kw_only=True, gc=False):
    index: int = 0
    error_code: int = 0
    base_offset: int = 0
    log_append_time_ms: int = -1
    log_start_offset: int = -1  # v5+
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = ()  # v8+
    error_message: str | None = None  # v8+
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()  # v10+


class TopicProduceResponse(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""  # v3-v12
    partition_responses: tuple[PartitionProduceResponse, ...] = ()
    topic_id: UUID | None = None  # v13+


class NodeEndpoint(Struct, frozen=True, kw_only=True, gc=False):
    node_id: int = 0  # v10+
    host: str = ""  # v10+
    port: int = 0  # v10+
    rack: str | None = None  # v10+


class ProduceResponse(Struct, frozen=True, kw_only=True, gc=False):
    responses: tuple[TopicProduceResponse, ...] = ()
    throttle_time_ms: int = 0
    node_endpoints: tuple[NodeEndpoint, ...] = ()  # v10+
