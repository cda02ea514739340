"""Metadata (3), versions 0 to 13.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from uuid import UUID

from msgspec import Struct


class MetadataRequestTopic(Struct, frozen=True, kw_only=True, gc=False):
    name: str | None = ""
    topic_id: UUID | None = None  # v10+


class MetadataRequest(Struct, frozen=True, kw_only=True, gc=False):
    topics: tuple[MetadataRequestTopic, ...] | None = ()
    allow_auto_topic_creation: bool = True  # v4+
    include_cluster_authorized_operations: bool = False  # v8-v10
    include_topic_authorized_operations: bool = False  # v8+


class MetadataResponseBroker(Struct, frozen=True, kw_only=True, gc=False):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None  # v1+


class MetadataResponsePartition(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    replica_nodes: tuple[int, ...] = ()
    isr_nodes: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()  # v5+
    leader_epoch: int = -1  # v7+


class MetadataResponseTopic(Struct, frozen=True, kw_only=True, gc=False):
    error_code: int = 0
    name: str | None = ""
    partitions: tuple[MetadataResponsePartition, ...] = ()
    is_internal: bool = False  # v1+
    topic_authorized_operations: int = -2147483648  # v8+
    topic_id: UUID | None = None  # v10+


class MetadataResponse(Struct, frozen=True, kw_only=True, gc=False):
    brokers: tuple[MetadataResponseBroker, ...] = ()
    topics: tuple[MetadataResponseTopic, ...] = ()
    controller_id: int = -1  # v1+
    cluster_id: str | None = None  # v2+
    throttle_time_ms: int = 0  # v3+
    cluster_authorized_operations: int = -2147483648  # v8-v10
    error_code: int = 0  # v13+
