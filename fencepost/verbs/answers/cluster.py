"""The cluster: its brokers, its clock, its events and its journal."""

from typing import ClassVar, Literal

from fencepost.verbs.answers import Answer
from fencepost.verbs.model import Examples


class BrokerState(Answer):
    """One broker."""

    id: int
    host: str
    """As advertised to clients; where none is, the address of the control API."""
    port: int
    """It stays the broker's while the broker is down, and refuses connections."""
    listeners: dict[str, str]
    """The advertised ``host:port`` of each listener, by name; ``host`` and ``port`` are the first
    one's."""
    state: Literal["running", "stopped", "killed"]
    """Of its process."""
    fenced: bool
    """Whether the controller considers it offline: then it leads nothing and is in no ISR."""
    registered: bool
    """Whether it is registered; False after UnregisterBroker, until it starts the next time."""
    epoch: int
    """Of its registration; rises each time that it registers (KIP-903)."""
    isolated_from: tuple[int | Literal["controller"], ...]
    """The nodes to which a test has cut its links."""

    examples: ClassVar[Examples] = [
        {
            "id": 2,
            "host": "127.0.0.1",
            "port": 9093,
            "listeners": {"PLAINTEXT": "127.0.0.1:9093"},
            "state": "running",
            "fenced": False,
            "registered": True,
            "epoch": 2,
            "isolated_from": [1],
        }
    ]


class ClockState(Answer):
    """The cluster's time."""

    mode: Literal["real", "manual"]
    """A manual one stands still until it is advanced."""
    now_ms: int
    """Since 1970-01-01 UTC; with ``real`` it follows the machine's clock when that is set."""

    examples: ClassVar[Examples] = [{"mode": "manual", "now_ms": 1764000030000}]


class ClusterState(Answer):
    """Brokers, controller, features and time."""

    cluster_id: str
    brokers: tuple[BrokerState, ...]
    controller: int
    """Broker id."""
    controller_listener: str | None
    """``host:port`` where the controller listens for tools (``--controller-port``)."""
    features: dict[str, int]
    """Finalized feature levels by name, as ApiVersions answers them."""
    dialect: str | None = None
    """The proposal whose schemas clients may ask for (``--dialect``); null for none."""
    seed: int = 0
    """Of the cluster's random choices (``--seed``)."""
    clock: ClockState

    examples: ClassVar[Examples] = [
        {
            "cluster_id": "4L6g3nShT-eMCtK--X86sw",
            "brokers": [
                {
                    "id": 1,
                    "host": "127.0.0.1",
                    "port": 9092,
                    "listeners": {"PLAINTEXT": "127.0.0.1:9092"},
                    "state": "running",
                    "fenced": False,
                    "registered": True,
                    "epoch": 1,
                    "isolated_from": [],
                },
                {
                    "id": 2,
                    "host": "127.0.0.1",
                    "port": 9093,
                    "listeners": {"PLAINTEXT": "127.0.0.1:9093"},
                    "state": "running",
                    "fenced": True,
                    "registered": True,
                    "epoch": 2,
                    "isolated_from": ["controller", 1],
                },
            ],
            "controller": 1,
            "controller_listener": None,
            "features": {
                "kraft.version": 1,
                "metadata.version": 30,
                "eligible.leader.replicas.version": 1,
            },
            "dialect": None,
            "seed": 7,
            "clock": {"mode": "real", "now_ms": 1764000000000},
        }
    ]


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
    newest: int = 0
    """``number`` of the last request received before it; requests with higher ones came later."""
    text: str = ""
    """The event in one line, without number and time."""

    @property
    def end_of_reset(self) -> int:
        """Of a reset: the number of the last event of what it deleted and created."""
        following = self.details["events"]
        assert isinstance(following, int)
        return self.number + following

    examples: ClassVar[Examples] = [
        {
            "number": 17,
            "kind": "leader_changed",
            "time_ms": 1764000000000,
            "topic": "orders",
            "partition": 0,
            "broker": 2,
            "details": {"leader": 2, "previous_leader": 1, "leader_epoch": 3},
            "newest": 40,
            "text": "orders-0: leader 1 -> 2 in epoch 3",
        }
    ]


class TimelineLine(Answer):
    """A verb, an event or a request; or several of the same that followed each other."""

    time_ms: int
    """Of the first, since 1970-01-01 UTC."""
    until_ms: int
    """Of the last."""
    times: int
    """How many."""
    kind: Literal["verb", "event", "request"]
    text: str


class TimelineState(Answer):
    """What happened, in one order of time, and the state at the end, in lines of text."""

    seed: int
    """Of the cluster's random choices (``--seed``)."""
    lines: tuple[TimelineLine, ...]
    left_out: tuple[str, ...]
    """What is not shown: telemetry, events of internal topics, what is not kept any more."""
    brokers: tuple[str, ...]
    """Brokers that do not run as usual."""
    partitions: tuple[str, ...]
    """Those of internal topics only where they have no leader."""
    groups: tuple[str, ...]
    transactions: tuple[str, ...]
    """Those that are open: not decided yet, or with partitions that have no marker yet."""

    examples: ClassVar[Examples] = [
        {
            "seed": 7,
            "lines": [
                {
                    "time_ms": 1764000000000,
                    "until_ms": 1764000000000,
                    "times": 1,
                    "kind": "verb",
                    "text": "kill_broker broker 1",
                }
            ],
            "left_out": [],
            "brokers": ["broker 1: killed, fenced"],
            "partitions": [
                "orders-0: leader 2 in epoch 1, ISR 2, high watermark 42; replicas 2 at 42"
            ],
            "groups": ["shipping: Stable, generation 1, 2 members; orders-0 at 40, lag 2"],
            "transactions": [
                "copier: Ongoing of orders-0, producer 1000 in epoch 4, coordinator 2"
            ],
        }
    ]


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
    dialect: str | None = None
    """The proposal whose schemas this version has; null where they are Kafka's."""
    correlation_id: int
    """0 between brokers."""
    request: dict[str, object]
    """The fields of this version, by Kafka's names in snake_case."""
    response: dict[str, object] | None
    """Null while there is none; acks=0 never gets one."""
    topic_names: dict[str, str]
    """The names of the topic ids in it, as far as they are known."""

    examples: ClassVar[Examples] = [
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
            "dialect": None,
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
