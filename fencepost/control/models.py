"""What the control API takes and answers, as data: the one description that OpenAPI shows.

Names are the contract's: fields may be added, none renamed or removed. Offsets named ``end`` and
high watermarks are exclusive, all others inclusive; times are milliseconds.
"""

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, Strict, model_validator

T = TypeVar("T")
Listed = Annotated[tuple[T, ...], Strict(False)]
"""A JSON array. JSON has no tuples, so this alone is not strict; its elements are."""


class Body(BaseModel):
    """What a request says. Nothing is converted, and nothing that is unknown is ignored."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", use_attribute_docstrings=True
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, given: object) -> object:
        if isinstance(given, dict):
            for name in given:
                if name not in cls.model_fields:
                    known = ", ".join(cls.model_fields)
                    raise ValueError(f"there is no field {name!r}; there are {known}")
        return given


class Answer(BaseModel):
    """What an answer says; later versions may say more."""

    model_config = ConfigDict(strict=True, frozen=True, use_attribute_docstrings=True)


class ErrorAnswer(Answer):
    """Why a request is refused."""

    error: str
    """Kafka's name of the error where there is one, else one in its manner."""
    message: str
    """For a reader."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "error": "UNKNOWN_TOPIC_OR_PARTITION",
                    "message": "there is no partition orders-7",
                }
            ]
        }
    )


class Health(Answer):
    """Whether the cluster serves."""

    status: Literal["ok"] = "ok"


class Done(Answer):
    """It is done, and there is no more to say."""


class BrokerState(Answer):
    """One broker."""

    id: int
    host: str
    """As advertised to clients; the address that you reached where none is."""
    port: int
    state: Literal["running", "fenced"]


class ClockState(Answer):
    """The cluster's time."""

    mode: Literal["real", "manual"]
    now_ms: int
    """Since 1970-01-01 UTC."""


class ClusterState(Answer):
    """Brokers, controller, features and time."""

    cluster_id: str
    brokers: tuple[BrokerState, ...]
    controller: int
    """Broker id."""
    features: dict[str, int]
    """Finalized feature levels, as ApiVersions answers them: none."""
    clock: ClockState

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "cluster_id": "4L6g3nShT-eMCtK--X86sw",
                    "brokers": [
                        {"id": 1, "host": "127.0.0.1", "port": 9092, "state": "running"},
                        {"id": 2, "host": "127.0.0.1", "port": 9093, "state": "running"},
                    ],
                    "controller": 1,
                    "features": {"metadata.version": 30},
                    "clock": {"mode": "real", "now_ms": 1764000000000},
                }
            ]
        }
    )


class NewTopicBody(Body):
    """A topic to create: counts, or assignments, not both."""

    name: str
    partitions: int | None = None
    """Left out: the broker config ``num.partitions``."""
    replication_factor: int | None = None
    """Left out: the broker config ``default.replication.factor``."""
    assignments: Listed[Listed[int]] | None = None
    """The broker ids of each partition in order of index, the preferred leader first."""
    configs: dict[str, str] = Field(default_factory=dict)
    """Topic configs by Kafka's names, as text."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "orders", "partitions": 3, "replication_factor": 3},
                {
                    "name": "payments",
                    "assignments": [[1, 2, 3], [3, 1, 2]],
                    "configs": {"cleanup.policy": "compact"},
                },
            ]
        }
    )


class TopicState(Answer):
    """One topic."""

    name: str
    topic_id: str
    """A UUID; another one for each topic, also where the name comes again."""
    partitions: int
    replication_factor: int
    """Of partition 0."""
    internal: bool
    configs: dict[str, str]
    """Only those that were set for this topic."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "orders",
                    "topic_id": "1c9b5c04-9b5e-4b0a-8d53-0b1ee7b1d0a4",
                    "partitions": 3,
                    "replication_factor": 3,
                    "internal": False,
                    "configs": {"retention.ms": "3600000"},
                }
            ]
        }
    )


class EpochStart(Answer):
    """A leader epoch of a replica's log."""

    epoch: int
    start_offset: int


class SegmentState(Answer):
    """A segment of a replica's log."""

    base_offset: int
    bytes: int
    records: int


class ReplicaState(Answer):
    """One replica, as its own broker knows it. Offsets are -1 where it is offline."""

    broker: int
    role: Literal["leader", "follower", "offline"]
    state: Literal["leading", "fetching", "out_of_range", "idle", "offline"]
    """What it is doing; a follower that has all that its leader has is idle."""
    log_start_offset: int
    local_log_start_offset: int
    log_end_offset: int
    high_watermark: int
    epochs: tuple[EpochStart, ...]
    held: bool
    """Whether a test keeps it from fetching: never so far."""
    held_at: int | None
    segments: tuple[SegmentState, ...]


class GateState(Answer):
    """KIP-207's gate before ListOffsets. There is none yet: it is open."""

    open: bool
    until_offset: int
    """The leader's log end at its election, which the high watermark has to reach."""


class RemoteSegmentState(Answer):
    """A segment in the remote tier."""

    id: str
    start_offset: int
    end_offset: int
    epochs: tuple[EpochStart, ...]
    bytes: int


class RemoteState(Answer):
    """A partition's remote tier."""

    start_offset: int
    last_tiered_offset: int
    pending_upload_offset: int
    segments: tuple[RemoteSegmentState, ...]


class PartitionState(Answer):
    """The whole truth about a partition. Offsets are the leader's; -1 while there is none."""

    topic: str
    topic_id: str
    partition: int
    leader: int
    """Broker id, -1 while there is none."""
    leader_epoch: int
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    """Broker ids of the replicas that cannot be reached."""
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    gate: GateState
    replicas: tuple[ReplicaState, ...]
    """In the order of the assignment, the preferred leader first."""
    remote: RemoteState | None
    """Null for a topic without a remote tier; so far that is every topic."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "topic": "orders",
                    "topic_id": "1c9b5c04-9b5e-4b0a-8d53-0b1ee7b1d0a4",
                    "partition": 0,
                    "leader": 1,
                    "leader_epoch": 0,
                    "isr": [1],
                    "offline": [],
                    "high_watermark": 42,
                    "last_stable_offset": 42,
                    "log_start_offset": 0,
                    "gate": {"open": True, "until_offset": 0},
                    "replicas": [
                        {
                            "broker": 1,
                            "role": "leader",
                            "state": "leading",
                            "log_start_offset": 0,
                            "local_log_start_offset": 0,
                            "log_end_offset": 42,
                            "high_watermark": 42,
                            "epochs": [{"epoch": 0, "start_offset": 0}],
                            "held": False,
                            "held_at": None,
                            "segments": [{"base_offset": 0, "bytes": 4711, "records": 42}],
                        }
                    ],
                    "remote": None,
                }
            ]
        }
    )


class ElectBody(Body):
    """An election."""

    leader: int
    """Broker id; it must be in the ISR."""
    unclean: bool = False
    """Whether a replica outside the ISR may lead. Refused so far."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"leader": 2}]})


class TraceFilter(Body):
    """Which exchanges of the journal are wanted; all filters must fit."""

    model_config = ConfigDict(strict=False)  # a query is all text

    api: str | None = None
    """Kafka's name of the API, such as ``ListOffsets``, or its key."""
    client_id: str | None = None
    topic: str | None = None
    """Named in the request or in its answer; by its id as well, while the topic is there."""
    since: Annotated[int, Field(ge=0)] = 0
    """Only exchanges with a higher ``number``."""
    limit: Annotated[int, Field(ge=1, le=4096)] = 100
    """The newest ones, at most so many."""


class ExchangeState(Answer):
    """A request and its answer, decoded."""

    number: int
    """Rises by one with each request of the process, also across a reset."""
    time_ms: int
    """When the request came, since 1970-01-01 UTC."""
    answered_ms: int | None
    """Null while it waits for its answer."""
    broker: int
    connection: str
    client_id: str | None
    api: str
    """Kafka's name of the API."""
    version: int
    correlation_id: int
    request: dict[str, object]
    """Just the fields that this version has, by Kafka's names in snake_case."""
    response: dict[str, object] | None
    """Null while there is none; acks=0 never gets one."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "number": 17,
                    "time_ms": 1764000000000,
                    "answered_ms": 1764000000000,
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
                }
            ]
        }
    )
