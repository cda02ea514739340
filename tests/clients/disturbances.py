"""What goes wrong in a cluster of three, one thing at a time, drawn by a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Final

from tests.harness.control_client import Control

BROKERS: Final = (1, 2, 3)


class Disturbances:
    """Elects leaders, and takes one broker at a time from the others.

    :param topics: With the number of their partitions; their leaders change.
    """

    def __init__(self, control: Control, topics: Mapping[str, int], seed: int) -> None:
        self._control = control
        self._partitions = [
            (topic, index) for topic, count in topics.items() for index in range(count)
        ]
        self._random = random.Random(seed)
        self._mend: Callable[[], None] | None = None
        self.done: list[str] = []
        """What was done, in words."""
        self.has_zombie = False
        """Whether a broker goes on as it was, and does not know what the controller decides."""

    def next(self) -> None:
        """Mend what the one before has left, and do the next."""
        self.mend()
        disturb = self._random.choice(
            (self._elect, self._elect, self._kill, self._stop, self._isolate, self._cut_off)
        )
        disturb()

    def mend(self) -> None:
        """Let all brokers be one cluster again."""
        if self._mend is not None:
            self._mend()
            self._mend = None
            self.has_zombie = False

    def _elect(self) -> None:
        """Half of the partitions get other leaders."""
        for topic, index in self._random.sample(self._partitions, len(self._partitions) // 2):
            found = self._control.partition(topic, index)
            leader = self._random.choice([b for b in found["isr"] if b != found["leader"]])
            self.done.append(f"elect {leader} for {topic}-{index}")
            self._control.elect(topic, leader, index)

    def _kill(self) -> None:
        self._take("kill", "start")

    def _stop(self) -> None:
        self._take("stop", "start")

    def _isolate(self) -> None:
        """It goes on as it was: a zombie."""
        self._take("isolate", "rejoin", from_="controller")
        self.has_zombie = True

    def _cut_off(self) -> None:
        """While it reaches the controller alone, leaders change. All can go on only after that:
        in-sync replicas do not get records, and leaders no markers.
        """
        broker = self._random.choice(BROKERS)
        self._take_broker(broker, "isolate", "rejoin", from_=[b for b in BROKERS if b != broker])
        self._elect()
        self.mend()

    def _take(self, verb: str, undo: str, **body: object) -> None:
        self._take_broker(self._random.choice(BROKERS), verb, undo, **body)

    def _take_broker(self, broker: int, verb: str, undo: str, **body: object) -> None:
        self.done.append(f"{verb} {broker} {body or ''}")
        self._control.broker(verb, broker, **body)
        self._mend = lambda: self._control.broker(undo, broker)
