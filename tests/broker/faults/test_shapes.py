"""The table of shapes says what Kafka's messages are."""

from __future__ import annotations

import pytest

from fencepost.broker.faults.shapes import (
    GROUPS,
    THROTTLED_SINCE,
    TOPICS,
    TRANSACTIONAL_IDS,
    KeysShape,
)
from fencepost.protocol.apis import APIS, BY_NAME, Api
from fencepost.protocol.codec.schema import Shape, Side, message_shape


def names(shape: Shape) -> set[str]:
    return {field.name for field in shape.fields}


def fields_of(name: str, side: Side) -> set[str]:
    """Every field of a message at its top, in whatever version."""
    api = BY_NAME[name]
    versions = range(api.min_version, api.max_version + 1)
    return set().union(*(names(message_shape(name, side, version)) for version in versions))


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.title)
def test_answers_have_a_throttle_time_since_the_version_that_the_table_says(api: Api) -> None:
    since = THROTTLED_SINCE.get(api.name, 0)
    for version in range(api.min_version, api.max_version + 1):
        has = "throttle_time_ms" in names(message_shape(api.name, "response", version))
        assert has == (version >= since), version


@pytest.mark.parametrize("name", TOPICS)
def test_topics_are_where_the_table_says(name: str) -> None:
    shape = TOPICS[name]
    assert set(shape.asked) <= fields_of(name, "request")
    if shape.answered is not None:
        assert shape.answered in fields_of(name, "response")


@pytest.mark.parametrize("table", [GROUPS, TRANSACTIONAL_IDS], ids=["groups", "transactional_ids"])
def test_keys_are_where_the_table_says(table: dict[str, KeysShape]) -> None:
    for name, shape in table.items():
        assert {shape.one, shape.many} - {None} <= fields_of(name, "request")
        if shape.answered is not None:
            assert shape.answered in fields_of(name, "response")


def test_every_api_that_names_groups_is_in_the_table() -> None:
    words = {"group_id", "groups", "groups_names", "coordinator_keys"}
    for api in APIS:
        assert (api.name in GROUPS) == bool(words & fields_of(api.name, "request")), api.title
        transactional = {"transactional_id", "coordinator_keys"} & fields_of(api.name, "request")
        assert (api.name in TRANSACTIONAL_IDS) == bool(transactional), api.title
