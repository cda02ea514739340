"""A scenario, read and checked, and how it went: data for the loader, the player and reports."""

from collections.abc import Mapping
from typing import Final, Protocol, TypeAlias

from msgspec import Struct, field

from fencepost.scenario.actions.context import Action
from fencepost.scenario.compare import Mismatch
from fencepost.scenario.document import Data, Document, KeyPath, Place
from fencepost.scenario.processes import ProcessAnswer, ProcessStep, RunBody
from fencepost.verbs.answers.cluster import ExchangeState
from fencepost.verbs.bodies import NewTopicBody
from fencepost.verbs.catalogue import Shape, Verb
from fencepost.verbs.serving import ClusterBody

WITHIN_MS: Final = 10_000


class PartitionExpectation(Struct, frozen=True, kw_only=True):
    """A partition's state as it is expected to be."""

    path: KeyPath
    topic: str
    partition: int
    fields: dict[str, Data]


class TraceExpectation(Struct, frozen=True, kw_only=True):
    """How many exchanges of the journal are expected that fit."""

    path: KeyPath
    filters: dict[str, Data]
    since: str | int | None
    """The name of a step, or a number; None: the start of the scenario."""
    where: Data
    size: Data


class Expectation(Struct, frozen=True, kw_only=True):
    """What is expected after a step; all of it must hold."""

    path: KeyPath
    fields: dict[str, Data]
    """Of the answer."""
    partitions: tuple[PartitionExpectation, ...]
    traces: tuple[TraceExpectation, ...]
    refused: str | None
    """The error code with which a verb is refused."""
    pending: str | None
    """A background action that has no answer yet."""


class VerbCall(Struct, frozen=True, kw_only=True):
    """A verb to carry out."""

    verb: Verb
    arguments: dict[str, Data]


class ActionCall(Struct, frozen=True, kw_only=True):
    """A client that acts."""

    action: Action
    arguments: dict[str, Data]


class ProcessCall(Struct, frozen=True, kw_only=True):
    """A process of the user that is started, looked at or ended."""

    step: ProcessStep
    arguments: dict[str, Data]

    @property
    def starts_one(self) -> bool:
        """Whether it starts a process."""
        return self.step.request_model is RunBody


class Await(Struct, frozen=True, kw_only=True):
    """A background action whose answer is waited for, or a process whose exit is."""

    name: str


class Parallel(Struct, frozen=True, kw_only=True):
    """Steps that are done at once."""

    steps: "tuple[Step, ...]"


Operation: TypeAlias = VerbCall | ActionCall | ProcessCall | Await | Parallel


class Step(Struct, frozen=True, kw_only=True):
    """One step."""

    path: KeyPath
    place: Place
    do: Operation | None
    """None: it only says or expects something."""
    say: str | None
    name: str | None
    expect: Expectation | None
    until: Expectation | None
    within_ms: int
    background: str | None
    repeat: int

    @property
    def parameters(self) -> Mapping[str, Data]:
        """What is given to its verb, action or process."""
        calls = VerbCall | ActionCall | ProcessCall
        return self.do.arguments if isinstance(self.do, calls) else {}

    @property
    def needs_events(self) -> bool:
        """Whether it, or a step within it, is answered by the cluster's events."""
        if isinstance(self.do, Parallel):
            return any(step.needs_events for step in self.do.steps)
        return isinstance(self.do, VerbCall) and self.do.verb.shape is Shape.STREAM

    @property
    def starts_process(self) -> bool:
        """Whether it, or a step within it, starts a process of the user."""
        if isinstance(self.do, Parallel):
            return any(step.starts_process for step in self.do.steps)
        return isinstance(self.do, ProcessCall) and self.do.starts_one


class Scenario(Struct, frozen=True, kw_only=True):
    """A file."""

    name: str
    """Of a shipped one; the file's stem."""
    summary: str
    """One line."""
    teaches: str
    """Paragraphs; empty where it says nothing."""
    cluster: ClusterBody
    topics: tuple[NewTopicBody, ...]
    steps: tuple[Step, ...]
    document: Document

    @property
    def needs_events(self) -> bool:
        """Whether a step is answered by the cluster's events."""
        return any(step.needs_events for step in self.steps)

    def __str__(self) -> str:
        return self.name


class StepOutcome(Struct, frozen=True, kw_only=True):
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


class ScenarioOutcome(Struct, frozen=True, kw_only=True):
    """How a scenario went."""

    scenario: Scenario
    seed: int | None
    """Of the cluster's random choices; None where there was no cluster to ask."""
    steps: tuple[StepOutcome, ...]
    """As far as it came: the last one failed, if any did."""
    elapsed_ms: int
    problem: str | None
    """Why it could not be played, or not to its end."""
    journal: tuple[ExchangeState, ...]
    """The last exchanges, where it failed."""
    processes: Mapping[str, ProcessAnswer] = field(default_factory=dict)
    """Those in the background as they were in the end, by name."""

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
