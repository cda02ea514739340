"""Metadata, FindCoordinator, ListOffsets and OffsetForLeaderEpoch, asked by a client."""

from typing import Annotated, Final, Literal, TypeAlias, get_args

from fencepost.client.cluster import find_coordinator, metadata
from fencepost.client.model import Isolation, OffsetSpec
from fencepost.client.partitions import list_offsets, offset_for_leader_epoch
from fencepost.protocol.errors import ErrorCode
from fencepost.scenario.actions.context import (
    Action,
    ActionAnswer,
    ActionContext,
    GroupBody,
    IsolationLevel,
    PartitionBody,
    ScenarioClients,
)
from fencepost.verbs.model import Says

_TargetName = Literal[
    "latest",
    "earliest",
    "max_timestamp",
    "earliest_local",
    "latest_tiered",
    "earliest_pending_upload",
]


class MetadataBody(PartitionBody):
    """A partition as a broker sees it; the first broker that runs, if none is named."""


class MetadataAnswer(ActionAnswer):
    """A partition as a broker sees it."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    topic_id: str | None
    brokers: tuple[int, ...]
    """Ids."""
    controller: int


class FindCoordinatorBody(GroupBody):
    """A group whose coordinator is looked for."""


class CoordinatorAnswer(ActionAnswer):
    """Who coordinates."""

    coordinator: int
    """Broker id; -1 for none."""
    message: str | None


async def _metadata(
    clients: ScenarioClients, context: ActionContext, body: MetadataBody
) -> MetadataAnswer:
    connection = await clients.any_broker_connection(context, body)
    seen = await metadata(
        connection, [body.topic], version=body.version, timeout_s=context.timeout_s
    )
    topic, found = seen.topics.get(body.topic), seen.partition(body.topic, body.partition)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    error = unknown if topic is None else topic.error or (found.error if found else unknown)
    return MetadataAnswer(
        **context.answer_fields(error, seen),
        leader=-1 if found is None else found.leader,
        leader_epoch=-1 if found is None else found.leader_epoch,
        replicas=() if found is None else found.replicas,
        isr=() if found is None else found.isr,
        offline=() if found is None else found.offline,
        topic_id=None if topic is None or topic.topic_id is None else str(topic.topic_id),
        brokers=tuple(sorted(seen.brokers)),
        controller=seen.controller,
    )


async def _find_coordinator(
    clients: ScenarioClients, context: ActionContext, body: FindCoordinatorBody
) -> CoordinatorAnswer:
    connection = await clients.any_broker_connection(context, body)
    found = await find_coordinator(
        connection, body.group, version=body.version, timeout_s=context.timeout_s
    )
    return CoordinatorAnswer(
        **context.answer_fields(found.error, found),
        coordinator=found.broker,
        message=found.message,
    )


Target: TypeAlias = Annotated[
    _TargetName | int,
    Says(f"input should be one of {', '.join(get_args(_TargetName))}, or a timestamp in ms"),
]


class ListOffsetsBody(PartitionBody):
    """An offset by what it means, or by time."""

    at: Target = "latest"
    """What is meant, or a timestamp."""
    epoch: int = -1
    """The current leader epoch, as the client believes; -1: not said."""
    isolation: IsolationLevel = "read_uncommitted"
    replica: int = -1
    """The broker id of a replica that asks; -1: a consumer does."""


class ListOffsetsAnswer(ActionAnswer):
    """An offset."""

    offset: int
    timestamp: int
    epoch: int


async def _list_offsets(
    clients: ScenarioClients, context: ActionContext, body: ListOffsetsBody
) -> ListOffsetsAnswer:
    connection, partition = await clients.partition_connection(context, body)
    found = await list_offsets(
        connection,
        partition,
        body.at if isinstance(body.at, int) else OffsetSpec[body.at.upper()],
        epoch=body.epoch,
        isolation=Isolation[body.isolation.upper()],
        replica=body.replica,
        version=body.version,
        timeout_s=context.timeout_s,
    )
    return ListOffsetsAnswer(
        **context.answer_fields(found.error, found),
        offset=found.offset,
        timestamp=found.timestamp,
        epoch=found.epoch,
    )


class EpochEndBody(PartitionBody):
    """Where an epoch ends."""

    of: int
    """The epoch asked about."""
    epoch: int = -1
    """The current leader epoch, as the client believes; -1: not said."""


class EpochEndAnswer(ActionAnswer):
    """The largest epoch that is not above the one asked about, and its end."""

    epoch: int
    end_offset: int


async def _offsets_for_leader_epoch(
    clients: ScenarioClients, context: ActionContext, body: EpochEndBody
) -> EpochEndAnswer:
    connection, partition = await clients.partition_connection(context, body)
    found = await offset_for_leader_epoch(
        connection,
        partition,
        body.of,
        epoch=body.epoch,
        version=body.version,
        timeout_s=context.timeout_s,
    )
    return EpochEndAnswer(
        **context.answer_fields(found.error, found),
        epoch=found.epoch,
        end_offset=found.end_offset,
    )


ACTIONS: Final = (
    Action(
        "metadata",
        "Metadata",
        MetadataBody,
        MetadataAnswer,
        "Ask who leads a partition.",
        _metadata,
    ),
    Action(
        "find_coordinator",
        "FindCoordinator",
        FindCoordinatorBody,
        CoordinatorAnswer,
        "Ask who coordinates a group.",
        _find_coordinator,
    ),
    Action(
        "list_offsets",
        "ListOffsets",
        ListOffsetsBody,
        ListOffsetsAnswer,
        "Ask for an offset.",
        _list_offsets,
    ),
    Action(
        "offsets_for_leader_epoch",
        "OffsetForLeaderEpoch",
        EpochEndBody,
        EpochEndAnswer,
        "Ask where a leader epoch ends.",
        _offsets_for_leader_epoch,
    ),
)
