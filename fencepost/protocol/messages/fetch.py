"""Fetch (1), versions 4 to 18.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from uuid import UUID

from msgspec import Struct

from fencepost.protocol.byte_utils import Buffer


class FetchPartition(Struct, frozen=True, kw_only=True, gc=False):
    partition: int = 0
    fetch_offset: int = 0
    partition_max_bytes: int = 0
    log_start_offset: int = -1  # v5+
    current_leader_epoch: int = -1  # v9+
    last_fetched_epoch: int = -1  # v12+
    replica_directory_id: UUID | None = None  # v17+
    high_watermark: int = 9223372036854775807  # v18+


class FetchTopic(Struct, frozen=True, kw_only=True, gc=False):
    topic: str = ""  # v4-v12
    partitions: tuple[FetchPartition, ...] = ()
    topic_id: UUID | None = None  # v13+


class ForgottenTopic(Struct, frozen=True, kw_only=True, gc=False):
    topic: str = ""  # v7-v12
    partitions: tuple[int, ...] = ()  # v7+
    topic_id: UUID | None = None  # v13+


class ReplicaState(Struct, frozen=True, kw_only=True, gc=False):
    replica_id: int = -1  # v15+
    replica_epoch: int = -1  # v15+


class FetchRequest(Struct, frozen=True, kw_only=True, gc=False):
    replica_id: int = -1  # v4-v14
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    isolation_level: int = 0
    topics: tuple[FetchTopic, ...] = ()
    session_id: int = 0  # v7+
    session_epoch: int = -1  # v7+
    forgotten_topics_data: tuple[ForgottenTopic, ...] = ()  # v7+
    rack_id: str = ""  # v11+
    cluster_id: str | None = None  # v12+
    replica_state: ReplicaState = ReplicaState()  # v15+


class AbortedTransaction(Struct, frozen=True, kw_only=True, gc=False):
    producer_id: int = 0
    first_offset: int = 0


class EpochEndOffset(Struct, frozen=True, kw_only=True, gc=False):
    epoch: int = -1  # v12+
    end_offset: int = -1  # v12+


class LeaderIdAndEpoch(Struct, frozen=True, kw_only=True, gc=False):
    leader_id: int = -1  # v12+
    leader_epoch: int = -1  # v12+


class SnapshotId(Struct, frozen=True, kw_only=True, gc=False):
    end_offset: int = -1  # v12+
    epoch: int = -1  # v12+


class PartitionData(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    error_code: int = 0
    high_watermark: int = 0
    last_stable_offset: int = -1
    aborted_transactions: tuple[AbortedTransaction, ...] | None = ()
    records: tuple[Buffer, ...] | None = None
    log_start_offset: int = -1  # v5+
    preferred_read_replica: int = -1  # v11+
    diverging_epoch: EpochEndOffset = EpochEndOffset()  # v12+
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()  # v12+
    snapshot_id: SnapshotId = SnapshotId()  # v12+


class FetchableTopicResponse(Struct, frozen=True, kw_only=True, gc=False):
    topic: str = ""  # v4-v12
    partitions: tuple[PartitionData, ...] = ()
    topic_id: UUID | None = None  # v13+


class NodeEndpoint(Struct, frozen=True, kw_only=True, gc=False):
    node_id: int = 0  # v16+
    host: str = ""  # v16+
    port: int = 0  # v16+
    rack: str | None = None  # v16+


class FetchResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    responses: tuple[FetchableTopicResponse, ...] = ()
    error_code: int = 0  # v7+
    session_id: int = 0  # v7+
    node_endpoints: tuple[NodeEndpoint, ...] = ()  # v16+
