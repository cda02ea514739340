"""The transitions of a group's states."""

from __future__ import annotations

from itertools import product

import pytest

from fencepost.broker.groups.classic_group import (
    VALID_PREVIOUS_STATES,
    ClassicGroup,
    ClassicGroupState,
    is_valid_transition,
)

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = ClassicGroupState
ALLOWED = {
    (EMPTY, PREPARING),
    (PREPARING, COMPLETING),
    (PREPARING, EMPTY),
    (COMPLETING, STABLE),
    (COMPLETING, PREPARING),
    (STABLE, PREPARING),
    *((state, DEAD) for state in ClassicGroupState),
}


@pytest.mark.parametrize(("before", "after"), list(product(ClassicGroupState, ClassicGroupState)))
def test_transitions(before: ClassicGroupState, after: ClassicGroupState) -> None:
    assert is_valid_transition(before, after) is ((before, after) in ALLOWED)


def test_every_state_can_be_reached() -> None:
    assert set(VALID_PREVIOUS_STATES) == set(ClassicGroupState)
    assert all(VALID_PREVIOUS_STATES.values())


def test_a_group_refuses_a_transition_that_is_not_in_the_table() -> None:
    group = ClassicGroup("g")
    with pytest.raises(ValueError, match="cannot go from"):
        group.transition_to(STABLE, 5)
    assert (group.state, group.state_timestamp_ms) == (EMPTY, -1)


def test_a_group_stores_its_previous_state_and_the_time() -> None:
    group = ClassicGroup("g")
    group.transition_to(PREPARING, 7)
    assert (group.previous_state, group.state, group.state_timestamp_ms) == (EMPTY, PREPARING, 7)
