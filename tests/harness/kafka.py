"""A real Apache Kafka, for a comparison live: one node, or several of them on this machine."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.harness import java
from tests.harness.kafka_tools import kafka_tool
from tests.harness.process import Process, free_ports, start
from tests.harness.served_cluster import Cluster
from tests.harness.wait import wait_until
from tests.harness.wire import Connection

_JVM: Final = ("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qk"
_DIRECTORY_IDS: Final = (
    "MkU3OEVBNTcwNTJENDM2QQ",
    "MkU3OEVBNTcwNTJENDM2Qg",
    "MkU3OEVBNTcwNTJENDM2Qw",
)
"""One for each node: what the controllers know each other's disks by."""
_STARTED_S: Final = 120.0
_DAY_MS: Final = 86_400_000


@dataclass(slots=True, kw_only=True)
class Kafka:
    """KRaft nodes that are broker and controller both; their ids are 1, 2 and so on."""

    cluster: Cluster
    folders: Mapping[int, Path]
    processes: dict[int, Process]
    """Those that run, by node id."""
    controllers: Sequence[str] = ()
    """The address of each node's controller."""
    frozen: set[int] = field(default_factory=set)

    def kill(self, node: int) -> None:
        """End a node's process, which sends no last request."""
        self.processes.pop(node).kill()

    def shut_down(self, node: int) -> None:
        """Let a node write down all it knows, and end."""
        self.processes.pop(node).stop(expect=128 + signal.SIGTERM)

    def start(self, node: int) -> None:
        """Start a node that does not run; returns at once."""
        folder = self.folders[node]
        command = java.command("kafka.Kafka", str(folder / "server.properties"), options=_JVM)
        log = folder / f"kafka-{len(list(folder.glob('*.log')))}.log"
        self.processes[node] = start(f"kafka-{node}", command, log)

    def wait(self) -> None:
        """Wait until all nodes, which were started, are ready."""
        try:
            wait_until("kafka is ready", lambda: _ready(self.cluster), _STARTED_S)
        except AssertionError:
            text = "\n".join(process.log_since(0) for process in self.processes.values())
            self.stop()
            raise AssertionError(f"kafka did not start\n{text}") from None

    def freeze(self, node: int) -> None:
        """Keep a node from running, its connections open; returns when no thread runs any more."""
        self.frozen.add(node)
        process = self.processes[node]
        process.child.send_signal(signal.SIGSTOP)
        wait_until(f"{process.name} stands still", lambda: _stands_still(process.pid))

    def thaw(self, node: int) -> None:
        """Let it run on."""
        self.frozen.discard(node)
        self.processes[node].child.send_signal(signal.SIGCONT)

    def connect(self) -> Connection:
        """To any node that runs."""
        node = min(self.processes.keys() - self.frozen)
        return self.cluster.connect(self.cluster.addresses[node - 1])

    def controller(self) -> int:
        """The node whose controller is active."""
        metadata = [{"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]}]
        with self.connect() as connection:
            answer = connection.call("DescribeQuorum", 1, {"Topics": metadata})
        leader: int = answer["Topics"][0]["Partitions"][0]["LeaderId"]
        return leader

    def stop(self) -> None:
        """End all nodes. No test reads their data, so they need not write it down."""
        for node in list(self.processes):
            self.kill(node)


def start_kafka(
    folder: Path,
    *,
    nodes: int = 1,
    advertised: int | None = None,
    configs: Mapping[str, str] | None = None,
) -> Kafka:
    """A cluster with its data in ``folder``, which is emptied first; returns when it is ready.

    :param nodes: How many, up to three.
    :param advertised: The port that clients of a single node are told to use, not the node's own.
    :param configs: Broker configs besides those that all get.
    """
    shutil.rmtree(folder, ignore_errors=True)
    ports = free_ports(2 * nodes)
    brokers, controllers = ports[:nodes], ports[nodes:]
    folders = {node: folder / str(node) for node in range(1, nodes + 1)}
    for node, place in folders.items():
        place.mkdir(parents=True)
        settings = {**_settings(node, place, brokers, controllers), **(configs or {})}
        if advertised is not None:
            settings["advertised.listeners"] = f"PLAINTEXT://127.0.0.1:{advertised}"
        lines = (f"{key}={value}\n" for key, value in settings.items())
        (place / "server.properties").write_text("".join(lines))
    _format(folders, controllers)
    bootstrap = ",".join(f"127.0.0.1:{port}" for port in brokers)
    kafka = Kafka(
        cluster=Cluster(bootstrap=bootstrap),
        folders=folders,
        processes={},
        controllers=[f"127.0.0.1:{port}" for port in controllers],
    )
    for node in folders:
        kafka.start(node)
    kafka.wait()
    return kafka


def _format(folders: Mapping[int, Path], controllers: list[int]) -> None:
    """Prepare the nodes' disks, the controllers of the beginning written on them."""
    voters = (
        f"{node}@127.0.0.1:{port}:{_DIRECTORY_IDS[node - 1]}"
        for node, port in enumerate(controllers, 1)
    )
    tool = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID]
    tool += ["--initial-controllers", ",".join(voters)]
    kafka_tool(*tool, "-c", str(folders[1] / "server.properties"))
    for node in folders.keys() - {1}:
        # The tool takes seconds to start, and what it writes differs in a file of a few lines.
        shutil.copytree(folders[1] / "logs", folders[node] / "logs")
        about = folders[node] / "logs" / "meta.properties"
        text = about.read_text().replace(_DIRECTORY_IDS[0], _DIRECTORY_IDS[node - 1])
        about.write_text(text.replace("node.id=1", f"node.id={node}"))


def _stands_still(pid: int) -> bool:
    """Whether all threads of a process have been stopped by a signal."""
    try:
        threads = [each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:  # a thread that ends just now
        return False
    # The state comes after the name, which is in parentheses and may have some itself.
    return all(each.rpartition(")")[2].split()[0] == "T" for each in threads)


def _ready(cluster: Cluster) -> bool:
    """Whether all are registered and unfenced, and each knows it."""
    return all(_knows(cluster, each) == len(cluster.addresses) for each in cluster.addresses)


def _knows(cluster: Cluster, address: tuple[str, int]) -> int:
    """How many brokers one of them tells of; 0 while it does not answer."""
    try:
        with cluster.connect(address) as connection:
            answer = connection.call("Metadata", 12, {"Topics": []})
    except OSError:
        return 0
    return len(answer["Brokers"])


def _settings(
    node: int, folder: Path, brokers: list[int], controllers: list[int]
) -> Mapping[str, str]:
    """Broker configs: small, and quick to notice that a broker is gone."""
    count = str(len(brokers))
    broker, controller = brokers[node - 1], controllers[node - 1]
    return {
        "process.roles": "broker,controller",
        "node.id": str(node),
        "broker.rack": f"r{node}",
        "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": ",".join(f"127.0.0.1:{p}" for p in controllers),
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(folder / "logs"),
        "num.network.threads": "2",
        "num.io.threads": "4",
        "auto.create.topics.enable": "false",
        "auto.leader.rebalance.enable": "false",
        "offsets.topic.replication.factor": count,
        "offsets.topic.num.partitions": "1",
        # Empty groups go at a check, in the middle of whatever is asked.
        "offsets.retention.check.interval.ms": str(_DAY_MS),
        "transaction.state.log.replication.factor": count,
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "replica.lag.time.max.ms": "3000",
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
    }
