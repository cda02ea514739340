"""FindCoordinator (10), versions 0 to 6: the broker that coordinates a group or a transaction.

It is the leader of the group's partition of ``__consumer_offsets``, or of the transactional id's
partition of ``__transaction_state``. The first request creates the topic.
COORDINATOR_NOT_AVAILABLE while there is no leader; clients retry.

Share groups have no coordinator: INVALID_REQUEST, which Apache Kafka answers where they are
disabled, and which clients do not retry. An unknown key type is INVALID_REQUEST as well.

Versions: 1 the key type, and an error message, which is NONE on success; 4 several keys (KIP-699),
and a message only for an unknown key type; 6 share groups (KIP-932).
"""

from typing import Final

from fencepost.broker.controller.auto_topic_creation import create_internal_topic
from fencepost.broker.coordinator import partition_for
from fencepost.broker.core.outcomes import answer_in_slices
from fencepost.broker.core.waits import Wait
from fencepost.broker.groups.group_coordinator import OFFSETS_TOPIC
from fencepost.broker.handlers.context import Context
from fencepost.broker.metadata.image import TRANSACTION_TOPIC, BrokerImage
from fencepost.protocol.errors import MALFORMED_REQUEST, ErrorCode
from fencepost.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2
_TOPICS: Final = {GROUP: OFFSETS_TOPIC, TRANSACTION: TRANSACTION_TOPIC}
"""The topics whose leaders coordinate, by key type."""
_FIRST_WITH_MANY_KEYS: Final = 4
_NO_NODE: Final = -1
_MESSAGES: Final = {
    ErrorCode.NONE: "NONE",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.INVALID_REQUEST: MALFORMED_REQUEST,
}


def handle(
    ctx: Context, request: FindCoordinatorRequest
) -> FindCoordinatorResponse | Wait[FindCoordinatorResponse]:
    if ctx.version >= _FIRST_WITH_MANY_KEYS:
        return answer_in_slices(
            ctx.broker.scheduler,
            request.coordinator_keys,
            lambda key: _coordinator(ctx, key, request.key_type),
            lambda found: FindCoordinatorResponse(coordinators=tuple(found)),
        )
    coordinator = _coordinator(ctx, request.key, request.key_type)
    return FindCoordinatorResponse(
        error_code=coordinator.error_code,
        error_message=_MESSAGES[ErrorCode(coordinator.error_code)],
        node_id=coordinator.node_id,
        host=coordinator.host,
        port=coordinator.port,
    )


def refuse(request: FindCoordinatorRequest, error_code: int) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        error_code=error_code,
        node_id=_NO_NODE,
        port=_NO_NODE,
        coordinators=tuple(_no_coordinator(key, error_code) for key in request.coordinator_keys),
    )


def _coordinator(ctx: Context, key: str, key_type: int) -> Coordinator:
    if key_type == SHARE:
        return _no_coordinator(key, ErrorCode.INVALID_REQUEST)
    topic = _TOPICS.get(key_type)
    if topic is None:
        return _no_coordinator(key, ErrorCode.INVALID_REQUEST, _MESSAGES[ErrorCode.INVALID_REQUEST])
    broker = _leader(ctx, topic, key)
    if broker is None:
        return _no_coordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(
        key=key, node_id=broker.broker_id, host=ctx.host_of(broker), port=ctx.port_of(broker)
    )


def _leader(ctx: Context, name: str, key: str) -> BrokerImage | None:
    """The broker that leads the key's partition of a topic, None while there is none."""
    if name not in ctx.broker.view.topics:
        create_internal_topic(ctx.broker, name)
    view = ctx.broker.view
    topic = view.topics.get(name)
    if topic is None:
        return None
    partition = topic.partitions[partition_for(key, len(topic.partitions))]
    return view.brokers.get(partition.leader)


def _no_coordinator(key: str, error_code: int, message: str = "") -> Coordinator:
    return Coordinator(
        key=key, node_id=_NO_NODE, port=_NO_NODE, error_code=error_code, error_message=message
    )
