"""Every verb, once: its names, its method and path, its request model and its response model.

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

from fencepost.verbs import bodies, group_bodies, record_bodies, transaction_bodies
from fencepost.verbs.answers import Answer, Done, Health
from fencepost.verbs.answers.cluster import (
    BrokerState,
    ClockState,
    ClusterState,
    EventState,
    ExchangeState,
    FaultState,
    TierFaultState,
    TimelineState,
)
from fencepost.verbs.answers.groups import GroupsState, GroupState
from fencepost.verbs.answers.records import ExpectedRecords, ProducedRecords, RecordsState
from fencepost.verbs.answers.topics import (
    CompactionState,
    PartitionState,
    StepState,
    TierState,
    TopicState,
)
from fencepost.verbs.answers.transactions import TransactionsState, TransactionState
from fencepost.verbs.answers.verify import Verified
from fencepost.verbs.verify_bodies import VerifyBody

_PARTITION: Final = "/v1/topics/{topic}/partitions/{partition}"
_REPLICA: Final = f"{_PARTITION}/replicas/{{broker}}"
_BROKER: Final = "/v1/brokers/{broker}"
_FAULT: Final = "/v1/faults/{id}"
_GROUP: Final = "/v1/groups/{group}"
_TRANSACTION: Final = "/v1/transactions/{transactional_id}"
_TIER_FAULTS: Final = "/v1/tier/faults"

PATH_TYPES: Final = MappingProxyType(
    {
        "topic": str,
        "partition": int,
        "broker": int,
        "group": str,
        "member": str,
        "transactional_id": str,
        "id": int,
    }
)
"""The type of each parameter in a path, by its name."""


class Method(StrEnum):
    """An HTTP method."""

    GET = "GET"
    POST = "POST"
    DELETE = "DELETE"


class Shape(StrEnum):
    """Whether an answer is one model, a list or a stream."""

    ONE = "one"
    LIST = "list"
    STREAM = "stream"
    """Server-sent events; the data of each is one model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """An operation on a cluster, or a query of its state."""

    name: str
    """In Python, in scenarios, and OpenAPI's operation id."""
    method: Method
    path: str
    """With the names of parameters in braces."""
    request_model: type[bodies.Body] | None = None
    """Its other parameters: a POST's body, which may be left out if all of its fields may; a GET's
    query."""
    response_model: type[Answer]
    shape: Shape = Shape.ONE
    command: str
    """The words of its command."""
    positional: tuple[str, ...] = ()
    """Fields that are arguments there, behind those of the path."""
    name_first: bool = False
    """Whether its first argument may stand before the last word of its command."""
    subcommand_field: str = ""
    """A field whose few possible values are each the last word of a command of its own."""
    subcommands: Mapping[str, str] = field(default_factory=dict)
    """These values, and what each does: one sentence."""
    summary: str
    """One sentence, for every help."""

    @property
    def path_parameters(self) -> tuple[str, ...]:
        """Names of the parameters in the path, in order."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @property
    def commands(self) -> tuple[str, ...]:
        """All of its commands."""
        return tuple(f"{self.command} {word}" for word in self.subcommands) or (self.command,)


_GET: Final = Method.GET
_POST: Final = Method.POST
_DELETE: Final = Method.DELETE

CATALOGUE: Final[tuple[Verb, ...]] = (
    Verb(
        name="healthz",
        method=_GET,
        path="/healthz",
        response_model=Health,
        command="healthcheck",
        summary="Answer that the cluster is up.",
    ),
    Verb(
        name="cluster",
        method=_GET,
        path="/v1/cluster",
        response_model=ClusterState,
        command="cluster",
        summary="Show brokers, controller, features and time.",
    ),
    Verb(
        name="topics",
        method=_GET,
        path="/v1/topics",
        response_model=TopicState,
        shape=Shape.LIST,
        command="topics",
        summary="List all topics, by name.",
    ),
    Verb(
        name="create_topic",
        method=_POST,
        path="/v1/topics",
        request_model=bodies.NewTopicBody,
        response_model=TopicState,
        command="topic create",
        positional=("name",),
        summary="Create a topic; answers when every replica is in the ISR.",
    ),
    Verb(
        name="delete_topic",
        method=_DELETE,
        path="/v1/topics/{topic}",
        response_model=Done,
        command="topic delete",
        summary="Delete a topic; answers when no broker has it.",
    ),
    Verb(
        name="partition",
        method=_GET,
        path=_PARTITION,
        response_model=PartitionState,
        command="partition",
        summary="Show a partition: its leader, its ISR, and the log of each replica.",
    ),
    Verb(
        name="produce_records",
        method=_POST,
        path="/v1/topics/{topic}/records",
        request_model=record_bodies.ProduceBody,
        response_model=ProducedRecords,
        command="records produce",
        summary="Append records to a topic; answers when they are committed.",
    ),
    Verb(
        name="read_records",
        method=_GET,
        path=f"{_PARTITION}/records",
        request_model=record_bodies.RecordsQuery,
        response_model=RecordsState,
        command="records read",
        summary="Read records of a partition, decoded.",
    ),
    Verb(
        name="expect_records",
        method=_POST,
        path="/v1/topics/{topic}/records/expect",
        request_model=record_bodies.ExpectBody,
        response_model=ExpectedRecords,
        command="records expect",
        summary="Wait until a topic has matching records; refused with the nearest ones.",
    ),
    Verb(
        name="elect",
        method=_POST,
        path=f"{_PARTITION}/elect",
        request_model=bodies.ElectBody,
        response_model=PartitionState,
        command="elect",
        summary=(
            "Elect a leader, cleanly or not; the leader epoch rises, also where the leader stays."
        ),
    ),
    Verb(
        name="roll",
        method=_POST,
        path=f"{_PARTITION}/roll",
        response_model=PartitionState,
        command="roll",
        summary="Close the active segment of every replica; an empty one stays.",
    ),
    Verb(
        name="compact",
        method=_POST,
        path=f"{_PARTITION}/compact",
        response_model=CompactionState,
        command="compact",
        summary="Compact the closed segments of every replica, however little there is to gain.",
    ),
    Verb(
        name="tier",
        method=_POST,
        path=f"{_PARTITION}/tier",
        request_model=bodies.TierBody,
        response_model=TierState,
        command="tier",
        subcommand_field="action",
        subcommands=MappingProxyType(
            {
                "upload": "Run the leader's task now: it uploads every segment that it may.",
                "delete-local": "Delete the closed segments that the tier has from all replicas.",
                "expire": "Run retention in the tier now.",
                "forget": "Drop the leader's view of the tier, as if it were just elected.",
                "lose": "Lose all objects of a partition in the tier; no broker is notified.",
            }
        ),
        summary=(
            "Upload to a partition's remote tier, delete from it or lose its objects, at once."
        ),
    ),
    Verb(
        name="hold",
        method=_POST,
        path=f"{_REPLICA}/hold",
        request_model=bodies.HoldBody,
        response_model=PartitionState,
        command="hold",
        summary="Keep a replica from fetching, at once or from an offset on.",
    ),
    Verb(
        name="release",
        method=_POST,
        path=f"{_REPLICA}/release",
        response_model=PartitionState,
        command="release",
        summary="Let a replica fetch again; answers when it has caught up.",
    ),
    Verb(
        name="step",
        method=_POST,
        path=f"{_REPLICA}/step",
        request_model=bodies.StepBody,
        response_model=StepState,
        command="step",
        summary="Let a replica send a number of fetches, held or not; answers the result of each.",
    ),
    Verb(
        name="wipe",
        method=_POST,
        path=f"{_REPLICA}/wipe",
        response_model=PartitionState,
        command="wipe",
        summary="Lose a replica's disk: it leaves the ISR and starts empty.",
    ),
    Verb(
        name="groups",
        method=_GET,
        path="/v1/groups",
        response_model=GroupsState,
        command="groups",
        summary="List all groups, by name.",
    ),
    Verb(
        name="group",
        method=_GET,
        path=_GROUP,
        response_model=GroupState,
        command="group show",
        name_first=True,
        summary="Show a group: its members, its committed offsets and its lag.",
    ),
    Verb(
        name="wait_for_group",
        method=_POST,
        path=f"{_GROUP}/wait",
        request_model=group_bodies.GroupWaitBody,
        response_model=GroupState,
        command="group wait",
        name_first=True,
        summary="Wait until a group is stable, or in another state, with so many members.",
    ),
    Verb(
        name="move_coordinator",
        method=_POST,
        path=f"{_GROUP}/coordinator",
        request_model=group_bodies.CoordinatorBody,
        response_model=GroupState,
        command="group move",
        name_first=True,
        summary="Make a broker the coordinator of a group, and of all groups of its partition.",
    ),
    Verb(
        name="rebalance_group",
        method=_POST,
        path=f"{_GROUP}/rebalance",
        response_model=GroupState,
        command="group rebalance",
        name_first=True,
        summary="Begin a rebalance of a group; its members join again at their next heartbeat.",
    ),
    Verb(
        name="remove_member",
        method=_POST,
        path=f"{_GROUP}/members/{{member}}/remove",
        response_model=GroupState,
        command="group remove",
        name_first=True,
        summary="Remove a member from a group, as if it had left; the others rebalance.",
    ),
    Verb(
        name="set_offsets",
        method=_POST,
        path=f"{_GROUP}/offsets",
        request_model=group_bodies.OffsetsBody,
        response_model=GroupState,
        command="group set-offsets",
        name_first=True,
        summary="Commit offsets for a group, whatever its state; a new group is created.",
    ),
    Verb(
        name="delete_offsets",
        method=_POST,
        path=f"{_GROUP}/offsets/delete",
        request_model=group_bodies.TopicsBody,
        response_model=GroupState,
        command="group delete-offsets",
        name_first=True,
        summary="Delete the committed offsets of topics from a group, whatever its state.",
    ),
    Verb(
        name="transactions",
        method=_GET,
        path="/v1/transactions",
        response_model=TransactionsState,
        command="transactions",
        summary="List all transactional ids, by name.",
    ),
    Verb(
        name="transaction",
        method=_GET,
        path=_TRANSACTION,
        response_model=TransactionState,
        command="transaction show",
        name_first=True,
        summary="Show a transactional id: its producer, and what its transaction has.",
    ),
    Verb(
        name="abort_transaction",
        method=_POST,
        path=f"{_TRANSACTION}/abort",
        response_model=TransactionState,
        command="transaction abort",
        name_first=True,
        summary="Abort an open transaction and fence its producer, as its coordinator may.",
    ),
    Verb(
        name="abort_hanging_transaction",
        method=_POST,
        path="/v1/transactions/abort",
        request_model=transaction_bodies.HangingTransactionBody,
        response_model=PartitionState,
        command="transaction abort-hanging",
        positional=("topic", "partition", "producer_id"),
        summary="Abort a producer's open transaction in a partition that no coordinator knows.",
    ),
    Verb(
        name="expire_transaction",
        method=_POST,
        path=f"{_TRANSACTION}/expire",
        response_model=TransactionState,
        command="transaction expire",
        name_first=True,
        summary="Move the manual clock until a transaction times out, or an idle id is forgotten.",
    ),
    Verb(
        name="hold_marker",
        method=_POST,
        path=f"{_TRANSACTION}/hold",
        request_model=transaction_bodies.MarkerBody,
        response_model=TransactionState,
        command="transaction hold",
        positional=("topic", "partition"),
        name_first=True,
        summary="Hold the markers of a transactional id on their way to a partition.",
    ),
    Verb(
        name="release_marker",
        method=_POST,
        path=f"{_TRANSACTION}/release",
        request_model=transaction_bodies.MarkerBody,
        response_model=TransactionState,
        command="transaction release",
        positional=("topic", "partition"),
        name_first=True,
        summary="Let the markers of a transactional id go to a partition again.",
    ),
    Verb(
        name="stop_broker",
        method=_POST,
        path=f"{_BROKER}/stop",
        response_model=BrokerState,
        command="broker stop",
        summary="Shut a broker down: others become leaders where it led, then its port refuses.",
    ),
    Verb(
        name="kill_broker",
        method=_POST,
        path=f"{_BROKER}/kill",
        request_model=bodies.KillBody,
        response_model=BrokerState,
        command="broker kill",
        summary=(
            "Kill a broker at once: connections are reset; the controller notices when you choose."
        ),
    ),
    Verb(
        name="start_broker",
        method=_POST,
        path=f"{_BROKER}/start",
        response_model=BrokerState,
        command="broker start",
        summary="Start a broker that is down, on its port; answers when it has caught up.",
    ),
    Verb(
        name="isolate_broker",
        method=_POST,
        path=f"{_BROKER}/isolate",
        request_model=bodies.IsolateBody,
        response_model=BrokerState,
        command="broker isolate",
        summary=(
            "Cut a broker off from the controller, or from other brokers; clients still reach it."
        ),
    ),
    Verb(
        name="rejoin_broker",
        method=_POST,
        path=f"{_BROKER}/rejoin",
        response_model=BrokerState,
        command="broker rejoin",
        summary="Restore all links of a broker; answers when it has caught up.",
    ),
    Verb(
        name="add_fault",
        method=_POST,
        path="/v1/faults",
        request_model=bodies.FaultBody,
        response_model=FaultState,
        command="fault add",
        positional=("api",),
        summary="Add a fault for matching requests; of several faults the first that matches hits.",
    ),
    Verb(
        name="faults",
        method=_GET,
        path="/v1/faults",
        response_model=FaultState,
        shape=Shape.LIST,
        command="fault list",
        summary="List all faults and their hits, in the order in which they are tried.",
    ),
    Verb(
        name="fault",
        method=_GET,
        path=_FAULT,
        response_model=FaultState,
        command="fault show",
        summary="Show a fault and its hits.",
    ),
    Verb(
        name="wait_for_fault",
        method=_GET,
        path=f"{_FAULT}/wait",
        request_model=bodies.HitsFilter,
        response_model=FaultState,
        command="fault wait",
        summary="Wait until a fault has this number of hits.",
    ),
    Verb(
        name="remove_fault",
        method=_DELETE,
        path=_FAULT,
        response_model=FaultState,
        command="fault remove",
        summary="Remove a fault; answers its hits.",
    ),
    Verb(
        name="remove_faults",
        method=_DELETE,
        path="/v1/faults",
        response_model=Done,
        command="fault clear",
        summary="Remove all faults.",
    ),
    Verb(
        name="add_tier_fault",
        method=_POST,
        path=_TIER_FAULTS,
        request_model=bodies.TierFaultBody,
        response_model=TierFaultState,
        command="tier add-fault",
        positional=("operation",),
        summary=("Add a fault for operations on the remote tier; the first that matches hits."),
    ),
    Verb(
        name="tier_faults",
        method=_GET,
        path=_TIER_FAULTS,
        response_model=TierFaultState,
        shape=Shape.LIST,
        command="tier faults",
        summary="List all tier faults and their hits, in the order in which they are tried.",
    ),
    Verb(
        name="remove_tier_fault",
        method=_DELETE,
        path=f"{_TIER_FAULTS}/{{id}}",
        response_model=TierFaultState,
        command="tier remove-fault",
        summary="Remove a tier fault; answers its hits.",
    ),
    Verb(
        name="remove_tier_faults",
        method=_DELETE,
        path=_TIER_FAULTS,
        response_model=Done,
        command="tier clear-faults",
        summary="Remove all tier faults.",
    ),
    Verb(
        name="advance_clock",
        method=_POST,
        path="/v1/clock/advance",
        request_model=bodies.AdvanceBody,
        response_model=ClockState,
        command="clock advance",
        positional=("ms",),
        summary=("Advance a manual clock; answers when everything due by then has happened."),
    ),
    Verb(
        name="reset",
        method=_POST,
        path="/v1/reset",
        response_model=Done,
        command="reset",
        summary=(
            "Forget all topics, records, groups, configs, faults and the journal; keep the ports."
        ),
    ),
    Verb(
        name="events",
        method=_GET,
        path="/v1/events",
        request_model=bodies.EventFilter,
        response_model=EventState,
        shape=Shape.STREAM,
        command="events",
        summary=(
            "Stream verbs and changes of state as server-sent events, from now or from a number on."
        ),
    ),
    Verb(
        name="timeline",
        method=_GET,
        path="/v1/timeline",
        request_model=bodies.TimelineQuery,
        response_model=TimelineState,
        command="timeline",
        summary="Show verbs, events and requests in one order of time, and the state at the end.",
    ),
    Verb(
        name="trace",
        method=_GET,
        path="/v1/trace",
        request_model=bodies.TraceQuery,
        response_model=ExchangeState,
        shape=Shape.LIST,
        command="trace list",
        summary="Show the last requests and answers, decoded, the oldest first.",
    ),
    Verb(
        name="wait_for_trace",
        method=_GET,
        path="/v1/trace/wait",
        request_model=bodies.TraceWait,
        response_model=ExchangeState,
        command="trace wait",
        summary="Wait for a matching request and its answer.",
    ),
    Verb(
        name="verify",
        method=_POST,
        path="/v1/trace/verify",
        request_model=VerifyBody,
        response_model=Verified,
        command="verify",
        positional=("api",),
        summary="Verify how many matching requests came; refused with the nearest ones.",
    ),
)
VERBS: Final = MappingProxyType({verb.name: verb for verb in CATALOGUE})
"""By name."""
