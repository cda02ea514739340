"""The partitions that are evaluated when a broker comes or goes.

Where they are very many, some are evaluated in one turn and the others in the next ones, each turn
with an image of its own. As in Kafka, where they are in several batches of records, a partition may
have a leader meanwhile that is fenced.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, Protocol

from fencepost.broker.controller.elections import without_failed
from fencepost.broker.core.turns import InLaterTurn, TurnQueue
from fencepost.broker.metadata.image import ClusterImage, PartitionImage

PARTITIONS_IN_A_TURN: Final = 50
"""That are evaluated in one turn."""


class EvaluatedCluster(Protocol):
    """What evaluations need of the controller."""

    image: ClusterImage

    def reevaluated(
        self, topic: str, partition: PartitionImage, gone: Collection[int] = ()
    ) -> PartitionImage:
        """A partition after its election, as the cluster is now, without brokers that are gone."""
        ...

    def update_partitions(self, changes: Mapping[tuple[str, int], PartitionImage]) -> None:
        """Put changed partitions into the registry, by topic and index, all in one image."""
        ...


class Evaluations:
    """Evaluates the partitions of which one broker has a replica."""

    def __init__(self, controller: EvaluatedCluster, in_later_turn: InLaterTurn) -> None:
        self._controller = controller
        self._broker_id = -1
        """The broker that came or went last."""
        self._leaves = False
        self._left: TurnQueue[tuple[str, int]] = TurnQueue(
            in_later_turn, PARTITIONS_IN_A_TURN, self._evaluate
        )
        """The partitions that are not evaluated yet, by topic and index."""

    def begin(self, broker_id: int, *, leaves: bool) -> None:
        """A broker has come, or leaves every ISR: evaluate the first of its partitions now.

        They are published with its registration, which is in the controller's image already. To be
        called after `finish`.
        """
        self._broker_id, self._leaves = broker_id, leaves
        held = [
            (name, index)
            for name, topic in self._controller.image.topics.items()
            for index, partition in enumerate(topic.partitions)
            if broker_id in partition.replicas
        ]
        self._controller.update_partitions(self._changes(held[:PARTITIONS_IN_A_TURN]))
        self._left.add(held[PARTITIONS_IN_A_TURN:])

    def finish(self) -> None:
        """Evaluate at once what is left for later turns."""
        self._left.finish()

    def _evaluate(self, partitions: Iterable[tuple[str, int]]) -> None:
        changes = self._changes(partitions)
        if changes:
            self._controller.update_partitions(changes)

    def _changes(
        self, partitions: Iterable[tuple[str, int]]
    ) -> dict[tuple[str, int], PartitionImage]:
        """The partitions that change when they are evaluated, as they are then."""
        controller, broker_id = self._controller, self._broker_id
        changes = {}
        for name, index in partitions:
            partition = controller.image.partition(name, index)
            if partition is not None and broker_id in partition.replicas:
                before = partition if self._leaves else without_failed(partition, broker_id)
                gone = (broker_id,) if self._leaves else ()
                after = controller.reevaluated(name, before, gone)
                if after is not partition:
                    changes[name, index] = after
        return changes
