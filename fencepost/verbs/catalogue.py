"""Every verb, once: its names, its place in HTTP, what it takes and what it answers.

A verb's parameters are those in its path and the fields of what it takes. HTTP puts the former in
the path and the latter in the body (of a POST) or the query (of a GET). The command line takes
those in the path, and ``positional`` ones, as arguments in that order, and the others as options.
A scenario and Python name them all.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from fencepost.verbs import bodies
from fencepost.verbs.answers.base import Answer, Done, Health
from fencepost.verbs.answers.cluster import BrokerState, ClockState, ClusterState
from fencepost.verbs.answers.faults import FaultState, TierFaultState
from fencepost.verbs.answers.journal import EventState, ExchangeState
from fencepost.verbs.answers.topics import (
    CompactionState,
    PartitionState,
    StepState,
    TierState,
    TopicState,
)

_PARTITION: Final = "/v1/topics/{topic}/partitions/{partition}"
_REPLICA: Final = f"{_PARTITION}/replicas/{{broker}}"
_BROKER: Final = "/v1/brokers/{broker}"
_FAULT: Final = "/v1/faults/{id}"
_TIER_FAULTS: Final = "/v1/tier/faults"

PATH_TYPES: Final = MappingProxyType({"topic": str, "partition": int, "broker": int, "id": int})
"""Of the parameters that stand in paths."""


class Method(StrEnum):
    """Of HTTP."""

    GET = "GET"
    POST = "POST"
    DELETE = "DELETE"


class Shape(StrEnum):
    """How an answer is made of its model."""

    ONE = "one"
    LIST = "list"
    STREAM = "stream"
    """Server-sent events, whose data each is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """Something that can be done to a cluster, or seen of it."""

    name: str
    """In Python, in scenarios, and OpenAPI's operation id."""
    method: Method
    path: str
    """With the names of parameters in braces."""
    takes: type[bodies.Body] | None = None
    """Its other parameters: a POST's body, which may be left out if all of its fields may; a GET's
    query."""
    answers: type[Answer]
    shape: Shape = Shape.ONE
    command: str
    """Its words on the command line."""
    positional: tuple[str, ...] = ()
    """Fields that are arguments there, behind those of the path."""
    last_word: str = ""
    """A field whose few possible values are each the last word of a command of its own."""
    last_words: Mapping[str, str] = field(default_factory=dict)
    """These values, and what each does: one sentence."""
    does: str
    """One sentence, for every help."""

    @property
    def in_path(self) -> tuple[str, ...]:
        """Names of the parameters in the path, in order."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @property
    def commands(self) -> tuple[str, ...]:
        """All of its commands."""
        return tuple(f"{self.command} {word}" for word in self.last_words) or (self.command,)


_GET: Final = Method.GET
_POST: Final = Method.POST
_DELETE: Final = Method.DELETE

CATALOGUE: Final[tuple[Verb, ...]] = (
    Verb(
        name="healthz",
        method=_GET,
        path="/healthz",
        answers=Health,
        command="healthcheck",
        does="Tell that the cluster serves.",
    ),
    Verb(
        name="cluster",
        method=_GET,
        path="/v1/cluster",
        answers=ClusterState,
        command="cluster",
        does="Show brokers, controller, features and time.",
    ),
    Verb(
        name="topics",
        method=_GET,
        path="/v1/topics",
        answers=TopicState,
        shape=Shape.LIST,
        command="topics",
        does="List all topics, by name.",
    ),
    Verb(
        name="create_topic",
        method=_POST,
        path="/v1/topics",
        takes=bodies.NewTopicBody,
        answers=TopicState,
        command="topic create",
        positional=("name",),
        does="Create a topic; answers when every replica is in the ISR.",
    ),
    Verb(
        name="delete_topic",
        method=_DELETE,
        path="/v1/topics/{topic}",
        answers=Done,
        command="topic delete",
        does="Delete a topic; answers when no broker has it.",
    ),
    Verb(
        name="partition",
        method=_GET,
        path=_PARTITION,
        answers=PartitionState,
        command="partition",
        does="Show the whole truth about a partition.",
    ),
    Verb(
        name="elect",
        method=_POST,
        path=f"{_PARTITION}/elect",
        takes=bodies.ElectBody,
        answers=PartitionState,
        command="elect",
        does="Elect a leader, cleanly or not; the leader epoch rises, also where the leader stays.",
    ),
    Verb(
        name="roll",
        method=_POST,
        path=f"{_PARTITION}/roll",
        answers=PartitionState,
        command="roll",
        does="Close the active segment of every replica; an empty one stays.",
    ),
    Verb(
        name="compact",
        method=_POST,
        path=f"{_PARTITION}/compact",
        answers=CompactionState,
        command="compact",
        does="Compact the closed segments of every replica, however little there is to gain.",
    ),
    Verb(
        name="tier",
        method=_POST,
        path=f"{_PARTITION}/tier",
        takes=bodies.TierBody,
        answers=TierState,
        command="tier",
        last_word="action",
        last_words=MappingProxyType(
            {
                "upload": "Have the leader's task run now: it uploads all that may be uploaded.",
                "delete-local": "Have all replicas let go of closed segments that the tier has.",
                "expire": "Have retention in the tier run now.",
                "forget": "Have the leader forget what it knows of the tier, as if just elected.",
                "lose": "Have the tier lose all that it has of a partition, and tell nobody.",
            }
        ),
        does="Have a partition's leader use its remote tier now, or have either lose what it has.",
    ),
    Verb(
        name="hold",
        method=_POST,
        path=f"{_REPLICA}/hold",
        takes=bodies.HoldBody,
        answers=PartitionState,
        command="hold",
        does="Keep a replica from fetching, at once or from an offset on.",
    ),
    Verb(
        name="release",
        method=_POST,
        path=f"{_REPLICA}/release",
        answers=PartitionState,
        command="release",
        does="Let a replica fetch again; answers when it has caught up.",
    ),
    Verb(
        name="step",
        method=_POST,
        path=f"{_REPLICA}/step",
        takes=bodies.StepBody,
        answers=StepState,
        command="step",
        does="Let a replica fetch so many times, held or not; answers what each fetch did.",
    ),
    Verb(
        name="wipe",
        method=_POST,
        path=f"{_REPLICA}/wipe",
        answers=PartitionState,
        command="wipe",
        does="Lose a replica's disk: it leaves the ISR and starts empty.",
    ),
    Verb(
        name="stop_broker",
        method=_POST,
        path=f"{_BROKER}/stop",
        answers=BrokerState,
        command="broker stop",
        does="Shut a broker down in order: others lead where it led, then its port refuses.",
    ),
    Verb(
        name="kill_broker",
        method=_POST,
        path=f"{_BROKER}/kill",
        takes=bodies.KillBody,
        answers=BrokerState,
        command="broker kill",
        does="End a broker at once: connections are reset; the controller learns of it as you say.",
    ),
    Verb(
        name="start_broker",
        method=_POST,
        path=f"{_BROKER}/start",
        answers=BrokerState,
        command="broker start",
        does="Start a broker that is down, on its port; answers when it has caught up.",
    ),
    Verb(
        name="isolate_broker",
        method=_POST,
        path=f"{_BROKER}/isolate",
        takes=bodies.IsolateBody,
        answers=BrokerState,
        command="broker isolate",
        does="Cut a broker off from the controller, or from other brokers; clients still reach it.",
    ),
    Verb(
        name="rejoin_broker",
        method=_POST,
        path=f"{_BROKER}/rejoin",
        answers=BrokerState,
        command="broker rejoin",
        does="Mend all links of a broker; answers when it has heard and caught up.",
    ),
    Verb(
        name="add_fault",
        method=_POST,
        path="/v1/faults",
        takes=bodies.FaultBody,
        answers=FaultState,
        command="fault add",
        positional=("api",),
        does="Let requests that fit meet a fault; of several faults the first that fits hits.",
    ),
    Verb(
        name="faults",
        method=_GET,
        path="/v1/faults",
        answers=FaultState,
        shape=Shape.LIST,
        command="fault list",
        does="List all faults and their hits, in the order in which they are tried.",
    ),
    Verb(
        name="fault",
        method=_GET,
        path=_FAULT,
        answers=FaultState,
        command="fault show",
        does="Show a fault and its hits.",
    ),
    Verb(
        name="wait_for_fault",
        method=_GET,
        path=f"{_FAULT}/wait",
        takes=bodies.HitsFilter,
        answers=FaultState,
        command="fault wait",
        does="Wait until a fault has hit so often.",
    ),
    Verb(
        name="remove_fault",
        method=_DELETE,
        path=_FAULT,
        answers=FaultState,
        command="fault remove",
        does="Remove a fault; answers what it has done.",
    ),
    Verb(
        name="remove_faults",
        method=_DELETE,
        path="/v1/faults",
        answers=Done,
        command="fault clear",
        does="Remove all faults.",
    ),
    Verb(
        name="add_tier_fault",
        method=_POST,
        path=_TIER_FAULTS,
        takes=bodies.TierFaultBody,
        answers=TierFaultState,
        command="tier add-fault",
        positional=("operation",),
        does="Let operations on the remote tier fail or be late; the first fault that fits hits.",
    ),
    Verb(
        name="tier_faults",
        method=_GET,
        path=_TIER_FAULTS,
        answers=TierFaultState,
        shape=Shape.LIST,
        command="tier faults",
        does="List all tier faults and their hits, in the order in which they are tried.",
    ),
    Verb(
        name="remove_tier_fault",
        method=_DELETE,
        path=f"{_TIER_FAULTS}/{{id}}",
        answers=TierFaultState,
        command="tier remove-fault",
        does="Remove a tier fault; answers what it has done.",
    ),
    Verb(
        name="remove_tier_faults",
        method=_DELETE,
        path=_TIER_FAULTS,
        answers=Done,
        command="tier clear-faults",
        does="Remove all tier faults.",
    ),
    Verb(
        name="advance_clock",
        method=_POST,
        path="/v1/clock/advance",
        takes=bodies.AdvanceBody,
        answers=ClockState,
        command="clock advance",
        positional=("ms",),
        does="Let time pass on a manual clock; answers when all that was due by then has happened.",
    ),
    Verb(
        name="reset",
        method=_POST,
        path="/v1/reset",
        answers=Done,
        command="reset",
        does="Forget all topics, records, groups, configs, faults and the journal; keep the ports.",
    ),
    Verb(
        name="events",
        method=_GET,
        path="/v1/events",
        takes=bodies.EventFilter,
        answers=EventState,
        shape=Shape.STREAM,
        command="events",
        does="Stream every change of state as server-sent events, from now on or from a number on.",
    ),
    Verb(
        name="trace",
        method=_GET,
        path="/v1/trace",
        takes=bodies.TraceQuery,
        answers=ExchangeState,
        shape=Shape.LIST,
        command="trace list",
        does="Show the last requests and answers, decoded, the oldest first.",
    ),
    Verb(
        name="wait_for_trace",
        method=_GET,
        path="/v1/trace/wait",
        takes=bodies.TraceWait,
        answers=ExchangeState,
        command="trace wait",
        does="Wait for a request that fits and its answer.",
    ),
)
VERBS: Final = MappingProxyType({verb.name: verb for verb in CATALOGUE})
"""By name."""
