"""A real Apache Kafka broker, for a comparison live."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path
from typing import Final

from tests.harness import java
from tests.harness.cluster import Cluster, wait_until
from tests.harness.process import start
from tests.harness.run import run

_JVM: Final = ("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qk"
_STARTED_S: Final = 60.0


def start_kafka(folder: Path) -> Cluster:
    """One KRaft node with its data in ``folder``, which is removed at the next start."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    broker, controller = _free_ports(2)
    properties = folder / "server.properties"
    properties.write_text(_properties(folder, broker, controller))
    tool = ["kafka.tools.StorageTool", "format", "--standalone", "-t", _CLUSTER_ID]
    run(java.command(*tool, "-c", str(properties), options=_JVM), timeout_s=60)
    process = start(
        "kafka",
        java.command("kafka.Kafka", str(properties), options=_JVM),
        folder / "kafka.log",
    )
    cluster = Cluster(bootstrap=f"127.0.0.1:{broker}", process=process)
    try:
        wait_until("kafka is ready", lambda: _ready(cluster), _STARTED_S)
    except AssertionError:
        text = process.log_since(0)
        process.stop(expect=None)
        raise AssertionError(f"kafka did not start\n{text}") from None
    return cluster


def _ready(cluster: Cluster) -> bool:
    """Whether it is registered and unfenced: it knows itself as a broker."""
    try:
        with cluster.connect() as connection:
            answer = connection.call("Metadata", 12, {"Topics": []})
    except OSError:
        return False
    return bool(answer["Brokers"])


def _free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in held]
    for each in held:
        each.close()
    return ports


def _properties(folder: Path, broker: int, controller: int) -> str:
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(folder / "logs"),
        "num.network.threads": "2",
        "num.io.threads": "4",
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())
