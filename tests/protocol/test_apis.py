"""The table of APIs, against kio's schemas."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules, resolve_name

import pytest
from kio.schema.index import schema_name_map
from kio.static.constants import EntityType

from fencepost.broker import handlers
from fencepost.protocol.apis import (
    APIS,
    BY_KEY,
    BY_NAME,
    LAST_WITH_TOPIC_NAMES,
    RELEASES,
    Api,
    ceilings_without_topic_ids,
    release_ceilings,
)
from fencepost.protocol.codec.schema import StructSchema, message_schema, nested_structs


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.title)
def test_every_version_that_is_known_is_served(api: Api) -> None:
    known = schema_name_map[api.name]
    assert set(known) == set(range(api.min_version, api.max_version + 1))
    for version, paths in known.items():
        for side in (EntityType.request, EntityType.response):
            schema = resolve_name(paths[side])
            assert schema.__api_key__ == api.key
            assert schema.__flexible__ is api.is_flexible(version)


def test_keys_and_names_are_those_of_the_table() -> None:
    assert list(BY_KEY) == sorted(api.key for api in APIS)
    assert set(BY_NAME) == {api.name for api in APIS}
    assert all(BY_KEY[api.key] is api is BY_NAME[api.name] for api in APIS)


def test_what_is_advertised_is_served_but_for_the_first_versions_of_produce() -> None:
    assert [api.name for api in APIS if api.advertised_min != api.min_version] == ["produce"]
    assert BY_NAME["produce"].advertised_min == 0


def test_a_version_is_served_from_the_first_to_the_last() -> None:
    fetch = BY_NAME["fetch"]
    assert [fetch.serves(version) for version in (-1, 3, 4, 18, 19)] == [
        False,
        False,
        True,
        True,
        False,
    ]


def test_titles_are_kafkas_names() -> None:
    assert BY_NAME["offset_for_leader_epoch"].title == "OffsetForLeaderEpoch"


def test_a_title_is_made_once() -> None:
    assert [api.name for api in APIS if api.title is not api.title] == []


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.title)
def test_every_api_has_a_handler(api: Api) -> None:
    handler = import_module(f"fencepost.broker.handlers.{api.name}")
    assert callable(handler.handle)
    assert callable(handler.refuse)


def test_every_handler_is_of_an_api_in_the_table() -> None:
    modules = {each.name for each in iter_modules(handlers.__path__)}
    handling = {
        name for name in modules if hasattr(import_module(f"{handlers.__name__}.{name}"), "handle")
    }
    assert handling == set(BY_NAME)


def names_topics(schema: StructSchema) -> bool:
    """Whether each topic of a request has its name, not the id alone."""
    for struct in (schema, *nested_structs(schema)):
        names = {field.name for field in struct.fields}
        if "topic_id" in names and not names & {"name", "topic"}:
            return False
    return True


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.title)
def test_where_requests_have_topic_ids_alone_is_known(api: Api) -> None:
    versions = range(api.min_version, api.max_version + 1)
    by_name = [v for v in versions if names_topics(message_schema(api.name, "request", v))]
    assert max(by_name) == LAST_WITH_TOPIC_NAMES.get(api.name, api.max_version)


def test_clients_without_topic_ids_are_asked_for_names() -> None:
    assert ceilings_without_topic_ids({}) == {}
    assert ceilings_without_topic_ids({"metadata": 10}) == {}
    assert ceilings_without_topic_ids({"metadata": 9}) == LAST_WITH_TOPIC_NAMES
    lower = {"metadata": 6, "fetch": 8, "produce": 12}
    assert ceilings_without_topic_ids(lower) == {"offset_commit": 9, "offset_fetch": 9}


@pytest.mark.parametrize("release", RELEASES)
def test_no_release_leaves_clients_without_topic_ids(release: str) -> None:
    assert ceilings_without_topic_ids(release_ceilings(release)) == {}
