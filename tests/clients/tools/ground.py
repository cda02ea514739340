"""Where sessions are run: fencepost, or a real Kafka of the same brokers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from tests.clients.tools.playing import REAL, Ground
from tests.harness.kafka import start_kafka
from tests.harness.served_cluster import Cluster, configs, serving

_CONFIGS: Final = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
"""What `tests.harness.kafka` gives its brokers, and a client can see."""


def chosen(folder: Path) -> AbstractContextManager[Ground]:
    """What ``FENCEPOST_TOOLS_ON`` names: fencepost, unless that is ``kafka``."""
    return kafka(folder) if REAL else fencepost(folder)


@contextmanager
def fencepost(folder: Path) -> Iterator[Ground]:
    """Three brokers that keep their logs in files."""
    options = ["--data-dir", str(folder / "data"), "--racks", "r1,r2,r3"]
    options += ["--controller-ids", "1,2,3", "--controller-port", "0", *configs(_CONFIGS)]
    with serving(folder / "fencepost.log", *options) as cluster:
        assert cluster.controller is not None
        yield _ground(
            folder,
            cluster,
            cluster.controller,
            [folder / "data" / f"broker-{n}" for n in (1, 2, 3)],
        )


@contextmanager
def kafka(folder: Path) -> Iterator[Ground]:
    """Three nodes of Apache Kafka 4.3.1 (ready in about 12 s)."""
    started = start_kafka(folder / "kafka", nodes=3)
    try:
        logs = [started.folders[n] / "logs" for n in (1, 2, 3)]
        yield _ground(folder, started.cluster, started.controllers[0], logs)
    finally:
        started.stop()


def _ground(folder: Path, cluster: Cluster, controller: str, logs: list[Path]) -> Ground:
    files = folder / "files"
    files.mkdir()
    brokers = cluster.bootstrap.split(",")
    return Ground(brokers=brokers, controller=controller, folder=files, logs=logs)
