"""Leaderships return to preferred leaders by themselves (``auto.leader.rebalance.enable``).

Kafka's controller looks after them every ``leader.imbalance.check.interval.seconds``. Here it does
so where that is asked for, or ``conformance=apache``: a test that has moved a leader expects it to
stay.
"""

from collections.abc import Mapping

from fencepost.broker.configs.effective_configs import BrokerConfigs
from fencepost.broker.controller.controller import Controller
from fencepost.broker.controller.elections import ElectionType, change_partition
from fencepost.broker.core.scheduler import Scheduler, Timer
from fencepost.broker.metadata.image import PartitionImage

_SECOND_MS = 1000


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
        changes = self._preferred()
        if changes:
            self._controller.update_partitions(changes)
        self.start()

    def _preferred(self) -> Mapping[tuple[str, int], PartitionImage]:
        """The partitions that another replica leads than the first, which could."""
        changes = {}
        for topic in self._controller.image.topics.values():
            for index, partition in enumerate(topic.partitions):
                preferred = partition.replicas[0]
                if partition.leader == preferred or preferred not in partition.isr:
                    continue
                rules = self._controller.election_rules(topic.name)
                after = change_partition(partition, rules, election=ElectionType.PREFERRED)
                if after.leader == preferred:
                    changes[topic.name, index] = after
        return changes
