"""How a scenario went."""

from dataclasses import dataclass
from typing import Protocol

from fencepost.control.scenario.compare import Mismatch
from fencepost.control.scenario.document import Data
from fencepost.control.scenario.model import Scenario, Step
from fencepost.verbs.answers.seen import ExchangeState


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """How a step went."""

    step: Step
    elapsed_ms: int
    answer: Data
    """The last one, where it was asked again; null for none."""
    mismatches: tuple[Mismatch, ...]
    problem: str | None
    """Why it could not be done at all."""
    inner: "tuple[StepOutcome, ...]" = ()
    """Of the steps that it consists of."""

    @property
    def passed(self) -> bool:
        """Whether everything was as expected."""
        own = not self.mismatches and self.problem is None
        return own and all(each.passed for each in self.inner)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioOutcome:
    """How a scenario went."""

    scenario: Scenario
    steps: tuple[StepOutcome, ...]
    """As far as it came: the last one failed, if any did."""
    elapsed_ms: int
    problem: str | None
    """Why it could not be played, or not to its end."""
    journal: tuple[ExchangeState, ...]
    """The last exchanges, where it failed."""

    @property
    def passed(self) -> bool:
        """Whether everything was as expected."""
        return self.problem is None and all(each.passed for each in self.steps)


class Listener(Protocol):
    """Who is told how it goes."""

    def begins(self, scenario: Scenario) -> None:
        """A scenario begins."""

    def step_begins(self, step: Step, number: int, of: int) -> None:
        """A step begins; its number counts from 1."""

    def step_ended(self, outcome: StepOutcome) -> None:
        """A step is over."""

    def ended(self, outcome: ScenarioOutcome) -> None:
        """A scenario is over."""
