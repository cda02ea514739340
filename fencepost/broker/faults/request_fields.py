"""Where each API names topics, partitions and groups: in its requests, and in its answers.

One table for all, so that a fault can be about a part of a request whatever the API. Names of
fields are those of the message classes.
"""

from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final, TypeAlias

from fencepost.protocol.apis import Api
from fencepost.protocol.codec.schema import message_schema

FieldName: TypeAlias = str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFields:
    """Where a request names topics, and where its answer tells of them."""

    request_fields: tuple[FieldName, ...] = ("topics",)
    """Fields of the request; an element is a struct, or the name itself."""
    name: FieldName = "name"
    """Of a topic, in request and answer."""
    partitions: FieldName | None = "partitions"
    """Of a topic in the request; None where it names no partitions."""
    index: FieldName | None = "partition_index"
    """Of a partition there; None where partitions are plain numbers."""
    response_field: FieldName | None = "topics"
    """Of the answer; None where it has no room for an error of a topic or partition."""
    response_partitions: FieldName | None = "partitions"
    """Of a topic in the answer; None where it tells of topics alone."""
    response_index: FieldName = "partition_index"
    """Of a partition there."""
    one_error_for_all: bool = False
    """Whether null (or nothing, as ``none_below`` says) asks for all topics, and so for each."""
    none_below: int = 0
    """Below this version no topics at all ask for all."""
    resources: bool = False
    """Whether topics are among resources of other types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFields:
    """Where a request names groups (or transactional ids), one or many."""

    one: FieldName | None = None
    """A field of the request."""
    many: FieldName | None = None
    """Another that has several, as plain texts; they can be answered apart."""
    response_field: FieldName | None = None
    """Where the answer tells of each."""
    kind: int | None = None
    """The ``key_type`` that such a key has; None where there is no other type."""


_EVERY_VERSION: Final = 1 << 15
_PRODUCE: Final = TopicFields(
    request_fields=("topic_data",),
    partitions="partition_data",
    index="index",
    response_field="responses",
    response_partitions="partition_responses",
    response_index="index",
)
_CONFIGS: Final = TopicFields(
    request_fields=("resources",),
    name="resource_name",
    partitions=None,
    response_field="results",
    response_partitions=None,
    resources=True,
)
_CHANGED_CONFIGS: Final = TopicFields(
    request_fields=("resources",),
    name="resource_name",
    partitions=None,
    response_field="responses",
    response_partitions=None,
    resources=True,
)
_PLAIN: Final = TopicFields()

TOPICS: Final = MappingProxyType(
    {
        "produce": _PRODUCE,
        "fetch": TopicFields(name="topic", index="partition", response_field="responses"),
        "list_offsets": _PLAIN,
        "metadata": TopicFields(partitions=None, one_error_for_all=True, none_below=1),
        "offset_commit": _PLAIN,
        "offset_fetch": TopicFields(
            partitions="partition_indexes", index=None, one_error_for_all=True
        ),
        "create_topics": TopicFields(partitions=None, response_partitions=None),
        "delete_topics": TopicFields(
            request_fields=("topic_names", "topics"),
            partitions=None,
            response_field="responses",
            response_partitions=None,
        ),
        "delete_records": _PLAIN,
        "offset_for_leader_epoch": TopicFields(
            name="topic", index="partition", response_index="partition"
        ),
        "describe_configs": _CONFIGS,
        "alter_configs": _CHANGED_CONFIGS,
        "incremental_alter_configs": _CHANGED_CONFIGS,
        "describe_log_dirs": TopicFields(name="topic", index=None, response_field=None),
        "create_partitions": TopicFields(
            partitions=None, response_field="results", response_partitions=None
        ),
        "elect_leaders": TopicFields(
            request_fields=("topic_partitions",),
            name="topic",
            index=None,
            response_field="replica_election_results",
            response_partitions="partition_result",
            response_index="partition_id",
        ),
        "alter_partition_reassignments": TopicFields(response_field="responses"),
        "list_partition_reassignments": TopicFields(
            partitions="partition_indexes", index=None, response_field=None
        ),
        "offset_delete": _PLAIN,
        "describe_producers": TopicFields(partitions="partition_indexes", index=None),
        "describe_quorum": TopicFields(name="topic_name"),
        "describe_topic_partitions": TopicFields(
            partitions=None, one_error_for_all=True, none_below=_EVERY_VERSION
        ),
    }
)
"""By API name; the others name no topics."""

_OWN: Final = KeyFields(one="group_id")
GROUPS: Final = MappingProxyType(
    {
        "offset_commit": _OWN,
        "offset_fetch": _OWN,
        "offset_delete": _OWN,
        "join_group": _OWN,
        "heartbeat": _OWN,
        "leave_group": _OWN,
        "sync_group": _OWN,
        "describe_groups": KeyFields(many="groups", response_field="groups"),
        "delete_groups": KeyFields(many="groups_names", response_field="results"),
        "find_coordinator": KeyFields(
            one="key", many="coordinator_keys", response_field="coordinators", kind=0
        ),
    }
)
"""By API name; the others name no group. From v8 on OffsetFetch has groups with topics each."""

TRANSACTIONAL_IDS: Final = MappingProxyType(
    {
        "produce": KeyFields(one="transactional_id"),
        "init_producer_id": KeyFields(one="transactional_id"),
        "find_coordinator": KeyFields(
            one="key", many="coordinator_keys", response_field="coordinators", kind=1
        ),
    }
)
"""By API name; the others name no transactional id."""


@cache
def throttled_since(api: Api) -> int | None:
    """The first version whose answer has a throttle time; None where no answer has one."""
    for version in range(api.min_version, api.max_version + 1):
        fields = message_schema(api.name, "response", version).fields
        if any(field.name == "throttle_time_ms" for field in fields):
            return version
    return None
