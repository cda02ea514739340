"""Where each API names topics, partitions, groups and transactional ids, derived from its schema.

A selector can so select a part of a request of any API, also of one that is added later. Kafka's
definitions give the type of a name (a topic's, a group's); what they do not say is data below.
Names of fields are those of the message classes. Each table is derived when a fault first needs it.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from fencepost.protocol.apis import APIS, Api
from fencepost.protocol.codec.schema import (
    FieldSchema,
    Side,
    StructSchema,
    entity_types,
    message_schema,
)

FieldName: TypeAlias = str

_TOPIC: Final = "TopicName"
_GROUP: Final = "GroupId"
_TRANSACTIONAL_ID: Final = "TransactionalId"
_ERROR: Final = "error_code"
_RESOURCE: Final = "resource_type"

# -- what the schemas do not say ----------------------------------------------------------------

_EVERY_VERSION: Final = 1 << 15
_EMPTY_IS_ALL_BELOW: Final[Mapping[str, int]] = {
    "metadata": 1,
    "describe_topic_partitions": _EVERY_VERSION,
}
"""By API, the version below which no topics at all mean every topic."""
_NOT_REQUESTED: Final = ("forgotten_topics_data",)
"""Fields with topics that a request does not ask for."""
_COORDINATOR_TYPES: Final[Mapping[str, int]] = {_GROUP: 0, _TRANSACTIONAL_ID: 1}
"""FindCoordinator's ``key_type``: its keys are plain strings."""


class TopicFields(Struct, frozen=True, kw_only=True):
    """Where a request names topics, and where its response does."""

    request_fields: tuple[FieldName, ...]
    """Fields of the request; an element is a struct, or the name itself."""
    name: FieldName
    """Of a topic in the request, and in the response but for `response_name`."""
    container: FieldName | None = None
    """Field of the request whose elements hold `request_fields`; None where the request does."""
    partitions: FieldName | None = None
    """Of a topic in the request; None where it names no partitions."""
    index: FieldName | None = None
    """Of a partition there; None where partitions are plain numbers."""
    response_container: FieldName | None = None
    """Field of the response whose elements hold `response_field`; None where the response does."""
    response_field: FieldName | None = None
    """Of the response; None where it has no error for a topic or partition."""
    response_name: FieldName | None = None
    """Of a topic in the response, where it is not that of the request."""
    response_partitions: FieldName | None = None
    """Of a topic in the response; None where it has errors of topics alone."""
    response_index: FieldName | None = None
    """Of a partition there."""
    null_is_all: bool = False
    """Whether null instead of topics means every topic."""
    empty_is_all_below: int = 0
    """Below this version no topics at all mean every topic."""
    resources: bool = False
    """Whether topics are among resources of other types."""


class KeyFields(Struct, frozen=True, kw_only=True):
    """Where a request names groups (or transactional ids), one or many."""

    one: FieldName | None = None
    """A field of the request."""
    many: FieldName | None = None
    """Another that has several, as strings; they can be refused one by one."""
    inside: tuple[FieldName, FieldName] | None = None
    """A field whose elements are structs, and the field of each of these."""
    response_field: FieldName | None = None
    """The field of the response with one element for each of several."""
    kind: int | None = None
    """The ``key_type`` of such a key; None where there is no other type."""


@cache
def topic_fields(api: Api) -> TopicFields | None:
    """Where an API names topics; None where it names none."""
    container, requested = None, list(_topic_arrays(_structs(api, "request")))
    if not requested:
        container, requested = _contained_topic_arrays(api, "request")
    if not requested:
        return None
    structs = [each.struct for each in requested if each.struct is not None]
    partitions = _first(_partition_arrays(structs))
    found = TopicFields(
        request_fields=tuple(dict.fromkeys(each.name for each in requested)),
        name=next(filter(None, map(_topic_name_field, structs))),
        container=container,
        partitions=None if partitions is None else partitions.name,
        index=_index_field(partitions),
        null_is_all=any(each.nullable for each in requested),
        empty_is_all_below=_EMPTY_IS_ALL_BELOW.get(api.name, 0),
        resources=any(_has(struct, _RESOURCE) for struct in structs),
    )
    return _with_response(api, found)


@cache
def group_fields(api: Api) -> KeyFields | None:
    """Where an API names groups; None where it names none.

    OffsetFetch has from v8 on groups with topics each; that is its own (`matching`).
    """
    return _key_fields(api, _GROUP)


@cache
def transactional_id_fields(api: Api) -> KeyFields | None:
    """Where an API names transactional ids; None where it names none."""
    return _key_fields(api, _TRANSACTIONAL_ID)


@cache
def throttled_since(api: Api) -> int | None:
    """The first version whose response has a throttle time; None where none has one."""
    return next(
        (
            version
            for version in _versions(api)
            if _has(message_schema(api.name, "response", version), "throttle_time_ms")
        ),
        None,
    )


def titles_of_apis_with_groups() -> list[str]:
    """Kafka's names of the APIs that name groups."""
    return [api.title for api in APIS if group_fields(api) is not None]


def titles_of_apis_with_transactional_ids() -> list[str]:
    """Kafka's names of the APIs that name transactional ids."""
    return [api.title for api in APIS if transactional_id_fields(api) is not None]


# -- topics -------------------------------------------------------------------------------------


def _with_response(api: Api, requested: TopicFields) -> TopicFields:
    """Add the fields of the response that have an error for a topic or for a partition."""
    container, found = None, list(_topic_arrays(_structs(api, "response")))
    if not found and requested.container is not None:
        container, found = _contained_topic_arrays(api, "response")
    for field in found:
        if field.struct is None:
            continue
        arrays = _partition_arrays([field.struct])
        partitions = _first(a for a in arrays if a.struct is not None and _has(a.struct, _ERROR))
        if partitions is not None or _has(field.struct, _ERROR):
            name = _topic_name_field(field.struct)
            return replace(
                requested,
                response_container=container,
                response_field=field.name,
                response_name=None if name == requested.name else name,
                response_partitions=None if partitions is None else partitions.name,
                response_index=_index_field(partitions),
            )
    return requested


def _topic_arrays(structs: Iterable[StructSchema]) -> Iterator[FieldSchema]:
    """The arrays of topics in these structs."""
    for struct in structs:
        types = entity_types(struct)
        for field in struct.fields:
            if field.name in _NOT_REQUESTED or not field.array:
                continue
            named = field.struct is not None and _topic_name_field(field.struct) is not None
            if named or types.get(field.name) == _TOPIC:
                yield field


def _contained_topic_arrays(api: Api, side: Side) -> tuple[FieldName | None, list[FieldSchema]]:
    """The field of a message whose elements have arrays of topics, and these, in every version."""
    for version in _versions(api):
        for field in message_schema(api.name, side, version).fields:
            topics = [] if field.struct is None else list(_topic_arrays([field.struct]))
            if topics:
                return field.name, topics
    return None, []


def _structs(api: Api, side: Side) -> Iterator[StructSchema]:
    """A message, and the groups in it, in every version that is served."""
    for version in _versions(api):
        message = message_schema(api.name, side, version)
        yield message
        for field in message.fields:
            if field.struct is not None and _GROUP in entity_types(field.struct).values():
                yield field.struct


def _topic_name_field(struct: StructSchema) -> FieldName | None:
    if _has(struct, _RESOURCE):
        return "resource_name"
    types = entity_types(struct)
    return next((f.name for f in struct.fields if types[f.name] == _TOPIC and not f.array), None)


def _partition_arrays(topics: list[StructSchema]) -> Iterator[FieldSchema]:
    for topic in topics:
        for field in topic.fields:
            if field.array and field.name.startswith("partition"):
                yield field


def _index_field(partitions: FieldSchema | None) -> FieldName | None:
    """The index is the first number of its type in every struct of a partition."""
    if partitions is None or partitions.struct is None:
        return None
    return next(field.name for field in partitions.struct.fields if field.kind == "int32")


# -- groups and transactional ids ---------------------------------------------------------------


def _key_fields(api: Api, entity: str) -> KeyFields | None:
    one = many = kind = inside = None
    for version in _versions(api):
        request = message_schema(api.name, "request", version)
        types = entity_types(request)
        if _has(request, "key_type"):
            kind = _COORDINATOR_TYPES[entity]
        for field in request.fields:
            is_key = types[field.name] == "str" and "key" in field.name
            if types[field.name] == entity or (kind is not None and is_key):
                one, many = (one, field.name) if field.array else (field.name, many)
        inside = _inner_key(request, entity) or inside
    if one is None and many is None:
        return None
    response_field = None if many is None else _key_response_field(api, entity)
    return KeyFields(one=one, many=many, inside=inside, response_field=response_field, kind=kind)


def _inner_key(request: StructSchema, entity: str) -> tuple[FieldName, FieldName] | None:
    """The array of a request whose elements name a key, and the field that does."""
    for field in request.fields:
        if field.array and field.struct is not None:
            for name, type_ in entity_types(field.struct).items():
                if type_ == entity:
                    return field.name, name
    return None


def _key_response_field(api: Api, entity: str) -> FieldName | None:
    response = message_schema(api.name, "response", api.max_version)
    for field in response.fields:
        if field.array and field.struct is not None:
            types = entity_types(field.struct)
            if entity in types.values() or "key" in types:
                return field.name
    return None


# -- schemas ------------------------------------------------------------------------------------


def _versions(api: Api) -> range:
    return range(api.min_version, api.max_version + 1)


def _has(struct: StructSchema, name: FieldName) -> bool:
    return any(field.name == name for field in struct.fields)


def _first(fields: Iterator[FieldSchema]) -> FieldSchema | None:
    return next(fields, None)
