"""The table of all APIs in docs/conformance.md."""

from __future__ import annotations

from kio.schema.index import api_key_map

from docs import api_table
from fencepost.protocol.apis import BY_KEY, BY_NAME


def test_every_api_of_kafka_is_in_the_table_once() -> None:
    keys = [int(row[0]) for row in api_table.rows()]
    assert keys == sorted(api_key_map)
    assert {*BY_KEY, *api_table.advertised()} <= set(keys)


def test_what_is_not_served_says_why() -> None:
    assert [row for row in api_table.rows() if not row[2] and not row[4]] == []
    assert api_table.DIFFERS.keys() <= BY_NAME.keys()


def test_versions_that_differ_have_a_note() -> None:
    different = [
        api_key_map[key]
        for key, (low, high) in api_table.advertised().items()
        if key in BY_KEY and (BY_KEY[key].advertised_min, BY_KEY[key].max_version) != (low, high)
    ]
    assert {*different} <= api_table.DIFFERS.keys()
