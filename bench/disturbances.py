"""What goes wrong during a soak: elections, replicas that are held, faults, brokers, the tier.

A disturbance may be refused, such as an election of a broker that is not in the ISR; then it is
counted as such. What one leaves is mended by the next.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from bench import servers, wire
from bench.control import Control
from bench.mixed_client import PARTITIONS, TOPIC, TRANSACTIONS

TOPICS: Final = (TOPIC, TRANSACTIONS)
FAULTS: Final[Sequence[Mapping[str, object]]] = (
    {"api": "Produce", "count": 3, "action": {"error": "NOT_LEADER_OR_FOLLOWER"}},
    {"api": "Fetch", "count": 5, "action": {"delay": 50}, "source": "clients"},
    {"api": "Metadata", "count": 2, "action": {"disconnect": "before"}},
    {"api": "Produce", "count": 2, "action": {"disconnect": "after"}},
    {"api": "Fetch", "count": 3, "action": {"throttle": 30}, "source": "clients"},
    {"api": "ListOffsets", "count": 3, "action": {"error": "LEADER_NOT_AVAILABLE"}},
    {"api": "OffsetCommit", "count": 2, "action": {"error": "COORDINATOR_LOAD_IN_PROGRESS"}},
    {"api": "EndTxn", "count": 2, "action": {"error": "COORDINATOR_NOT_AVAILABLE"}},
    {"api": "Fetch", "count": 2, "action": {"pieces": 512}, "source": "clients"},
    {"api": "JoinGroup", "count": 1, "action": {"error": "COORDINATOR_NOT_AVAILABLE"}},
)
TIER_FAULTS: Final[Sequence[Mapping[str, object]]] = (
    {"operation": "upload", "error": "the store is down", "count": 1},
    {"operation": "fetch", "delay_ms": 30, "count": 2},
    {"operation": "list", "error": "the store is down", "count": 1},
)
LOOKS: Final = ("/v1/topics", "/v1/groups", "/v1/transactions", "/v1/faults", "/v1/trace?limit=50")


class Disturbances:
    """Does one thing after the other, in an order that a seed draws."""

    def __init__(self, control: Control, seed: int) -> None:
        self._control = control
        self._random = random.Random(seed)
        self._mend: Callable[[], object] | None = None
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._kinds = {
            "elect": self._elect,
            "hold": self._hold,
            "fault": self._fault,
            "tier": self._tier,
            "tier fault": self._tier_fault,
            "roll": self._roll,
            "kill": lambda: self._take("kill", "start"),
            "stop": lambda: self._take("stop", "start"),
            "isolate": lambda: self._take("isolate", "rejoin", {"from": "controller"}),
            "look": self._look,
        }
        self._left: list[str] = []

    def next(self) -> None:
        """Mend what the one before has left, and do another; each as often as any other."""
        self.mend()
        if not self._left:
            self._left = self._random.sample(list(self._kinds), len(self._kinds))
        name = self._left.pop()
        try:
            self._kinds[name]()
            self.done[name] += 1
        except wire.BadAnswer:
            self.refused[name] += 1

    def mend(self) -> None:
        """Let all brokers be one cluster again."""
        mend, self._mend = self._mend, None
        if mend is not None:
            mend()

    def _post(self, path: str, body: Mapping[str, object] | None = None) -> None:
        self._control.ask("POST", path, body)

    def _partition(self) -> tuple[str, Any]:
        topic, index = self._random.choice(TOPICS), self._random.randrange(PARTITIONS)
        path = f"/v1/topics/{topic}/partitions/{index}"
        return path, self._control.get(path)

    def _elect(self) -> None:
        path, found = self._partition()
        leader = self._random.choice([b for b in found["isr"] if b != found["leader"]])
        self._post(f"{path}/elect", {"leader": leader})

    def _hold(self) -> None:
        path, found = self._partition()
        brokers = range(1, servers.BROKERS + 1)
        broker = self._random.choice([b for b in brokers if b != found["leader"]])
        replica = f"{path}/replicas/{broker}"
        self._post(f"{replica}/hold")
        self._post(f"{replica}/step", {"fetches": 2})
        self._mend = lambda: self._post(f"{replica}/release")

    def _fault(self) -> None:
        self._post("/v1/faults", self._random.choice(FAULTS))

    def _tier(self) -> None:
        path = f"/v1/topics/{TOPIC}/partitions/{self._random.randrange(PARTITIONS)}"
        action = self._random.choice(("upload", "delete-local", "expire", "forget"))
        self._post(f"{path}/tier", {"action": action})

    def _tier_fault(self) -> None:
        self._post("/v1/tier/faults", self._random.choice(TIER_FAULTS))

    def _roll(self) -> None:
        path, _ = self._partition()
        self._post(f"{path}/roll")

    def _take(self, verb: str, undo: str, body: Mapping[str, object] | None = None) -> None:
        broker = self._random.randrange(1, servers.BROKERS + 1)
        self._post(f"/v1/brokers/{broker}/{verb}", body)
        self._mend = lambda: self._post(f"/v1/brokers/{broker}/{undo}")

    def _look(self) -> None:
        for path in LOOKS:
            self._control.get(path)
