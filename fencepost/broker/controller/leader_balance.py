"""Leaderships return to preferred leaders by themselves (``auto.leader.rebalance.enable``).

Kafka's controller looks after them every ``leader.imbalance.check.interval.seconds``. Here it does
so where that is asked for, or ``conformance=apache``: a test that has moved a leader expects it to
stay. Where very many are to return, some do in one turn and the others in the next ones, each turn
with an image of its own; Kafka has 1,000 of them return at a time.
"""

from collections.abc import Iterable
from typing import Final

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.controller.controller import Controller
from fencepost.broker.controller.elections import ElectionType, change_partition
from fencepost.broker.core.scheduler import Scheduler, Timer
from fencepost.broker.core.turns import TurnQueue
from fencepost.broker.metadata.image import PartitionImage

_SECOND_MS: Final = 1000
ELECTIONS_IN_A_TURN: Final = 40
"""Partitions whose preferred leader is elected in one turn."""


class LeaderBalance:
    """The periodic preferred elections of a cluster.

    :param configs: Those of the controller.
    """

    def __init__(
        self, controller: Controller, configs: BrokerConfigs, scheduler: Scheduler
    ) -> None:
        self._controller = controller
        self._configs = configs
        self._scheduler = scheduler
        self._timer: Timer | None = None
        self._left: TurnQueue[tuple[str, int]] = TurnQueue(
            scheduler.in_later_turn, ELECTIONS_IN_A_TURN, self._elect
        )
        """The partitions that are left for later turns, by topic and index."""

    def start(self) -> None:
        """Set the timer of the next look, or set it again; none where leaders stay."""
        if not self._configs.auto_leader_rebalance_enable:
            return
        interval_ms = self._configs.leader_imbalance_check_interval_seconds * _SECOND_MS
        due_ms = self._scheduler.now_ms() + interval_ms
        if self._timer is None:
            self._timer = self._scheduler.at(due_ms, self._balance)
        else:
            self._timer.move_to(due_ms)

    def _balance(self) -> None:
        self._left.finish()
        imbalanced = [
            (name, index)
            for name, topic in self._controller.image.topics.items()
            for index, partition in enumerate(topic.partitions)
            if _is_imbalanced(partition)
        ]
        self._elect(imbalanced[:ELECTIONS_IN_A_TURN])
        self._left.add(imbalanced[ELECTIONS_IN_A_TURN:])
        self.start()

    def _elect(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Elect the first replica of each, where it still could lead and does not."""
        changes = {}
        for name, index in partitions:
            partition = self._controller.image.partition(name, index)
            if partition is None or not _is_imbalanced(partition):
                continue
            rules = self._controller.election_rules(name)
            after = change_partition(partition, rules, election=ElectionType.PREFERRED)
            if after.leader == partition.replicas[0]:
                changes[name, index] = after
        if changes:
            self._controller.update_partitions(changes)


def _is_imbalanced(partition: PartitionImage) -> bool:
    """Whether another replica leads than the first, which is in sync."""
    preferred = partition.replicas[0]
    return partition.leader != preferred and preferred in partition.isr
