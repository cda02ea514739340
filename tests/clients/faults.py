"""What clients make of each fault: what the application is told, and what is stored in the end.

The rows hold for fencepost with the fault set, and for a real Kafka to which the same is done
(`tests.harness.fault_proxy`): test_faults.py plays them on both. Where clients differ, the row has
both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Fault: TypeAlias = dict[str, Any]
Told: TypeAlias = str | Mapping[str, str]
"""The same of all clients, or by client."""

CLIENTS: Final = ("confluent", "java", "go")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A fault, what each client does meanwhile, and the results."""

    name: str
    fault: Fault
    """Without the client id, which is the client's own."""
    does: str
    """A line for the worker, without client id, topic and group: ``produce a,b``, ``consume 2``."""
    told: Told
    """What it answers: offsets, values and errors in the order in which they came."""
    stored: Told = "a b"
    """Values in the log at the end. Those who read find ``a`` and ``b``, a batch each."""
    hits: int | None = 1
    """None: at least one."""


def _produce(name: str, action: Fault, told: Told, stored: Told, does: str = "a") -> Case:
    fault = {"api": "Produce", "action": action}
    return Case(name=name, fault=fault, does=f"produce {does}", told=told, stored=stored)


def _consume(
    name: str, action: Fault, told: Told = "a; b", does: str = "2", api: str = "Fetch"
) -> Case:
    fault = {"api": api, "action": action}
    return Case(name=name, fault=fault, does=f"consume {does}", told=told)


def _member(name: str, api: str, action: Fault, told: Told = "a; b; committed") -> Case:
    fault = {"api": api, "action": action}
    return Case(name=name, fault=fault, does="member 2 errors=2", told=told)


def _denied(code: str, exception: str) -> dict[str, str]:
    """What each calls an error of which it tells and does not try again."""
    return {"confluent": code, "java": exception, "go": code}


_PLAIN: Final = "idempotent=false"
_HASTY: Final = "request_ms=1200"
_LATE: Final[Fault] = {"delay": 5000}
"""Long after the second try of a hasty client; librdkafka looks at its clock every second."""
_NO_TOPIC: Final = _denied("TOPIC_AUTHORIZATION_FAILED", "TopicAuthorizationException")
_NO_GROUP: Final = _denied("GROUP_AUTHORIZATION_FAILED", "GroupAuthorizationException")

PRODUCING: Final = (
    Case(
        name="retriable",
        fault={"api": "Produce", "count": 2, "action": {"error": "NOT_ENOUGH_REPLICAS"}},
        does="produce a",
        told="0",
        stored="a",
        hits=2,
    ),
    _produce("not the leader", {"error": "NOT_LEADER_OR_FOLLOWER"}, "0", "a"),
    _produce(
        "denied",
        {"error": "TOPIC_AUTHORIZATION_FAILED"},
        {
            # librdkafka takes the topic for denied until it hears of it again.
            "confluent": "TOPIC_AUTHORIZATION_FAILED; TOPIC_AUTHORIZATION_FAILED",
            "java": "TopicAuthorizationException; 0",
            "go": "TOPIC_AUTHORIZATION_FAILED; 0",
        },
        {"confluent": "", "java": "b", "go": "b"},
        "a,b",
    ),
    _produce(
        "too large",
        {"error": "MESSAGE_TOO_LARGE"},
        {
            "confluent": "MSG_SIZE_TOO_LARGE",
            "java": "RecordTooLargeException",
            "go": "MESSAGE_TOO_LARGE",
        },
        "",
    ),
    # It was appended. The second try is known for the same batch, unless the producer is plain.
    _produce("timed out", {"error": "REQUEST_TIMED_OUT"}, "0", "a"),
    _produce("timed out, plain", {"error": "REQUEST_TIMED_OUT"}, "1", "a a", f"a {_PLAIN}"),
    _produce("late", _LATE, "0", "a", f"a {_HASTY}"),
    # The second try comes first, and both are appended.
    _produce("late, plain", _LATE, "0", "a a", f"a {_HASTY} {_PLAIN}"),
    _produce("a little late", {"delay": 50}, "0; 1", "a b", "a,b"),
    _produce("disconnect before", {"disconnect": "before"}, "0", "a"),
    _produce("disconnect before, plain", {"disconnect": "before"}, "0", "a", f"a {_PLAIN}"),
    _produce("disconnect after", {"disconnect": "after"}, "0", "a"),
    _produce("disconnect after, plain", {"disconnect": "after"}, "1", "a a", f"a {_PLAIN}"),
    _produce("drop", {"drop": True}, "0", "a", f"a {_HASTY}"),
    _produce("drop, plain", {"drop": True}, "1", "a a", f"a {_HASTY} {_PLAIN}"),
    _produce("throttle", {"throttle": 200}, "0; 1; throttled 200", "a b", "a,b"),
    _produce(
        "corrupt",
        {"corrupt": True},
        # franz-go alone does not try again.
        {"confluent": "0", "java": "0", "go": "CORRUPT_MESSAGE"},
        {"confluent": "a", "java": "a", "go": ""},
    ),
    Case(
        name="producer id later",
        fault={"api": "InitProducerId", "action": {"error": "COORDINATOR_LOAD_IN_PROGRESS"}},
        does="produce a",
        told="0",
        stored="a",
    ),
    Case(
        name="no producer id",
        fault={
            "api": "InitProducerId",
            "count": None,
            "action": {"error": "CLUSTER_AUTHORIZATION_FAILED"},
        },
        does="produce a",
        told=_denied("CLUSTER_AUTHORIZATION_FAILED", "ClusterAuthorizationException"),
        stored="",
        hits=None,
    ),
)

CONSUMING: Final = (
    _consume("fetch of another leader", {"error": "NOT_LEADER_OR_FOLLOWER"}),
    _consume("fetch from a bad disk", {"error": "KAFKA_STORAGE_ERROR"}),
    _consume(
        "fetch denied",
        {"error": "TOPIC_AUTHORIZATION_FAILED"},
        {client: f"{error}; a; b" for client, error in _NO_TOPIC.items()},
        "2 errors=2",
    ),
    _consume("fetch out of range", {"error": "OFFSET_OUT_OF_RANGE"}),
    _consume("fetch late", _LATE, does=f"2 {_HASTY}"),
    _consume("fetch disconnect before", {"disconnect": "before"}),
    _consume("fetch disconnect after", {"disconnect": "after"}),
    _consume("fetch drop", {"drop": True}, does=f"2 {_HASTY}"),
    _consume("fetch throttle", {"throttle": 200}),
    _consume(
        "fetch corrupt",
        {"corrupt": True},
        # It is told, and what it then fetches again is whole.
        {
            "confluent": "_BAD_MSG; a; b",
            "java": "KafkaException; a; b",
            "go": "encoded crc does not match calculated crc; a; b",
        },
        "2 errors=2",
    ),
    _consume(
        "fetch corrupt, unchecked",
        {"corrupt": True},
        # The byte was the number of headers: librdkafka does not look, franz-go loses the record.
        {"confluent": "a", "java": "BufferUnderflowException", "go": "b"},
        "1 crc=false",
    ),
    _consume("offsets later", {"error": "OFFSET_NOT_AVAILABLE"}, api="ListOffsets"),
    _consume(
        "offsets disconnect",
        {"disconnect": "before"},
        # The first request of a connection: franz-go suspects that SASL is wanted.
        {"confluent": "a; b", "java": "a; b", "go": "ErrFirstReadEOF"},
        api="ListOffsets",
    ),
    _consume("metadata disconnect", {"disconnect": "before"}, api="Metadata"),
    _consume("metadata late", {"delay": 50}, api="Metadata"),
    _consume("versions disconnect", {"disconnect": "before"}, api="ApiVersions"),
)

JOINING: Final = (
    _member("no coordinator", "FindCoordinator", {"error": "COORDINATOR_NOT_AVAILABLE"}),
    _member("join later", "JoinGroup", {"error": "COORDINATOR_LOAD_IN_PROGRESS"}),
    Case(
        name="join denied",
        fault={"api": "JoinGroup", "action": {"error": "GROUP_AUTHORIZATION_FAILED"}},
        does="member 2",
        told=_NO_GROUP,
    ),
    _member(
        "join disconnect",
        "JoinGroup",
        {"disconnect": "after"},
        {
            "confluent": "a; b; committed",
            "java": "a; b; committed",
            "go": "ErrFirstReadEOF; a; b; committed",
        },
    ),
    _member("sync in a rebalance", "SyncGroup", {"error": "REBALANCE_IN_PROGRESS"}),
    _member("sync elsewhere", "SyncGroup", {"error": "NOT_COORDINATOR"}),
    _member("committed later", "OffsetFetch", {"error": "COORDINATOR_LOAD_IN_PROGRESS"}),
    _member("commit later", "OffsetCommit", {"error": "COORDINATOR_LOAD_IN_PROGRESS"}),
    _member("commit elsewhere", "OffsetCommit", {"error": "NOT_COORDINATOR"}),
    _member("commit disconnect", "OffsetCommit", {"disconnect": "after"}),
    _member(
        "commit denied",
        "OffsetCommit",
        {"error": "GROUP_AUTHORIZATION_FAILED"},
        {client: f"a; b; {error}" for client, error in _NO_GROUP.items()},
    ),
)

CASES: Final = (*PRODUCING, *CONSUMING, *JOINING)
