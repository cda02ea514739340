"""Every kind of fault that the broker has can be given, and is answered as it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.faults.kinds import KINDS
from fencepost.broker.faults.registry import Fault
from fencepost.control.routes_faults import fault_state, read_rule
from fencepost.verbs.fault_bodies import FaultAction, FaultBody
from fencepost.verbs.problems import InvalidModel
from tests.harness.driver import Driver

if TYPE_CHECKING:
    from fencepost.broker.faults.rules import FaultRule

_VALUES: Final = ("NOT_LEADER_OR_FOLLOWER", "after", 5, True)
"""One of them will do for any kind of action."""
EVERY_SELECTOR: Final = {
    "api": "OffsetFetch",
    "versions": "2-7",
    "broker": 1,
    "client_id": "c",
    "source": "clients",
    "topic": "t",
    "partition": 3,
    "group": "g",
    "transactional_id": "x",
    "record": {"key": "k", "value": "v", "header": ("h", None)},
    "count": None,
    "after": 2,
    "probability": 0.5,
    "action": {"drop": True},
    "sequence": None,
}


def read(given: dict[str, object]) -> FaultRule:
    return read_rule(Driver(1).cluster, FaultBody.model_validate(given))


def answered(rule: FaultRule) -> dict[str, object]:
    """A fault as the control API answers it, without its id and its hits."""
    state = fault_state(Fault(1, rule, {})).model_dump()
    return {name: value for name, value in state.items() if name not in ("id", "hits", "left")}


def an_action(kind: str) -> dict[str, object]:
    """An action of this kind, as JSON has it."""
    for value in _VALUES:
        try:
            FaultAction.model_validate({kind: value})
        except InvalidModel:
            continue
        return {kind: value}
    raise AssertionError(f"no value for {kind}")


@pytest.mark.parametrize("kind", KINDS)
def test_an_action_is_read_and_answered_as_it_was_given(kind: str) -> None:
    rule = read({"api": "Metadata", "action": an_action(kind)})
    assert type(rule.action) is KINDS[kind]
    assert answered(rule)["action"] == an_action(kind)


def test_every_selector_is_read_and_answered_as_it_was_given() -> None:
    assert answered(read(EVERY_SELECTOR)) == EVERY_SELECTOR


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("*", "*"),
        (["*"], "*"),
        (["produce", 1, "Produce"], ("Produce", "Fetch")),
        (["list-offsets"], "ListOffsets"),
    ],
)
def test_apis_are_answered_by_kafkas_names(given: object, expected: object) -> None:
    assert answered(read({"api": given, "action": "drop"}))["api"] == expected


@pytest.mark.parametrize("given", [[], ["*", "Fetch"]])
def test_every_api_stands_alone(given: object) -> None:
    with pytest.raises(ControllerError, match=r"^api: name one API or several, or '\*' alone"):
        read({"api": given, "action": "drop"})


def test_a_sequence_is_read_and_answered_as_it_was_given() -> None:
    sequence = [{"error": "NOT_LEADER_OR_FOLLOWER"}, "pass", {"delay": 5}]
    state = answered(read({"api": "Fetch", "sequence": sequence}))
    assert state["action"] is None
    assert state["sequence"] == ({"error": "NOT_LEADER_OR_FOLLOWER"}, {"pass": True}, {"delay": 5})


@pytest.mark.parametrize("action", ["observe", "refuse"])
def test_what_has_no_end_has_no_count(action: str) -> None:
    assert answered(read({"api": "*", "action": action}))["count"] is None


def test_the_example_has_every_field_that_can_be_given() -> None:
    assert EVERY_SELECTOR.keys() == FaultBody.model_fields.keys()


def test_what_is_left_out_is_answered_with_its_default() -> None:
    defaults = {"count": 1, "after": 0, "probability": 1, "action": {"drop": True}}
    given = {"api": 9, "action": "drop"}
    assert answered(read(given)) == {
        **dict.fromkeys(EVERY_SELECTOR),
        "api": "OffsetFetch",
        **defaults,
    }
