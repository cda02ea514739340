"""What all client actions take and answer, as data. Times are milliseconds.

Offsets named ``end`` or ``next`` and high watermarks are exclusive, all others inclusive.
"""

from typing import Annotated, Final, Literal

from pydantic import Field

from fencepost.verbs.answers import Answer
from fencepost.verbs.bodies import MAX_DELAY_MS, Body

DEFAULT_CLIENT: Final = "scenario"
TIMEOUT_MS: Final = 30_000
Milliseconds = Annotated[int, Field(ge=0, le=MAX_DELAY_MS)]
PartitionIndex = Annotated[int, Field(ge=0)]
Version = Annotated[int, Field(ge=0, le=32767)]
IsolationLevel = Literal["read_uncommitted", "read_committed"]


class ActionBody(Body):
    """The fields of every action."""

    client: str = DEFAULT_CLIENT
    """The client that acts: its client id, with connections of its own. An action in the background
    is done by a client of that name."""
    broker: int | None = None
    """Whom to ask. Left out: the partition's leader as it really is, or the group's coordinator by
    FindCoordinator; else the first broker that runs."""
    version: Version | None = None
    """Of the API. Left out: the highest that both sides know, by ApiVersions."""
    timeout_ms: Milliseconds = TIMEOUT_MS
    """How long to wait for an answer."""


class PartitionBody(ActionBody):
    """A request about one partition."""

    topic: str
    partition: PartitionIndex = 0


class GroupBody(ActionBody):
    """A request to a group's coordinator."""

    group: str


class ActionAnswer(Answer):
    """The fields of every answer."""

    error: str | None
    """Kafka's name of the error, ``NONE`` for none; null where no answer came."""
    failed: str | None
    """Why no answer came: ``disconnected``, ``timed_out``, ``unreachable``, ``malformed``,
    ``not_served``, ``no_leader``."""
    broker: int | None
    """Who was asked."""
    version: int | None
    throttle_time_ms: int
    elapsed_ms: int
    """Of real time."""


class LeaderAnswer(Answer):
    """Who leads instead."""

    id: int
    epoch: int
