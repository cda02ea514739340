"""How many requests were seen; where there are not as many as expected, the nearest ones."""

from typing import ClassVar, Final

from fencepost.verbs.answers import Answer, ErrorAnswer
from fencepost.verbs.model import Example, Examples

_NEAR: Final[Example] = {
    "number": 17,
    "time_ms": 1764000000000,
    "broker": 1,
    "client_id": "checkout",
    "api": "Produce",
    "version": 12,
    "differs": {"topic": ["payments-0"]},
}


class Verified(Answer):
    """As many requests were seen as were expected."""

    matched: int
    """How many."""

    examples: ClassVar[Examples] = [{"matched": 2}]


class NearRequest(Answer):
    """A request, and what of it does not match."""

    number: int
    """In the trace."""
    time_ms: int
    """When it came, since 1970-01-01 UTC."""
    broker: int
    """The broker that received it."""
    client_id: str | None
    api: str
    """Kafka's name of the API."""
    version: int
    differs: dict[str, object]
    """By selector, what the request has in its place; empty for one that matches."""

    examples: ClassVar[Examples] = [_NEAR]


class RequestsNotVerified(ErrorAnswer):
    """There are more or fewer requests than expected, or the trace cannot tell."""

    matched: int
    """How many certainly match."""
    unknown: int
    """How many more may match, of which the trace has too little left."""
    nearest: tuple[NearRequest, ...]
    """Too few: those that are most alike, the nearest first. Too many: the last that match."""

    examples: ClassVar[Examples] = [
        {
            "error": "REQUESTS_NOT_VERIFIED",
            "message": "expected 1 Produce with topic orders, and 0 came; nearest: number "
            "17, Produce v12 by checkout to broker 1: topic payments-0",
            "matched": 0,
            "unknown": 0,
            "nearest": [_NEAR],
        }
    ]
