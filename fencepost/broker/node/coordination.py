"""The binding of a broker's coordinators to its replicas and its configs."""

from typing import TYPE_CHECKING

from fencepost.broker.coordinator.replica_log import ReplicaLog
from fencepost.broker.groups.group_config import GroupConfig
from fencepost.broker.groups.group_coordinator import GroupCoordinator
from fencepost.broker.replication.replica import Replica

if TYPE_CHECKING:
    from fencepost.broker.node.broker import Broker


class GroupCoordination:
    """Loads and unloads the shards of the partitions that a broker leads."""

    def __init__(self, broker: "Broker", offset_value_version: int) -> None:
        self._broker = broker
        self.group_coordinator = GroupCoordinator(
            scheduler=broker.scheduler,
            rng=broker.rng,
            config=GroupConfig.of_broker(broker.configs, offset_value_version),
            partition_count=self._partition_count,
        )
        self._runtime = self.group_coordinator.runtime

    def on_elected(self, replica: Replica) -> None:
        """A replica leads, in a new epoch."""
        if replica.topic == self._runtime.topic:
            self._runtime.on_elected(replica.index, ReplicaLog(replica, self._broker.scheduler))

    def on_resigned(self, replica: Replica) -> None:
        """A replica does not lead any more."""
        if replica.topic == self._runtime.topic:
            self._runtime.on_resigned(replica.index)

    def _partition_count(self) -> int:
        topic = self._broker.view.topics.get(self._runtime.topic)
        return 0 if topic is None else len(topic.partitions)
