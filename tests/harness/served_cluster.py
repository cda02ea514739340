"""A served cluster: a fencepost process of the test's own, or a cluster that the user names.

``FENCEPOST_TEST_BOOTSTRAP=host:port,...`` names one: run the same tests against a real Kafka to see
that they state its behaviour.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from tests.harness.batches import TransmitRecord, build, produce_body
from tests.harness.process import NotReadyError, Process, start
from tests.harness.wait import wait_until
from tests.harness.wire import ZERO_UUID, Body, Connection

READY_S: Final = 60.0

_numbers = itertools.count(1)


def unique(prefix: str) -> str:
    """A name that no other test, run or machine uses."""
    return f"{prefix}-{next(_numbers)}-{uuid4().hex[:8]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where a cluster listens. ``control`` and ``process`` are None for one that was given, and
    ``controller`` where the controller has no listener.
    """

    bootstrap: str
    control: str | None = None
    controller: str | None = None
    process: Process | None = None

    @property
    def addresses(self) -> list[tuple[str, int]]:
        pairs = (each.rsplit(":", 1) for each in self.bootstrap.split(","))
        return [(host, int(port)) for host, port in pairs]

    def connect(self, address: tuple[str, int] | None = None) -> Connection:
        return Connection(address or self.addresses[0])

    def stop(self) -> None:
        """End the process in order. :raises AssertionError: When it does not end with 0."""
        assert self.process is not None
        self.process.stop()

    def metadata(self, topic: str, address: tuple[str, int] | None = None) -> Body:
        """One topic's entry of a Metadata answer, with ``Brokers`` (id to address) added."""
        wanted = [{"TopicId": ZERO_UUID, "Name": topic}]
        with self.connect(address) as connection:
            body: Body = {"Topics": wanted, "AllowAutoTopicCreation": False}
            answer = connection.call("Metadata", 12, body)
        entry: Body = answer["Topics"][0]
        brokers = {each["NodeId"]: (each["Host"], each["Port"]) for each in answer["Brokers"]}
        return {**entry, "Brokers": brokers}

    def leader(self, topic: str, partition: int = 0) -> tuple[str, int]:
        """The address of a partition's leader."""
        entry = self.metadata(topic)
        chosen = next(p for p in entry["Partitions"] if p["PartitionIndex"] == partition)
        address: tuple[str, int] = entry["Brokers"][chosen["LeaderId"]]
        return address

    def create_topic(
        self,
        prefix: str = "t",
        *,
        partitions: int = 1,
        replication_factor: int = 3,
        configs: Mapping[str, str] | None = None,
    ) -> str:
        """A new topic of a unique name; returns when its leaders serve it."""
        name = unique(prefix)
        settings = [{"Name": key, "Value": value} for key, value in (configs or {}).items()]
        topic = {
            "Name": name,
            "NumPartitions": partitions,
            "ReplicationFactor": replication_factor,
            "Configs": settings,
        }
        with self.connect() as connection:
            answer = connection.call("CreateTopics", 7, {"Topics": [topic], "timeoutMs": 20_000})
        assert answer["Topics"][0]["ErrorCode"] == 0, answer
        wait_until(f"{name} has leaders", lambda: self._served(name, partitions))
        return name

    def add_partitions(self, topic: str, total: int) -> None:
        """Let a topic have ``total`` partitions."""
        wanted = {"Name": topic, "Count": total}
        with self.connect() as connection:
            answer = connection.call(
                "CreatePartitions", 3, {"Topics": [wanted], "TimeoutMs": 20_000}
            )
        assert answer["Results"][0]["ErrorCode"] == 0, answer

    def _served(self, topic: str, partitions: int) -> bool:
        """Whether every broker knows the topic, and every leader serves it."""
        for address in self.addresses:
            entry = self.metadata(topic, address)
            if entry["ErrorCode"] != 0 or len(entry["Partitions"]) != partitions:
                return False
            if any(p["LeaderId"] < 0 for p in entry["Partitions"]):
                return False
        return all(self.end_offset(topic, p) >= 0 for p in range(partitions))

    def append(self, topic: str, *records: TransmitRecord, partition: int = 0) -> int:
        """Append one batch with acks=all; its base offset."""
        body = produce_body(topic, build(records), partition=partition)
        with self.connect(self.leader(topic, partition)) as connection:
            answer = connection.call("Produce", 9, body)
        entry: Body = answer["Responses"][0]["PartitionResponses"][0]
        assert entry["ErrorCode"] == 0, entry
        return int(entry["BaseOffset"])

    def end_offset(self, topic: str, partition: int = 0, *, timestamp: int = -1) -> int:
        """The offset for a timestamp by ListOffsets, or -1 while there is an error."""
        asked = {"PartitionIndex": partition, "Timestamp": timestamp}
        body: Body = {"ReplicaId": -1, "Topics": [{"Name": topic, "Partitions": [asked]}]}
        with self.connect(self.leader(topic, partition)) as connection:
            version = 7 if timestamp >= -3 else 11  # KIP-405 and KIP-1005 added targets below
            answer = connection.call("ListOffsets", version, body)
        entry: Body = answer["Topics"][0]["Partitions"][0]
        return int(entry["Offset"]) if entry["ErrorCode"] == 0 else -1

    def stored(self, topic: str, partition: int = 0, offset: int = 0) -> bytes:
        """The batches of a partition as they are stored, from the one with ``offset`` on."""
        wanted = {"Partition": partition, "FetchOffset": offset, "PartitionMaxBytes": 50 << 20}
        body = {
            "MaxWaitMs": 1000,
            "MinBytes": 1,
            "Topics": [{"Topic": topic, "Partitions": [wanted]}],
        }
        with self.connect(self.leader(topic, partition)) as connection:
            answer = connection.call("Fetch", 12, body)
        entry = answer["Responses"][0]["Partitions"][0]
        assert entry["ErrorCode"] == 0, entry
        records: bytes = entry["Records"] or b""
        return records


def serve(
    log: Path,
    *options: str,
    brokers: int = 3,
    program: Sequence[str] = ("-m", "fencepost"),
    ulimit: str = "",
) -> Cluster:
    """Start ``fencepost serve`` on free loopback ports. It is the caller's to stop.

    :param program: Arguments of Python: what takes ``serve``.
    :param ulimit: Arguments of the shell's ``ulimit``, such as ``-n 256``.
    """
    command = [sys.executable, *program, "serve", "--brokers", str(brokers)]
    command += ["--port", "0", "--control-port", "0", "--stop-with-stdin", *options]
    if ulimit:
        command = ["sh", "-c", f'ulimit {ulimit}; exec "$@"', "sh", *command]
    process = start("fencepost", command, log)
    try:
        ready = json.loads(process.first_line(READY_S))
    except (NotReadyError, ValueError):
        process.child.kill()
        process.stop(expect=None)
        raise
    assert ready["pid"] == process.pid
    return Cluster(
        bootstrap=ready["bootstrap"],
        control=ready["control"],
        controller=ready.get("controller"),
        process=process,
    )


@contextmanager
def serving(
    log: Path,
    *options: str,
    brokers: int = 3,
    program: Sequence[str] = ("-m", "fencepost"),
    ulimit: str = "",
) -> Iterator[Cluster]:
    """As `serve`; in the end it must stop in order."""
    cluster = serve(log, *options, brokers=brokers, program=program, ulimit=ulimit)
    try:
        yield cluster
    finally:
        cluster.stop()


def given() -> Cluster | None:
    """The cluster of ``FENCEPOST_TEST_BOOTSTRAP``."""
    bootstrap = os.environ.get("FENCEPOST_TEST_BOOTSTRAP")
    return Cluster(bootstrap=bootstrap) if bootstrap else None


def configs(settings: Mapping[str, str]) -> Sequence[str]:
    """Broker configs as options of ``fencepost serve``."""
    return [part for key, value in settings.items() for part in ("--config", f"{key}={value}")]
