"""The cluster: its brokers, its clock, and the faults that are set in it."""

from typing import Literal

from pydantic import ConfigDict

from fencepost.verbs.answers import Answer
from fencepost.verbs.derived import Derived, answered_fault


class BrokerState(Answer):
    """One broker."""

    id: int
    host: str
    """As advertised to clients; where none is, the address of the control API."""
    port: int
    """It stays the broker's while the broker is down, and refuses connections."""
    state: Literal["running", "stopped", "killed"]
    """Of its process."""
    fenced: bool
    """Whether the controller considers it offline: then it leads nothing and is in no ISR."""
    epoch: int
    """Of its registration; rises each time that it registers (KIP-903)."""
    isolated_from: tuple[int | Literal["controller"], ...]
    """The nodes to which a test has cut its links."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": 2,
                    "host": "127.0.0.1",
                    "port": 9093,
                    "state": "running",
                    "fenced": False,
                    "epoch": 2,
                    "isolated_from": [1],
                }
            ]
        }
    )


class ClockState(Answer):
    """The cluster's time."""

    mode: Literal["real", "manual"]
    """A manual one stands still until it is advanced."""
    now_ms: int
    """Since 1970-01-01 UTC; with ``real`` it follows the machine's clock when that is set."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"mode": "manual", "now_ms": 1764000030000}]}
    )


class ClusterState(Answer):
    """Brokers, controller, features and time."""

    cluster_id: str
    brokers: tuple[BrokerState, ...]
    controller: int
    """Broker id."""
    features: dict[str, int]
    """Finalized feature levels by name, as ApiVersions answers them: ``metadata.version``."""
    clock: ClockState

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "cluster_id": "4L6g3nShT-eMCtK--X86sw",
                    "brokers": [
                        {
                            "id": 1,
                            "host": "127.0.0.1",
                            "port": 9092,
                            "state": "running",
                            "fenced": False,
                            "epoch": 1,
                            "isolated_from": [],
                        },
                        {
                            "id": 2,
                            "host": "127.0.0.1",
                            "port": 9093,
                            "state": "running",
                            "fenced": True,
                            "epoch": 2,
                            "isolated_from": ["controller", 1],
                        },
                    ],
                    "controller": 1,
                    "features": {"metadata.version": 30},
                    "clock": {"mode": "real", "now_ms": 1764000000000},
                }
            ]
        }
    )


@answered_fault(
    {
        "api": "Kafka's name.",
        "action": "As it was given; an error by Kafka's name where it has one.",
    }
)
class FaultState(Derived, Answer):
    """A fault as it was set, and its hits."""

    id: int
    """Rises by one with each fault of the process, also across a reset."""
    hits: int
    """The number of requests that it has hit."""
    left: int | None
    """How many more requests it hits, at most; null: no limit."""

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
