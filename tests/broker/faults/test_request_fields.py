"""The table of shapes says what Kafka's messages are."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from kio.schema.types import GroupId, TopicName, TransactionalId

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.faults import request_fields
from fencepost.broker.faults.request_fields import (
    GROUPS,
    TOPICS,
    TRANSACTIONAL_IDS,
    KeyFields,
    TopicFields,
    throttled_since,
)
from fencepost.broker.faults.rule_validation import validate_rule
from fencepost.broker.faults.rules import Drop, FaultRule
from fencepost.protocol.apis import APIS, BY_NAME, Api
from fencepost.protocol.codec.schema import Side, StructSchema, message_schema, split_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from _typeshed import DataclassInstance

EVERY_API: Final = pytest.mark.parametrize("api", APIS, ids=lambda api: api.title)
PLACES: Final[tuple[tuple[str, Mapping[str, object], type, str], ...]] = (
    ("topic", TOPICS, TopicName, "resource_type"),
    ("group", GROUPS, GroupId, "key_type"),
    ("transactional_id", TRANSACTIONAL_IDS, TransactionalId, "key_type"),
)
"""A selector, its table, what Kafka's definitions call the type of a field that holds such a name,
and a field beside one that may hold others too."""
EVERY_PLACE: Final = pytest.mark.parametrize("place", PLACES, ids=lambda place: place[0])


def versions(name: str, side: Side) -> list[StructSchema]:
    """A message in every version."""
    api = BY_NAME[name]
    return [message_schema(name, side, v) for v in range(api.min_version, api.max_version + 1)]


def names(structs: Iterable[StructSchema]) -> set[str]:
    return {field.name for struct in structs for field in struct.fields}


def inside(structs: Iterable[StructSchema], name: str | None) -> list[StructSchema]:
    """The structs that this field holds, in whatever version."""
    found = (field for struct in structs for field in struct.fields if field.name == name)
    return [field.struct for field in found if field.struct is not None]


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


# -- every API that names something is there ----------------------------------------------------


@EVERY_PLACE
@EVERY_API
def test_an_api_is_in_a_table_if_its_requests_name_such(
    api: Api, place: tuple[str, Mapping[str, object], type, str]
) -> None:
    _, table, entity, beside = place
    requests = versions(api.name, "request")
    found = set(chain.from_iterable(leaves(request.kio_class) for request in requests))
    named = any(kind is entity or name == beside for kind, name in found)
    assert (api.name in table) == named


@EVERY_PLACE
@EVERY_API
def test_a_selector_of_what_an_api_does_not_name_is_refused(
    api: Api, place: tuple[str, Mapping[str, object], type, str]
) -> None:
    selector, table, _, _ = place
    selectors: dict[str, Any] = {selector: "x"}
    rule = FaultRule(api=api, action=Drop(), **selectors)
    if api.name in table:
        validate_rule(rule)
    else:
        with pytest.raises(ControllerError, match=f"{selector}: {api.title} names no "):
            validate_rule(rule)


# -- every field that is named is there ---------------------------------------------------------


@pytest.mark.parametrize("name", TOPICS)
def test_topics_are_where_the_table_says(name: str) -> None:
    shape: TopicFields = TOPICS[name]
    requests = versions(name, "request")
    requests += inside(requests, "groups")
    for asked in shape.request_fields:
        assert asked in names(requests)
        topics = inside(requests, asked)
        if topics:
            assert shape.name in names(topics)
            assert shape.resources == ("resource_type" in names(topics))
            check_partitions(topics, shape.partitions, shape.index)
    responses = versions(name, "response")
    responses += inside(responses, "groups")
    if shape.response_field is not None:
        assert shape.response_field in names(responses)
        topics = inside(responses, shape.response_field)
        assert shape.name in names(topics)
        check_partitions(topics, shape.response_partitions, shape.response_index)


def check_partitions(topics: list[StructSchema], partitions: str | None, index: str | None) -> None:
    if partitions is None:
        return
    assert partitions in names(topics)
    structs = inside(topics, partitions)
    assert index is None if not structs else index in names(structs)


@pytest.mark.parametrize("table", [GROUPS, TRANSACTIONAL_IDS], ids=["groups", "transactional_ids"])
def test_keys_are_where_the_table_says(table: dict[str, KeyFields]) -> None:
    for name, shape in table.items():
        requests = names(versions(name, "request"))
        assert {shape.one, shape.many} - {None} <= requests
        assert (shape.kind is not None) == ("key_type" in requests)
        if shape.response_field is not None:
            assert shape.response_field in names(versions(name, "response"))


@pytest.mark.parametrize(
    ("model", "tables"),
    [(TopicFields, (TOPICS,)), (KeyFields, (GROUPS, TRANSACTIONAL_IDS))],
    ids=["topics", "keys"],
)
def test_every_field_of_a_shape_is_one_that_some_api_needs(
    model: type[DataclassInstance], tables: tuple[Mapping[str, object], ...]
) -> None:
    entries = [entry for table in tables for entry in table.values()]
    plain = model()
    for field in fields(model):
        assert any(getattr(e, field.name) != getattr(plain, field.name) for e in entries), (
            field.name
        )


def test_every_field_that_is_mentioned_exists() -> None:
    known = {field.name for model in (TopicFields, KeyFields) for field in fields(model)}
    for api in APIS:
        known |= names(versions(api.name, "request"))
    mentioned = set(re.findall(r"``(\w+)``", Path(request_fields.__file__).read_text("utf-8")))
    assert mentioned
    assert mentioned <= known
