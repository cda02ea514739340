"""The shards of coordinators, where a test's verbs look for groups and transactional ids."""

from collections.abc import Callable
from typing import Any, TypeVar

from fencepost.broker.coordinator.shard import CoordinatorRuntime, CoordinatorShard
from fencepost.broker.core.errors import ControllerError
from fencepost.broker.node.broker import Broker
from fencepost.broker.node.cluster import Cluster
from fencepost.protocol.errors import ErrorCode

ShardT = TypeVar("ShardT", bound=CoordinatorShard[Any, Any])


def loaded_shard(
    cluster: Cluster,
    topic: str,
    index: int,
    runtime_of: Callable[[Broker], CoordinatorRuntime[ShardT]],
) -> tuple[int, ShardT]:
    """The broker that leads a partition of an internal topic, and its shard, which has loaded.

    :param runtime_of: A broker's shards of the topic.
    :raises ControllerError: COORDINATOR_NOT_AVAILABLE when the partition has no leader, or its
        shard has not loaded.
    """
    broker_id = cluster.controller.partition(topic, index).leader
    broker = cluster.brokers.get(broker_id)
    if broker is not None and broker.running:
        shard = runtime_of(broker).shards.get(index)
        if shard is not None and shard.loaded:
            return broker_id, shard
    raise ControllerError(
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        f"{topic}-{index} has no leader at present, and so what it coordinates has no coordinator",
    )
