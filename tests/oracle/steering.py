"""Operations on the cluster under test: to fencepost by its control API, to Kafka as one can.

An election is a clean one that raises the leader epoch by one. A broker that is killed sends
nothing any more, not even a last request.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import httpx

from tests.harness.kafka import Kafka
from tests.harness.served_cluster import Cluster
from tests.harness.wait import wait_until
from tests.harness.wire import Body
from tests.oracle.asking import named

_PREFERRED = 0
"""An election type of ElectLeaders."""


class Steering(Protocol):
    """How to bring about what no client can."""

    def prefer(self, topic: str, broker: int) -> None:
        """Prepare for a replica of partition 0 to lead soon, so that `lead` is quick."""

    def lead(self, topic: str, broker: int) -> None:
        """Have a replica of partition 0 elected."""

    def freezable(self) -> Collection[int]:
        """The brokers that can be frozen, and elections go on."""

    def freeze(self, broker: int) -> None:
        """Let a broker send nothing for a while, and hear nothing. Clients must not ask it."""

    def thaw(self, broker: int) -> None:
        """Let it go on where it was."""

    def kill(self, broker: int) -> None:
        """End a broker at once."""

    def start(self, broker: int) -> None:
        """Start it again."""


class ControlSteering:
    """By fencepost's verbs."""

    def __init__(self, cluster: Cluster) -> None:
        self._control = cluster.control

    def prefer(self, topic: str, broker: int) -> None:
        pass

    def lead(self, topic: str, broker: int) -> None:
        self._post(f"topics/{topic}/partitions/0/elect", {"leader": broker})

    def freezable(self) -> Collection[int]:
        return (1, 2, 3)

    def freeze(self, broker: int) -> None:
        others = [each for each in self.freezable() if each != broker]
        self._post(f"brokers/{broker}/isolate", {"from": others})
        self._post(f"brokers/{broker}/isolate", {"from": "controller", "fence": "timeout"})

    def thaw(self, broker: int) -> None:
        self._post(f"brokers/{broker}/rejoin", {})

    def kill(self, broker: int) -> None:
        self._post(f"brokers/{broker}/kill", {"fence": "timeout"})

    def start(self, broker: int) -> None:
        self._post(f"brokers/{broker}/start", {})

    def _post(self, path: str, body: Body) -> None:
        answer = httpx.post(f"{self._control}/v1/{path}", json=body, trust_env=False)
        assert answer.status_code == 200, answer.text


class KafkaSteering:
    """By what an operator of a real Kafka has: reassignments, elections and processes."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka

    def prefer(self, topic: str, broker: int) -> None:
        """Make it the preferred leader, the first of the replicas."""
        replicas = self._replicas(topic)
        wanted = [broker, *(each for each in replicas if each != broker)]
        if wanted == replicas:
            return
        moved = {"Name": topic, "Partitions": [{"PartitionIndex": 0, "Replicas": wanted}]}
        answer = self._call("AlterPartitionReassignments", 0, {"Topics": [moved]})
        done = answer["Responses"][0]["Partitions"][0]
        assert (answer["ErrorCode"], done["ErrorCode"]) == (0, 0), answer
        wait_until("the replicas have the new order", lambda: self._replicas(topic) == wanted)

    def lead(self, topic: str, broker: int) -> None:
        self.prefer(topic, broker)
        elected = {"Topic": topic, "Partitions": [0]}
        body = {"ElectionType": _PREFERRED, "TopicPartitions": [elected]}
        answer = self._call("ElectLeaders", 2, body)
        result = answer["ReplicaElectionResults"][0]["PartitionResult"][0]
        assert (answer["ErrorCode"], result["ErrorCode"]) == (0, 0), answer

    def freezable(self) -> Collection[int]:
        return {1, 2, 3} - {self._kafka.controller()}

    def freeze(self, broker: int) -> None:
        self._kafka.freeze(broker)

    def thaw(self, broker: int) -> None:
        self._kafka.thaw(broker)

    def kill(self, broker: int) -> None:
        self._kafka.kill(broker)

    def start(self, broker: int) -> None:
        self._kafka.start(broker)

    def _replicas(self, topic: str) -> list[int]:
        entry = self._call("Metadata", 12, {"Topics": [named(topic)]})["Topics"][0]
        replicas: list[int] = entry["Partitions"][0]["ReplicaNodes"]
        return replicas

    def _call(self, api: str, version: int, body: Body) -> Body:
        with self._kafka.connect() as connection:
            return connection.call(api, version, body)
