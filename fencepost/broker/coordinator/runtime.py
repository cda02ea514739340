"""The shards of one broker for one internal topic (Kafka: ``CoordinatorRuntime``)."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from fencepost.broker.coordinator.commit_queue import PartitionLog
from fencepost.broker.coordinator.partitioner import partition_for
from fencepost.broker.coordinator.shard import CoordinatorShard
from fencepost.protocol.errors import ErrorCode

_ShardT = TypeVar("_ShardT", bound=CoordinatorShard[Any, Any])


class CoordinatorRuntime(Generic[_ShardT]):
    """A shard for each partition of the topic that this broker leads."""

    def __init__(
        self,
        topic: str,
        *,
        partition_count: Callable[[], int],
        new_shard: Callable[[PartitionLog], _ShardT],
    ) -> None:
        """:param partition_count: Of the topic in this broker's view; 0 while it does not exist."""
        self.topic = topic
        self.shards: dict[int, _ShardT] = {}
        """By partition, loaded or not."""
        self._partition_count = partition_count
        self._new_shard = new_shard

    def on_elected(self, partition: int, log: PartitionLog) -> None:
        """This broker leads a partition in a new epoch: load it at the end of the turn."""
        self.on_resigned(partition)
        self.shards[partition] = self._new_shard(log)

    def on_resigned(self, partition: int) -> None:
        """This broker does not lead a partition any more: unload it."""
        shard = self.shards.pop(partition, None)
        if shard is not None:
            shard.close()

    def shard_for(self, key: str) -> _ShardT | ErrorCode:
        """The shard that coordinates a key, or an error.

        NOT_COORDINATOR unless this broker leads the key's partition; COORDINATOR_LOAD_IN_PROGRESS
        until the shard has loaded.
        """
        count = self._partition_count()
        shard = self.shards.get(partition_for(key, count)) if count else None
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return shard if shard.loaded else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    @property
    def is_loading(self) -> bool:
        """Whether a shard has not loaded yet."""
        return not all(shard.loaded for shard in self.shards.values())
