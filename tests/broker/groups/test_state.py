"""The transition table against the states' own story."""

from __future__ import annotations

from itertools import product

import pytest

from fencepost.broker.groups.group import ClassicGroup
from fencepost.broker.groups.state import REACHED_FROM, GroupState, may_follow

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState
ALLOWED = {
    (EMPTY, PREPARING),
    (PREPARING, COMPLETING),
    (PREPARING, EMPTY),
    (COMPLETING, STABLE),
    (COMPLETING, PREPARING),
    (STABLE, PREPARING),
    *((state, DEAD) for state in GroupState),
}


@pytest.mark.parametrize(("before", "after"), list(product(GroupState, GroupState)))
def test_transitions(before: GroupState, after: GroupState) -> None:
    assert may_follow(before, after) is ((before, after) in ALLOWED)


def test_every_state_can_be_reached() -> None:
    assert set(REACHED_FROM) == set(GroupState)
    assert all(REACHED_FROM.values())


def test_a_group_refuses_a_transition_that_is_not_in_the_table() -> None:
    group = ClassicGroup("g")
    with pytest.raises(ValueError, match="cannot go from"):
        group.move_to(STABLE, 5)
    assert (group.state, group.state_timestamp_ms) == (EMPTY, -1)


def test_a_group_remembers_where_it_came_from_and_when() -> None:
    group = ClassicGroup("g")
    group.move_to(PREPARING, 7)
    assert (group.previous_state, group.state, group.state_timestamp_ms) == (EMPTY, PREPARING, 7)
