"""CreateTopics (19), versions 2 to 7.

Written by tools/generate_messages.py from kio's schemas; not to be edited.
"""

from uuid import UUID

from msgspec import Struct


class CreatableReplicaAssignment(Struct, frozen=True, kw_only=True, gc=False):
    partition_index: int = 0
    broker_ids: tuple[int, ...] = ()


class CreatableTopicConfig(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    value: str | None = ""


class CreatableTopic(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: tuple[CreatableReplicaAssignment, ...] = ()
    configs: tuple[CreatableTopicConfig, ...] = ()


class CreateTopicsRequest(Struct, frozen=True, kw_only=True, gc=False):
    topics: tuple[CreatableTopic, ...] = ()
    timeout_ms: int = 60000
    validate_only: bool = False


class CreatableTopicConfigs(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""  # v5+
    value: str | None = ""  # v5+
    read_only: bool = False  # v5+
    config_source: int = -1  # v5+
    is_sensitive: bool = False  # v5+


class CreatableTopicResult(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    error_code: int = 0
    error_message: str | None = ""
    topic_config_error_code: int = 0  # v5+
    num_partitions: int = -1  # v5+
    replication_factor: int = -1  # v5+
    configs: tuple[CreatableTopicConfigs, ...] | None = ()  # v5+
    topic_id: UUID | None = None  # v7+


class CreateTopicsResponse(Struct, frozen=True, kw_only=True, gc=False):
    throttle_time_ms: int = 0
    topics: tuple[CreatableTopicResult, ...] = ()
