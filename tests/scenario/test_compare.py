from __future__ import annotations

import pytest

from fencepost.scenario.compare import MISSING, compare
from fencepost.scenario.document import Data

ANSWER: Data = {
    "leader": 2,
    "isr": [1, 2],
    "open": True,
    "name": "orders",
    "error": None,
    "replicas": [{"broker": 1, "end": 10}, {"broker": 2, "end": 20}],
    "values": ["a0", "a1", "a2", "b7"],
}


@pytest.mark.parametrize(
    "expected",
    [
        {},
        {"leader": 2, "name": "orders", "error": None, "open": True},
        {"isr": [1, 2]},
        {"values": ["a0..a2", "b7"]},
        {"replicas": [{"end": 10}, {}]},
        {"replicas": {"1": {"broker": 2}}},
        {"replicas": {"contains": {"broker": 2, "end": {"above": 19}}}},
        {"replicas": {"each": {"end": {"at_least": 10, "at_most": 20}}}},
        {"replicas": {"size": 2}},
        {"isr": {"size": {"below": 3}, "contains": 1, "not": {"contains": 3}}},
        {"leader": {"not": 3}},
        {"leader": {"one_of": [1, 2]}},
        {"name": {"contains": "rder"}},
        {"name": {"matches": "^o.*s$"}},
        {"values": {"contains": "a1"}},
        {"open": {"not": 1}},
    ],
)
def test_what_is_as_expected(expected: Data) -> None:
    assert list(compare(expected, ANSWER)) == []


@pytest.mark.parametrize(
    ("expected", "field", "words"),
    [
        ({"leader": 3}, "leader", "3"),
        ({"leader": "2"}, "leader", '"2"'),
        ({"open": 1}, "open", "1"),
        ({"isr": [2, 1]}, "isr", "[2, 1]"),
        ({"isr": [1]}, "isr", "[1]"),
        ({"isr": 1}, "isr", "1"),
        ({"values": ["a0..a3"]}, "values", '["a0..a3"]'),
        ({"values": ["a0..a2", "b8"]}, "values", '["a0..a2", "b8"]'),
        ({"replicas": [{"end": 10}, {"end": 10}]}, "replicas[1].end", "10"),
        ({"replicas": {"0": {"broker": 2}}}, "replicas.0.broker", "2"),
        ({"replicas": {"contains": {"broker": 3}}}, "replicas", 'something like {"broker": 3}'),
        ({"replicas": {"each": {"end": 10}}}, "replicas[1].end", "10"),
        ({"replicas": {"size": 3}}, "size of replicas", "3"),
        ({"leader": {"size": 1}}, "leader", "a list"),
        ({"leader": {"each": 1}}, "leader", "a list"),
        ({"leader": {"at_least": 3}}, "leader", "at least 3"),
        ({"leader": {"at_most": 1}}, "leader", "at most 1"),
        ({"leader": {"above": 2}}, "leader", "above 2"),
        ({"leader": {"below": 2}}, "leader", "below 2"),
        ({"name": {"below": 2}}, "name", "below 2"),
        ({"open": {"at_least": 0}}, "open", "at least 0"),
        ({"leader": {"not": 2}}, "leader", "not 2"),
        ({"leader": {"one_of": [1, 3]}}, "leader", "one of [1, 3]"),
        ({"name": {"matches": "^r"}}, "name", "text with '^r'"),
        ({"name": {"contains": "x"}}, "name", 'something like "x"'),
    ],
)
def test_what_is_not(expected: Data, field: str, words: str) -> None:
    (mismatch,) = compare(expected, ANSWER)
    assert mismatch.field == field
    assert mismatch.expected.startswith(words)


def test_a_field_that_is_not_there() -> None:
    (mismatch,) = compare({"gate": {"open": True}}, ANSWER)
    assert (mismatch.field, mismatch.actual) == ("gate", MISSING)
    (beyond,) = compare({"isr": {"2": 3}}, ANSWER)
    assert (beyond.field, beyond.actual) == ("isr.2", MISSING)


def test_each_mismatch_knows_its_place_in_the_file() -> None:
    (mismatch,) = compare({"isr": {"size": 1}}, ANSWER, ("steps", 3, "expect"))
    assert mismatch.path == ("steps", 3, "expect", "isr", "size")
