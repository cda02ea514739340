from __future__ import annotations

import pytest

from fencepost.scenario.document import Data, UnresolvedReference, find_references, resolve

ANSWERS: dict[str, Data] = {"before": {"leader": 1, "replicas": [{"broker": 3}]}, "none": None}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("$before.leader", 1),
        ("$before.replicas.0.broker", 3),
        ({"broker": ["$before.leader", 2]}, {"broker": [1, 2]}),
        ("$none", None),
        ("costs $5", "costs $5"),
        ("$", "$"),
        ("$$before.leader", "$before.leader"),
        ("$before.leader is it", "$before.leader is it"),
    ],
)
def test_references_stand_for_what_was_answered(given: Data, found: Data) -> None:
    assert resolve(given, ANSWERS) == found


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("$after.leader", "$after has no answer yet"),
        ("$before.epoch", "there is no $before.epoch; there are leader, replicas"),
        ("$before.replicas.1", "there is no $before.replicas.1"),
        ("$before.leader.id", "there is no $before.leader.id"),
    ],
)
def test_what_refers_to_nothing(given: Data, problem: str) -> None:
    with pytest.raises(UnresolvedReference) as caught:
        resolve(given, ANSWERS)
    assert str(caught.value) == problem


def test_references_are_found_wherever_they_stand() -> None:
    data: Data = {"a": ["$x.id", {"b": "$y"}], "c": "$5"}
    assert list(find_references(data)) == [(("a", 0), "x"), (("a", 1, "b"), "y")]
