"""One broker's part in group coordination: the shards of the partitions that it leads."""

from collections.abc import Callable, Iterable
from random import Random
from typing import Final

from fencepost.broker.groups.config import GroupConfig
from fencepost.broker.groups.partition_log import PartitionLog
from fencepost.broker.groups.shard import Shard
from fencepost.broker.scheduler import Scheduler
from fencepost.protocol.errors import ErrorCode

OFFSETS_TOPIC: Final = "__consumer_offsets"


def java_hash(text: str) -> int:
    """Java's ``String.hashCode``, as an unsigned number: over UTF-16 units, modulo 2**32."""
    value = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(data), 2):
        value = (value * 31 + (data[at] << 8 | data[at + 1])) & 0xFFFFFFFF
    return value


def partition_of(group_id: str, partition_count: int) -> int:
    """The partition of ``__consumer_offsets`` that a group belongs to."""
    return (java_hash(group_id) & 0x7FFFFFFF) % partition_count


class GroupCoordinator:
    """The shards of one broker."""

    def __init__(
        self,
        *,
        scheduler: Scheduler,
        rng: Random,
        config: GroupConfig,
        partition_count: Callable[[], int],
    ) -> None:
        """:param partition_count: Of ``__consumer_offsets`` in this broker's view; 0 without it."""
        self.config = config
        self.shards: dict[int, Shard] = {}
        """By partition of ``__consumer_offsets``."""
        self._scheduler = scheduler
        self._rng = rng
        self._partition_count = partition_count

    def on_elected(self, partition: int, log: PartitionLog) -> None:
        """This broker leads a partition: its groups are loaded at the end of the turn."""
        self.on_resigned(partition)
        self.shards[partition] = Shard(
            log=log, scheduler=self._scheduler, rng=self._rng, config=self.config
        )

    def on_resigned(self, partition: int) -> None:
        """This broker does not lead a partition any more."""
        shard = self.shards.pop(partition, None)
        if shard is not None:
            shard.close()

    def on_topics_deleted(self, topics: Iterable[str]) -> None:
        """Topics have gone, and what was committed for them goes too."""
        gone = frozenset(topics)
        for shard in self.shards.values():
            if gone and shard.loaded:
                shard.forget_topics(gone)

    def shard_for(self, group_id: str) -> Shard | ErrorCode:
        """Where a group is coordinated, or why it cannot be here and now.

        NOT_COORDINATOR on every broker but one; COORDINATOR_LOAD_IN_PROGRESS for a moment there.
        """
        count = self._partition_count()
        shard = self.shards.get(partition_of(group_id, count)) if count else None
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return shard if shard.loaded else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
