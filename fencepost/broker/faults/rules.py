"""A fault as data, its one representation: selectors, how often it hits, and one action.

The control API's models are derived from it (`fencepost.verbs.derived`); `to_json` and `from_json`
are the only conversion. The command line imports this module, so it imports little.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import chain
from typing import Annotated, Any, Self

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.faults.kinds import Action, action_from_json
from fencepost.broker.faults.selectors import Limits, Selectors, json_forms
from fencepost.protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRule(Selectors):
    """A fault: which requests it hits, and its effect."""

    count: Annotated[int, Limits(ge=1)] | None = 1
    """How many requests it hits before it ends; null: all, always."""
    after: Annotated[int, Limits(ge=0)] = 0
    """How many matching requests pass before the first hit."""
    probability: Annotated[float, Limits(gt=0, le=1)] = 1
    """The probability that a matching request is hit; drawn from the cluster's seed."""
    action: Action

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Make the fault that checked JSON describes.

        :raises ControllerError: INVALID_REQUEST where the versions are none.
        :raises UnknownName: Where the API or the error is none.
        """
        forms = json_forms(cls)
        read: dict[str, Any] = {
            name: forms[name].read(value) if name in forms else value
            for name, value in given.items()
            if name != "action"
        }
        return cls(**read, action=action_from_json(given["action"]))

    def to_json(self) -> dict[str, object]:
        """Every field as JSON has it."""
        forms = json_forms(type(self))
        written: dict[str, object] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            written[each.name] = forms[each.name].write(value) if each.name in forms else value
        return {**written, "action": self.action.to_json()}


def validate_rule(rule: FaultRule) -> None:
    """Let a rule pass that some request can meet.

    :raises ControllerError: INVALID_REQUEST for any other.
    """
    # Late: the command line imports this module, and few commands set a fault.
    from fencepost.broker.faults.matching import selector_problems

    action = rule.action
    problems = chain(
        selector_problems(rule, changes_responses=action.changes_responses), action.problems(rule)
    )
    problem = next(problems, None)
    if problem is not None:
        raise ControllerError(ErrorCode.INVALID_REQUEST, problem)
