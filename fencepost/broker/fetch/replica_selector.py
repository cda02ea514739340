"""The replica that a consumer should read from (KIP-392): ``replica.selector.class``.

The leader sends a consumer that names its rack to an in-sync replica of that rack whose log covers
the fetch offset: to the one with the highest log end. A consumer in the leader's own rack, or in
one without such a replica, stays with the leader.
"""

from typing import Final, Protocol

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.metadata.image import ClusterImage
from fencepost.broker.network.links import BrokerId
from fencepost.broker.replication.replica import Replica

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
NO_PREFERRED_REPLICA: Final = -1


class SelectorNode(Protocol):
    """What the selection needs of the leader's broker."""

    broker_id: BrokerId
    view: ClusterImage
    configs: BrokerConfigs


def preferred_read_replica(
    broker: SelectorNode, leader: Replica, rack: str, fetch_offset: int
) -> int:
    """The broker that a consumer in ``rack`` is sent to, -1 where it is to read here.

    :param leader: The partition's replica on this ``broker``; a follower sends no consumer away.
    """
    if broker.configs.replica_selector_class != RACK_AWARE or not leader.is_leader or not rack:
        return NO_PREFERRED_REPLICA
    if _rack_of(broker, broker.broker_id) == rack:
        return NO_PREFERRED_REPLICA
    covering = [
        (progress.log_end_offset, progress.last_caught_up_ms, broker_id)
        for broker_id, progress in leader.followers.items()
        if broker_id in leader.isr
        and progress.log_start_offset <= fetch_offset <= progress.log_end_offset
        and _rack_of(broker, broker_id) == rack
    ]
    return max(covering)[-1] if covering else NO_PREFERRED_REPLICA


def _rack_of(broker: SelectorNode, broker_id: int) -> str | None:
    """The rack of a broker that is online, as far as this one knows."""
    known = broker.view.brokers.get(broker_id)
    return None if known is None or known.fenced else known.rack
