"""A rule: which requests it fits, how often it hits, and what becomes of those that it hits.

An action as a test names it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, assert_never

from fencepost.protocol.apis import Api
from fencepost.protocol.errors import ErrorCode


class DisconnectWhen(StrEnum):
    """When a connection ends."""

    BEFORE = "before"
    """The request is not carried out."""
    AFTER = "after"
    """It was, and its answer would go out now."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Refuse with an error code.

    The request is not carried out, unless the code is REQUEST_TIMED_OUT: that comes afterwards, as
    at a real broker.
    """

    code: int


@dataclass(frozen=True, slots=True)
class Delay:
    """Lie in the queue before it is carried out; on its connection nothing overtakes it."""

    ms: int


@dataclass(frozen=True, slots=True)
class Disconnect:
    """End the connection instead of an answer."""

    when: DisconnectWhen


@dataclass(frozen=True, slots=True)
class Throttle:
    """Answer with a throttle time, and read nothing from the connection for so long (KIP-219)."""

    ms: int


@dataclass(frozen=True, slots=True)
class Drop:
    """Carry out and never answer, and read nothing from the connection any more."""


@dataclass(frozen=True, slots=True)
class Corrupt:
    """Change a byte of the records that Produce brings, or of those that Fetch answers."""


@dataclass(frozen=True, slots=True)
class StaleMetadata:
    """Tell of partitions as they were in a leader epoch."""

    epoch: int


Action: TypeAlias = Refuse | Delay | Disconnect | Throttle | Drop | Corrupt | StaleMetadata


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of an API, both inclusive; None is an open end."""

    low: int | None
    high: int | None

    def __contains__(self, version: int) -> bool:
        if self.low is not None and version < self.low:
            return False
        return self.high is None or version <= self.high

    def __str__(self) -> str:
        if self.low == self.high and self.low is not None:
            return str(self.low)
        low, high = ("" if end is None else str(end) for end in (self.low, self.high))
        return f"{low}-{high}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRule:
    """A fault as a test sets it. A request fits when every selector that is not None fits."""

    api: Api
    action: Action
    versions: Versions | None = None
    broker: int | None = None
    """The one that is asked."""
    client_id: str | None = None
    brokers_ask: bool | None = None
    """Whether other brokers of the cluster ask, or only clients; None is both."""
    topic: str | None = None
    """One that the request names."""
    partition: int | None = None
    """Of that topic."""
    group: str | None = None
    transactional_id: str | None = None
    count: int | None = 1
    """Requests that it hits before it is over; None is no end."""
    after: int = 0
    """Requests that fit and are let through first."""
    probability: float = 1.0
    """That one which fits is hit, from above 0 to 1."""

    @property
    def selects_parts(self) -> bool:
        """Whether it may fit a part of a request alone."""
        return self.topic is not None or self.group is not None


def action_to_dict(action: Action) -> dict[str, object]:
    """One field: what is done, and its value; an error by Kafka's name where it has one."""
    match action:
        case Refuse(code):
            return {"error": ErrorCode(code).name if code in _KNOWN_ERRORS else code}
        case Delay(ms):
            return {"delay": ms}
        case Disconnect(when):
            return {"disconnect": when.value}
        case Throttle(ms):
            return {"throttle": ms}
        case Drop():
            return {"drop": True}
        case Corrupt():
            return {"corrupt": True}
        case StaleMetadata(epoch):
            return {"stale_metadata": epoch}
        case _:
            assert_never(action)


_KNOWN_ERRORS = frozenset(ErrorCode)
