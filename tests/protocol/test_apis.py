"""The table of APIs, against kio's schemas."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules, resolve_name

import pytest
from kio.schema.index import schema_name_map
from kio.static.constants import EntityType

from fencepost.broker import handlers
from fencepost.protocol.apis import APIS, BY_KEY, BY_NAME, Api


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
