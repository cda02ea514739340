"""All applications of one cluster, by the numbers that the schedule gives them."""

from collections import Counter
from typing import Final

from fencepost.broker.node.cluster import Cluster
from fencepost.simulation.checker import ClusterChecker
from fencepost.simulation.consumers import invariants as must
from fencepost.simulation.consumers.admitted import LOST_IN_TIER
from fencepost.simulation.consumers.application import Application
from fencepost.simulation.consumers.kinds import kinds_of
from fencepost.simulation.environment import RequestSender
from fencepost.simulation.invariants import require
from fencepost.simulation.schedule import TOPIC
from fencepost.simulation.setup import Setup

FINAL_ROUNDS: Final = 40
_POLLS: Final = 8
"""Of a round; in each all that is under way arrives."""


class Applications:
    """The applications that have been polled so far; each begins with its first poll.

    :ivar met: How often each admitted exception was met, by name.
    """

    def __init__(
        self, cluster: Cluster, checker: ClusterChecker, setup: Setup, send: RequestSender
    ) -> None:
        self._cluster = cluster
        self._checker = checker
        self._send = send
        self._kinds = kinds_of(setup.consumers)
        self._running: dict[int, Application] = {}
        self.met: Counter[str] = Counter()

    def poll(self, number: int, *, heeds: bool) -> None:
        """An application polls; see `Application.poll`."""
        application = self._running.get(number)
        if application is None:
            kind = self._kinds.get(number)
            if kind is None:
                return
            application = self._running[number] = Application(
                number, kind, self._cluster, self._checker, self._send, self.met
            )
        application.poll(heeds=heeds)

    def carry(self, number: int, which: int, *, is_lost: bool) -> None:
        """One of its messages arrives or is lost; see `Messages.carry`."""
        if number not in self._running:
            return
        broker_id = self._running[number].messages.carry(which, is_lost=is_lost)
        if broker_id is not None:
            self._cluster.scheduler.run_due()
            self._checker.check_controller()
            self._checker.check_broker(broker_id)

    def save(self, number: int) -> None:
        """It commits."""
        if number in self._running:
            self._running[number].save()

    def restart(self, number: int) -> None:
        """It begins again."""
        if number in self._running:
            self._running[number].restart()

    def under_way(self, number: int) -> int:
        """How many of its messages the schedule may let arrive."""
        return len(self._running[number].messages) if number in self._running else 0

    # -- in the end -----------------------------------------------------------------------------

    def is_done(self) -> bool:
        """Whether each has read all that there is."""
        return all(
            each.is_at(index, high_watermark)
            for each in self._running.values()
            for index, high_watermark in enumerate(self._high_watermarks())
        )

    def poll_all(self) -> None:
        """Each polls some times, and all its messages arrive."""
        for number, each in self._running.items():
            for _ in range(_POLLS):
                each.poll(heeds=True)
                for _ in range(len(each.messages)):
                    self.carry(number, 0, is_lost=False)

    def check_done(self) -> None:
        """Nothing has changed for a while: each has come to the end."""
        for each in self._running.values():
            for index, high_watermark in enumerate(self._high_watermarks()):
                position = each.position(index)
                if each.is_at(index, high_watermark):
                    continue
                if (position or 0) < self._checker.partitions[index].lost_until:
                    self.met[LOST_IN_TIER.name] += 1
                    continue
                who = f"{each.name} of p{index}"
                require(must.consumers_come_to_the_end, who, position, high_watermark)

    def _high_watermarks(self) -> list[int]:
        """Of each partition's leader."""
        partitions = self._cluster.controller.image.topics[TOPIC].partitions
        return [
            self._cluster.brokers[partition.leader].replicas[TOPIC, index].high_watermark
            for index, partition in enumerate(partitions)
        ]
