"""A fault as data, its one representation: selectors, how often it hits, and its action.

The control API's models are derived from it (`fencepost.verbs.derived`); `to_json` and `from_json`
are the only conversion. The command line imports this module, so it imports little.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import chain
from typing import Annotated, Any, Final, Self

from fencepost.broker.core.errors import ControllerError
from fencepost.broker.faults.kinds import Action, Pass, Target, action_from_json
from fencepost.broker.faults.selectors import (
    EVERY,
    Apis,
    Limits,
    Selectors,
    read_fields,
)
from fencepost.protocol.apis import APIS, Api
from fencepost.protocol.errors import ErrorCode

MAX_STEPS: Final = 1000
"""Of a sequence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRule(Selectors):
    """A fault: which requests it hits, and its effect."""

    count: Annotated[int, Limits(ge=1)] | None = 1
    """How many requests it hits before it ends; null: all, always. Of a ``sequence``: how often it
    is gone through."""
    after: Annotated[int, Limits(ge=0)] = 0
    """How many matching requests pass before the first hit."""
    probability: Annotated[float, Limits(gt=0, le=1)] = 1
    """The probability that a matching request is hit; drawn from the cluster's seed."""
    action: Action | None = None
    sequence: tuple[Action, ...] | None = None
    """Actions in place of ``action``: each hit meets the next one."""

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Make the fault that checked JSON describes.

        :raises ControllerError: INVALID_REQUEST where the versions are none.
        :raises UnknownName: Where the API or the error is none.
        """
        read = read_fields(cls, given)
        if read.get("action") is not None:
            read["action"] = action_from_json(read["action"])
        if read.get("sequence") is not None:
            read["sequence"] = tuple(map(action_from_json, read["sequence"]))
        rule = cls(**read)
        # What always stands has no other count, so that none has to be given.
        is_open = rule.count == 1 and not all(step.has_count for step in rule.steps)
        return cls(**{**read, "count": None}) if is_open else rule

    def to_json(self) -> dict[str, object]:
        """Every field as JSON has it."""
        written = Selectors.to_json(self)
        if self.action is not None:
            written["action"] = self.action.to_json()
        if self.sequence is not None:
            written["sequence"] = tuple(step.to_json() for step in self.sequence)
        return written

    @property
    def steps(self) -> tuple[Action, ...]:
        """The action of each hit in turn, from the first one again after the last."""
        return (self.action,) if self.action is not None else self.sequence or ()

    @property
    def target(self) -> Target:
        """What it hits."""
        return next(
            (step.target for step in self.steps if not isinstance(step, Pass)), Target.REQUESTS
        )

    @property
    def max_hits(self) -> int | None:
        """How many hits it has in all; None is no end."""
        return None if self.count is None else self.count * len(self.steps)


def validated_apis(rule: FaultRule) -> tuple[Api, ...]:
    """The APIs whose requests can meet a rule; none for one of connections or ports.

    Each API that it names must be able to; of every API those that can.

    :raises ControllerError: INVALID_REQUEST for a rule that nothing can meet.
    """
    _raise_first(_sequence_problems(rule))
    if rule.target is not Target.REQUESTS:
        _raise_first(_problems_before_requests(rule))
        return ()
    return _apis_without(rule.api, lambda api: _problems(rule, api))


def selected_apis(selectors: Selectors) -> tuple[Api, ...]:
    """The APIs whose requests can match selectors, as `validated_apis`.

    :raises ControllerError: INVALID_REQUEST where none can.
    """
    from fencepost.broker.faults.matching import selector_problems

    return _apis_without(
        selectors.api, lambda api: selector_problems(selectors, api, changes_responses=False)
    )


def _apis_without(apis: Apis, problems: Callable[[Api], Iterator[str]]) -> tuple[Api, ...]:
    """Each of the APIs, as far as they are named; of every API those without a problem."""
    if not apis.is_every:
        for api in apis.named:
            _raise_first(problems(api))
        return apis.named
    found = tuple(api for api in APIS if next(problems(api), None) is None)
    if not found:
        _raise_first(f"api: no API can meet it: {each}" for each in problems(APIS[0]))
    return found


def _raise_first(problems: Iterator[str]) -> None:
    problem = next(problems, None)
    if problem is not None:
        raise ControllerError(ErrorCode.INVALID_REQUEST, problem)


def _sequence_problems(rule: FaultRule) -> Iterator[str]:
    """What is wrong with the actions, whatever they hit."""
    sequence = rule.sequence
    if (rule.action is None) is (sequence is None):
        yield "action, sequence: name one of the two"
        return
    if sequence is not None and not 1 <= len(sequence) <= MAX_STEPS:
        yield f"sequence: name 1 to {MAX_STEPS} actions"
        return
    for step in rule.steps:
        if not step.has_count and sequence is not None:
            yield f"sequence: {step.name} has no end, so that no action comes after it"
        if not step.has_count and rule.count is not None:
            yield f"count: {step.name} has no end; leave it out, and remove the fault instead"
    targets = {step.target: step.name for step in rule.steps if not isinstance(step, Pass)}
    if len(targets) > 1:
        names = " and ".join(targets.values())
        yield f"sequence: {names} do not hit the same: one hits connections, the other requests"


def _problems_before_requests(rule: FaultRule) -> Iterator[str]:
    """Only a broker selects what has no request yet."""
    name = next(step.name for step in rule.steps if not isinstance(step, Pass))
    if not rule.api.is_every:
        yield f"api: {name} hits connections before any request of them; write {EVERY!r}"
    for each in fields(Selectors):
        if each.name not in ("api", "broker") and getattr(rule, each.name) is not None:
            yield (
                f"{each.name}: {name} hits connections before any request of them, which only "
                "broker can select"
            )
    if rule.target is Target.PORTS and (rule.after or rule.probability < 1):
        yield f"after, probability: {name} closes the port, and no connection is counted"


def _problems(rule: FaultRule, api: Api) -> Iterator[str]:
    """Why no request of an API can meet it."""
    # Late: the command line imports this module, and few commands set a fault.
    from fencepost.broker.faults.matching import selector_problems

    for number, step in enumerate(rule.steps):
        problems = chain(
            selector_problems(rule, api, changes_responses=step.changes_responses),
            step.problems(rule, api),
        )
        for problem in problems:
            place = "action" if rule.sequence is None else f"sequence[{number}]"
            yield problem.replace("action", place, 1) if problem.startswith("action") else problem
        if step.needs_bytes and rule.source == "brokers":
            yield f"source: {step.name} acts on bytes, and brokers exchange messages without any"
