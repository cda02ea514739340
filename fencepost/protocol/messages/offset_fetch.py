"""OffsetFetch (9), versions 1 to 10.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from uuid import UUID

from msgspec import Struct


class OffsetFetchRequestTopic(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""  # v1-v7
    partition_indexes: tuple[int, ...] = ()  # v1-v7


class OffsetFetchRequestTopics(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""  # v8-v9
    partition_indexes: tuple[int, ...] = ()  # v8+
    topic_id: UUID | None = None  # v10+


class OffsetFetchRequestGroup(Struct, frozen=True, kw_only=True, gc=False):
    group_id: str = ""  # v8+
    topics: tuple[OffsetFetchRequestTopics, ...] | None = ()  # v8+
    member_id: str | None = None  # v9+
    member_epoch: int = -1  # v9+


class OffsetFetchRequest(Struct, frozen=True, kw_only=True, gc=False):
    group_id: str = ""  # v1-v7
    topics: tuple[OffsetFetchRequestTopic, ...] | None = ()  # v1-v7
    require_stable: bool = False  # v7+
    groups: tuple[OffsetFetchRequestGroup, ...] = ()  # v8+


class OffsetFetchResponsePartition(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0  # v1-v7
    committed_offset: int = 0  # v1-v7
    metadata: str | None = ""  # v1-v7
    error_code: int = 0  # v1-v7
    committed_leader_epoch: int = -1  # v5-v7
    timestamp: int = -1  # kip-320-draft


class OffsetFetchResponseTopic(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""  # v1-v7
    partitions: tuple[OffsetFetchResponsePartition, ...] = ()  # v1-v7


class OffsetFetchResponsePartitions(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0  # v8+
    committed_offset: int = 0  # v8+
    committed_leader_epoch: int = -1  # v8+
    metadata: str | None = ""  # v8+
    error_code: int = 0  # v8+


class OffsetFetchResponseTopics(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""  # v8-v9
    partitions: tuple[OffsetFetchResponsePartitions, ...] = ()  # v8+
    topic_id: UUID | None = None  # v10+


class OffsetFetchResponseGroup(Struct, frozen=True, kw_only=True, gc=False):
    group_id: str = ""  # v8+
    topics: tuple[OffsetFetchResponseTopics, ...] = ()  # v8+
    error_code: int = 0  # v8+


class OffsetFetchResponse(Struct, frozen=True, kw_only=True, gc=False):
    topics: tuple[OffsetFetchResponseTopic, ...] = ()  # v1-v7
    error_code: int = 0  # v2-v7
    throttle_time_ms: int = 0  # v3+
    groups: tuple[OffsetFetchResponseGroup, ...] = ()  # v8+
