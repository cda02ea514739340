"""Every action that a fault may have is read as itself, and none as another."""

from __future__ import annotations

from typing import Final, Literal, get_args

import pytest
from pydantic import ValidationError

from fencepost.broker.faults.rules import Action, action_to_dict
from fencepost.control.routes_faults import read_rule
from fencepost.verbs.bodies import FaultAction, FaultBody
from tests.broker.driver import Driver

_VALUES: Final = ("NOT_LEADER_OR_FOLLOWER", "after", 5, True)
"""One of them will do for any kind of action."""
KINDS: Final = tuple(FaultAction.model_fields)


class _Later(FaultAction):
    """Actions with one that the control API does not read."""

    explode: Literal[True] | None = None


def body(action: FaultAction) -> FaultBody:
    some = FaultBody(api="Metadata", action=FaultAction(drop=True))
    return some.model_copy(update={"action": action})


def read(action: FaultAction) -> Action:
    return read_rule(Driver(1).cluster, body(action)).action


def given(kind: str) -> dict[str, object]:
    """An action of this kind, as JSON has it."""
    for value in _VALUES:
        try:
            FaultAction.model_validate({kind: value})
        except ValidationError:
            continue
        return {kind: value}
    raise AssertionError(f"no value for {kind}")


@pytest.mark.parametrize("kind", KINDS)
def test_an_action_is_read_and_told_as_it_was_given(kind: str) -> None:
    action = given(kind)
    assert action_to_dict(read(FaultAction.model_validate(action))) == action


def test_every_action_of_a_rule_can_be_given() -> None:
    found = {type(read(FaultAction.model_validate(given(kind)))) for kind in KINDS}
    assert found == set(get_args(Action))


def test_an_action_that_is_not_read_is_taken_for_no_other() -> None:
    with pytest.raises(AssertionError, match="explode"):
        read(_Later(explode=True))
