"""Metadata and FindCoordinator, as a client of a scenario asks them."""

from typing import Final

from fencepost.client.cluster import find_coordinator, metadata
from fencepost.protocol.errors import ErrorCode
from fencepost.scenario.actions.base import ActionAnswer, GroupBody, PartitionBody
from fencepost.scenario.actions.context import Action, ActionContext, ScenarioClients


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
)
