"""A scenario, read and checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from fencepost.control.scenario.actions import Action
from fencepost.control.scenario.document import Data, Document, Path
from fencepost.control.scenario.mistakes import Place
from fencepost.verbs.bodies import NewTopicBody
from fencepost.verbs.catalogue import Verb
from fencepost.verbs.serving import ClusterBody

WITHIN_MS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionExpectation:
    """A partition's state as it is expected to be."""

    path: Path
    topic: str
    partition: int
    fields: dict[str, Data]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceExpectation:
    """How many exchanges of the journal are expected that fit."""

    path: Path
    filters: dict[str, Data]
    since: str | int | None
    """The name of a step, or a number; None: the start of the scenario."""
    where: Data
    size: Data


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What is expected after a step; all of it must hold."""

    path: Path
    fields: dict[str, Data]
    """Of the answer."""
    partitions: tuple[PartitionExpectation, ...]
    traces: tuple[TraceExpectation, ...]
    refused: str | None
    """The error code with which a verb is refused."""
    pending: str | None
    """A background action that has no answer yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoVerb:
    """A verb to carry out."""

    verb: Verb
    given: dict[str, Data]


@dataclass(frozen=True, slots=True, kw_only=True)
class DoAction:
    """A client that acts."""

    action: Action
    given: dict[str, Data]


@dataclass(frozen=True, slots=True, kw_only=True)
class Await:
    """A background action whose answer is waited for."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Steps that are done at once."""

    steps: "tuple[Step, ...]"


Deed: TypeAlias = DoVerb | DoAction | Await | Together


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step."""

    path: Path
    place: Place
    do: Deed | None
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
        """What is given to its verb or action."""
        return self.do.given if isinstance(self.do, DoVerb | DoAction) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
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

    def __str__(self) -> str:
        return self.name
