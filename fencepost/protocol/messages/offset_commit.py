"""OffsetCommit (8), versions 2 to 10.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from uuid import UUID

from msgspec import Struct


class OffsetCommitRequestPartition(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    committed_offset: int = 0
    committed_metadata: str | None = ""
    committed_leader_epoch: int = -1  # v6+
    timestamp: int = -1  # kip-320-draft


class OffsetCommitRequestTopic(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""  # v2-v9
    partitions: tuple[OffsetCommitRequestPartition, ...] = ()
    topic_id: UUID | None = None  # v10+


class OffsetCommitRequest(Struct, frozen=True, kw_only=True, gc=False):
    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    retention_time_ms: int = -1  # v2-v4
    topics: tuple[OffsetCommitRequestTopic, ...] = ()
    group_instance_id: str | None = None  # v7+


class OffsetCommitResponsePartition(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    error_code: int = 0


class OffsetCommitResponseTopic(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""  # v2-v9
    partitions: tuple[OffsetCommitResponsePartition, ...] = ()
    topic_id: UUID | None = None  # v10+


class OffsetCommitResponse(Struct, frozen=True, kw_only=True, gc=False):
    topics: tuple[OffsetCommitResponseTopic, ...] = ()
    throttle_time_ms: int = 0  # v3+
