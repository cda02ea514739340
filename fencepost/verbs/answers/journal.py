"""Events, and exchanges of the journal: requests with their answers."""

from pydantic import ConfigDict

from fencepost.verbs.answers import Answer


class EventState(Answer):
    """Something that happened in the cluster: the data of one server-sent event."""

    number: int
    """The event's id. It rises by one with each, also across a reset."""
    kind: str
    """The event's name."""
    time_ms: int
    """Of the cluster's clock, since 1970-01-01 UTC."""
    topic: str | None
    partition: int | None
    broker: int | None
    details: dict[str, object]
    """Fields that depend on the kind."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "number": 17,
                    "kind": "leader_changed",
                    "time_ms": 1764000000000,
                    "topic": "orders",
                    "partition": 0,
                    "broker": 2,
                    "details": {"leader": 2, "previous_leader": 1, "leader_epoch": 3},
                }
            ]
        }
    )


class ExchangeState(Answer):
    """A request and its answer, decoded."""

    number: int
    """Rises by one with each request of the process, also across a reset."""
    time_ms: int
    """When the request came, since 1970-01-01 UTC."""
    answered_ms: int | None
    """Null while it waits for its answer, and where its connection ended before."""
    elapsed_us: int | None
    """Microseconds of real time from the start of its processing to its answer."""
    newest: int
    """Number of the last request received before this one ended; higher ones came later."""
    broker: int
    """The broker that received the request."""
    connection: str
    """Between brokers the sender, such as ``broker-2``."""
    client_id: str | None
    api: str
    """Kafka's name of the API."""
    version: int
    correlation_id: int
    """0 between brokers."""
    request: dict[str, object]
    """The fields of this version, by Kafka's names in snake_case."""
    response: dict[str, object] | None
    """Null while there is none; acks=0 never gets one."""
    topic_names: dict[str, str]
    """The names of the topic ids in it, as far as they are known."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "number": 17,
                    "time_ms": 1764000000000,
                    "answered_ms": 1764000000000,
                    "elapsed_us": 117,
                    "newest": 17,
                    "broker": 1,
                    "connection": "127.0.0.1:9092-127.0.0.1:51724",
                    "client_id": "checkout",
                    "api": "ListOffsets",
                    "version": 5,
                    "correlation_id": 4,
                    "request": {
                        "replica_id": -1,
                        "isolation_level": 0,
                        "topics": [
                            {
                                "name": "orders",
                                "partitions": [
                                    {
                                        "partition_index": 0,
                                        "current_leader_epoch": 0,
                                        "timestamp": -1,
                                    }
                                ],
                            }
                        ],
                    },
                    "response": {
                        "throttle_time_ms": 0,
                        "topics": [
                            {
                                "name": "orders",
                                "partitions": [
                                    {
                                        "partition_index": 0,
                                        "error_code": 0,
                                        "timestamp": -1,
                                        "offset": 42,
                                        "leader_epoch": 0,
                                    }
                                ],
                            }
                        ],
                    },
                    "topic_names": {},
                }
            ]
        }
    )
