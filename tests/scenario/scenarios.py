"""Scenarios from text, played on a cluster of the test's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import dedent, indent

from docs.generate import ROOT
from fencepost.scenario.loader import read_text
from fencepost.scenario.model import Scenario, ScenarioOutcome, Step, StepOutcome
from fencepost.scenario.player import play

HEAD = """\
summary: A test.
cluster: {brokers: 3}
topics:
  - {name: orders, assignments: [[1, 2, 3]]}
  - {name: many, partitions: 4, replication_factor: 3}
steps:
"""


def scenario(steps: str, head: str = HEAD) -> Scenario:
    """One of these steps, with two topics on three brokers."""
    return read_text(head + indent(dedent(steps), "  "), file="test.yaml", name="test")


def documented(before: str) -> str:
    """The first YAML behind a line of docs/scenarios.md."""
    page = (ROOT / "docs" / "scenarios.md").read_text()
    return page.split(before)[1].split("```yaml\n")[1].split("```")[0]


@dataclass(slots=True)
class Told:
    """What a listener is told."""

    lines: list[str] = field(default_factory=list)

    def begins(self, scenario: Scenario) -> None:
        self.lines.append(f"begins {scenario.name}")

    def step_begins(self, step: Step, number: int, of: int) -> None:
        self.lines.append(f"step {number} of {of}")

    def step_ended(self, outcome: StepOutcome) -> None:
        self.lines.append("passed" if outcome.passed else "failed")

    def ended(self, outcome: ScenarioOutcome) -> None:
        self.lines.append("ended")


async def played(
    url: str, steps: str, told: Told | None = None, *, head: str = HEAD, reset: bool = True
) -> ScenarioOutcome:
    return await play(scenario(steps, head), url, told or Told(), reset=reset)


async def passes(url: str, steps: str) -> ScenarioOutcome:
    """Play it; it must pass."""
    from fencepost.scenario.formatting import describe_failure

    outcome = await played(url, steps)
    assert outcome.passed, "\n".join(describe_failure(outcome))
    return outcome


async def fails(url: str, steps: str) -> list[str]:
    """Play it; it must fail. What is reported of it."""
    from fencepost.scenario.formatting import describe_failure

    outcome = await played(url, steps)
    assert not outcome.passed
    return describe_failure(outcome)
