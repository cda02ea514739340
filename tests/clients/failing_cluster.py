"""A cluster of three that applications process exactly once on while it fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.clients.disturbances import Disturbances
from tests.harness.confluent import delivered, send
from tests.harness.control_client import Control
from tests.harness.served_cluster import Cluster, configs, serving

SEEDS: Final = range(int(os.environ.get("FENCEPOST_STREAMS_SEEDS", "1")))
"""What goes wrong, and when; a single one is the short form of a test."""
PARTITIONS: Final = 3
"""Of each topic but those of coordinators."""

_SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingCluster:
    """It fails as `disturbances` say."""

    cluster: Cluster
    control: Control

    def create_topics(self) -> tuple[str, str]:
        """A source and a target."""
        source, target = (
            self.cluster.create_topic(name, partitions=PARTITIONS) for name in ("source", "target")
        )
        return source, target

    def send(self, topic: str, values: list[bytes]) -> None:
        """Produce to the partitions in turns."""
        assert delivered(send(self.cluster, topic, values, partitions=PARTITIONS))

    def disturbances(self, seed: int, *names: str) -> Disturbances:
        """Failures of brokers, and elections of coordinators and of leaders.

        :param names: What is in the names of the topics whose leaders change.
        """
        topics = {
            topic["name"]: topic["partitions"]
            for topic in self.control.topics()
            if topic["internal"] or any(name in topic["name"] for name in names)
        }
        return Disturbances(self.control, topics, seed)


@contextmanager
def failing_cluster(folder: Path) -> Iterator[FailingCluster]:
    """A new one; in the end it must stop in order."""
    with serving(folder / "fencepost.log", *configs(_SETTINGS)) as cluster:
        assert cluster.control is not None
        with closing(Control(cluster.control)) as control:
            yield FailingCluster(cluster=cluster, control=control)
