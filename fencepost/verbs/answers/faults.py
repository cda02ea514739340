"""Faults as they were set: of requests, with the fields of the broker's own rules, and of tiers."""

from typing import ClassVar, Literal

from fencepost.verbs.answers import Answer
from fencepost.verbs.derived import Derived, answered_fault
from fencepost.verbs.model import Examples


@answered_fault(
    {
        "api": "Kafka's name, an array of several, or ``*``.",
        "record": "What was given of it.",
        "action": "As it was given; an error by Kafka's name where it has one. Null: a sequence.",
        "sequence": "Its actions; null for a single one.",
    }
)
class FaultState(Derived, Answer):
    """A fault as it was set, and its hits."""

    id: int
    """Rises by one with each fault of the process, also across a reset."""
    hits: int
    """The number of requests, or of connections, that it has hit."""
    left: int | None
    """How many more it hits, at most; null: no limit."""

    examples: ClassVar[Examples] = [
        {
            "id": 1,
            "hits": 2,
            "left": 1,
            "api": "Produce",
            "versions": None,
            "broker": None,
            "client_id": None,
            "source": None,
            "topic": "orders",
            "partition": 0,
            "group": None,
            "transactional_id": None,
            "record": None,
            "count": 3,
            "after": 0,
            "probability": 1.0,
            "action": {"error": "NOT_ENOUGH_REPLICAS"},
            "sequence": None,
        }
    ]


class TierFaultState(Answer):
    """A fault of the remote tier as it was set, and its hits."""

    id: int
    """Rises by one with each tier fault."""
    hits: int
    """The number of operations that it has hit."""
    left: int | None
    """How many more operations it hits, at most; null: no limit."""
    operation: Literal["upload", "fetch", "delete", "list"]
    error: str | None
    """The tier's error message; null where the operation is only delayed."""
    delay_ms: int | None
    """Null where there is no delay."""
    count: int | None

    examples: ClassVar[Examples] = [
        {
            "id": 1,
            "hits": 0,
            "left": 1,
            "operation": "upload",
            "error": "no space left",
            "delay_ms": None,
            "count": 1,
        }
    ]
