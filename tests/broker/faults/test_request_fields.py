"""The fields that are derived are those of Kafka's messages, and no API is left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest
from kio.schema.types import GroupId, TopicName, TransactionalId

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.faults.kinds import Drop
from fencepost.broker.faults.request_fields import (
    KeyFields,
    TopicFields,
    group_fields,
    throttled_since,
    topic_fields,
    transactional_id_fields,
)
from fencepost.broker.faults.rules import FaultRule, validated_apis
from fencepost.broker.faults.selectors import Apis
from fencepost.protocol.apis import APIS, BY_NAME, Api
from fencepost.protocol.codec.schema import Side, StructSchema, message_schema
from tools.kio_schemas import kio_class, split_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Place: TypeAlias = tuple[str, Callable[[Api], object], type, str]
EVERY_API: Final = pytest.mark.parametrize("api", APIS, ids=lambda api: api.title)
PLACES: Final[tuple[Place, ...]] = (
    ("topic", topic_fields, TopicName, "resource_type"),
    ("group", group_fields, GroupId, "key_type"),
    ("transactional_id", transactional_id_fields, TransactionalId, "key_type"),
)
"""A selector, its fields, what Kafka's definitions call the type of a field that holds such a name,
and a field beside one that may hold others too."""
EVERY_PLACE: Final = pytest.mark.parametrize("place", PLACES, ids=lambda place: place[0])


def versions(name: str, side: Side) -> list[StructSchema]:
    """A message in every version."""
    api = BY_NAME[name]
    return [message_schema(name, side, v) for v in range(api.min_version, api.max_version + 1)]


def names(structs: Iterable[StructSchema]) -> set[str]:
    return {field.name for struct in structs for field in struct.fields}


def leaves(kio_class: Any) -> Iterator[tuple[object, str]]:  # noqa: ANN401  # any of kio's classes
    """Type and name of every field that is no struct, at any depth."""
    for field in fields(kio_class):
        inner = split_type(field.type)[0]
        if is_dataclass(inner):
            yield from leaves(inner)
        else:
            yield inner, field.name


@EVERY_API
def test_answers_have_a_throttle_time_from_one_version_on(api: Api) -> None:
    since = throttled_since(api)
    for version in range(api.min_version, api.max_version + 1):
        has = "throttle_time_ms" in names([message_schema(api.name, "response", version)])
        assert has == (since is not None and version >= since), version


@pytest.mark.parametrize(
    ("name", "since"),
    [("fetch", 4), ("list_offsets", 2), ("metadata", 3), ("describe_quorum", None)],
)
def test_the_first_version_with_a_throttle_time(name: str, since: int | None) -> None:
    assert throttled_since(BY_NAME[name]) == since


# -- every API that names something -------------------------------------------------------------


@EVERY_PLACE
@EVERY_API
def test_an_api_has_fields_if_its_requests_name_such(api: Api, place: Place) -> None:
    _, fields_of, entity, beside = place
    requests = versions(api.name, "request")
    found = set(chain.from_iterable(leaves(kio_class(request)) for request in requests))
    named = any(kind is entity or name == beside for kind, name in found)
    assert (fields_of(api) is not None) == named


@EVERY_PLACE
@EVERY_API
def test_a_selector_of_what_an_api_does_not_name_is_refused(api: Api, place: Place) -> None:
    selector, fields_of, _, _ = place
    selectors: dict[str, Any] = {selector: "x"}
    rule = FaultRule(api=Apis((api,)), action=Drop(), **selectors)
    if fields_of(api) is not None:
        validated_apis(rule)
    else:
        with pytest.raises(ControllerError, match=f"{selector}: {api.title} names no "):
            validated_apis(rule)


# -- the fields ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "produce",
            TopicFields(
                request_fields=("topic_data",),
                name="name",
                partitions="partition_data",
                index="index",
                response_field="responses",
                response_partitions="partition_responses",
                response_index="index",
            ),
        ),
        (
            "fetch",
            TopicFields(
                request_fields=("topics",),
                name="topic",
                partitions="partitions",
                index="partition",
                response_field="responses",
                response_partitions="partitions",
                response_index="partition_index",
            ),
        ),
        (
            "metadata",
            TopicFields(
                request_fields=("topics",),
                name="name",
                response_field="topics",
                response_partitions="partitions",
                response_index="partition_index",
                null_is_all=True,
                empty_is_all_below=1,
            ),
        ),
        (
            "offset_fetch",
            TopicFields(
                request_fields=("topics",),
                name="name",
                partitions="partition_indexes",
                response_field="topics",
                response_partitions="partitions",
                response_index="partition_index",
                null_is_all=True,
            ),
        ),
        (
            "delete_topics",
            TopicFields(
                request_fields=("topic_names", "topics"), name="name", response_field="responses"
            ),
        ),
        (
            "create_topics",
            TopicFields(request_fields=("topics",), name="name", response_field="topics"),
        ),
        (
            "describe_configs",
            TopicFields(
                request_fields=("resources",),
                name="resource_name",
                response_field="results",
                resources=True,
            ),
        ),
        (
            "describe_log_dirs",
            TopicFields(
                request_fields=("topics",), name="topic", partitions="partitions", null_is_all=True
            ),
        ),
        (
            "elect_leaders",
            TopicFields(
                request_fields=("topic_partitions",),
                name="topic",
                partitions="partitions",
                response_field="replica_election_results",
                response_partitions="partition_result",
                response_index="partition_id",
                null_is_all=True,
            ),
        ),
    ],
)
def test_where_an_api_names_topics(name: str, expected: TopicFields) -> None:
    assert topic_fields(BY_NAME[name]) == expected


@EVERY_API
def test_a_response_names_topics_as_its_request_does(api: Api) -> None:
    shape = topic_fields(api)
    if shape is None or shape.response_field is None:
        return
    responses = versions(api.name, "response")
    responses += [f.struct for each in responses for f in each.fields if f.struct is not None]
    topics = [
        field.struct
        for each in responses
        for field in each.fields
        if field.name == shape.response_field and field.struct is not None
    ]
    assert (shape.response_name or shape.name) in names(topics)


def test_topics_may_stand_in_what_a_request_contains() -> None:
    assert topic_fields(BY_NAME["alter_replica_log_dirs"]) == TopicFields(
        request_fields=("topics",),
        name="name",
        container="dirs",
        partitions="partitions",
        response_field="results",
        response_name="topic_name",
        response_partitions="partitions",
        response_index="partition_index",
    )


@pytest.mark.parametrize(
    ("name", "groups", "transactional_ids"),
    [
        ("join_group", KeyFields(one="group_id"), None),
        ("describe_groups", KeyFields(many="groups", response_field="groups"), None),
        ("delete_groups", KeyFields(many="groups_names", response_field="results"), None),
        ("list_groups", None, None),
        ("produce", None, KeyFields(one="transactional_id")),
        (
            "find_coordinator",
            *(
                KeyFields(
                    one="key", many="coordinator_keys", response_field="coordinators", kind=kind
                )
                for kind in (0, 1)
            ),
        ),
    ],
)
def test_where_an_api_names_groups_and_transactional_ids(
    name: str, groups: KeyFields | None, transactional_ids: KeyFields | None
) -> None:
    assert group_fields(BY_NAME[name]) == groups
    assert transactional_id_fields(BY_NAME[name]) == transactional_ids
