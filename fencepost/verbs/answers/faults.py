"""Faults, of requests and of the remote tier."""

from typing import Literal

from pydantic import ConfigDict

from fencepost.verbs.answers.base import Answer
from fencepost.verbs.derived import Derived, answered_fault


@answered_fault(
    {
        "api": "Kafka's name.",
        "action": "As it was given; an error by Kafka's name where it has one.",
    }
)
class FaultState(Derived, Answer):
    """A fault, as it was set, and what it has done."""

    id: int
    """Rises by one with each fault of the process, also across a reset."""
    hits: int
    """Requests that it hit."""
    left: int | None
    """Requests that it will hit yet, at most; null: no end."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
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
                    "count": 3,
                    "after": 0,
                    "probability": 1.0,
                    "action": {"error": "NOT_ENOUGH_REPLICAS"},
                }
            ]
        }
    )


class TierFaultState(Answer):
    """A fault of the remote tier, as it was set, and what it has done."""

    id: int
    """Rises by one with each tier fault."""
    hits: int
    """Operations that it hit."""
    left: int | None
    """Operations that it will hit yet, at most; null: no end."""
    operation: Literal["upload", "fetch", "delete", "list"]
    error: str | None
    """What the tier says; null where the operation is only late."""
    delay_ms: int | None
    """Null where it is not late."""
    count: int | None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
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
        }
    )
