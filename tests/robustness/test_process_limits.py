"""A server whose process may open few files, or take little memory, under clients that want more.

``FENCEPOST_TEST_LIMITS=full`` is the whole proof: 2,000 connections and 1,000 partitions in files
at 256 descriptors, and 5,000 idle connections.
"""

from __future__ import annotations

import os
import re
import resource
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.harness.batches import build, produce_body
from tests.harness.control_client import TIMEOUT_S, Control
from tests.harness.process import NotReadyError
from tests.harness.served_cluster import Cluster, serve, serving
from tests.harness.wait import wait_until
from tests.harness.wire import Body, Connection
from tests.robustness.conftest import is_complaint

FULL: Final = os.environ.get("FENCEPOST_TEST_LIMITS") == "full"
DESCRIPTORS: Final = 256
ATTEMPTS: Final = 2_000 if FULL else 400
PARTITIONS: Final = 1_000 if FULL else 220
IDLE: Final = 5_000 if FULL else 300
IDLE_BYTES: Final = 20 << 10
"""What one connection that is idle may take: of 5,000, less than 100 MiB."""
POLICY_VIOLATION: Final = 44
KAFKA_STORAGE_ERROR: Final = 56
MORE: Final = 500_000_000 if FULL else 100_000_000
"""Bytes that are produced after the first refusal."""
FIVE_BYTES: Final = struct.pack(">ib", 100 << 20, 0)
"""The beginning of a request that claims to be as large as one may be."""
NOW_MS: Final = int(time.time() * 1000)


@contextmanager
def descriptors(count: int) -> Iterator[None]:
    """Let this process open so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        pytest.skip(f"this machine allows {hard} descriptors, and the test needs {count}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def connections(cluster: Cluster, count: int, first: bytes = b"") -> Iterator[list[socket.socket]]:
    """Connections that stay open, of which the server may have closed some.

    :param first: What each of them sends.
    """
    with descriptors(count + 100), ExitStack() as stack:
        opened = []
        for _ in range(count):
            sock = stack.enter_context(socket.create_connection(cluster.addresses[0], TIMEOUT_S))
            opened.append(sock)
            with suppress(OSError):
                sock.sendall(first)
        yield opened


def closed(socks: Sequence[socket.socket]) -> int:
    """How many of them the server has closed."""
    count = 0
    for sock in socks:
        sock.setblocking(False)
        try:
            count += sock.recv(1) == b""
        except BlockingIOError:
            pass
        except OSError:
            count += 1
    return count


@contextmanager
def control_of(cluster: Cluster) -> Iterator[Control]:
    assert cluster.control is not None
    control = Control(cluster.control)
    try:
        yield control
    finally:
        control.close()


def complaints(log: Path) -> list[str]:
    return [line[:2000] for line in log.read_text().splitlines() if is_complaint(line)]


def produce(connection: Connection, topic: str, value: bytes, partition: int = 0) -> Body:
    body = produce_body(topic, build([(NOW_MS, None, value)]), partition=partition)
    answer = connection.call("Produce", 9, body)
    entry: Body = answer["Responses"][0]["PartitionResponses"][0]
    return entry


def is_produced(connection: Connection, topic: str, partition: int) -> bool:
    return bool(produce(connection, topic, b"w", partition)["ErrorCode"] == 0)


def resident(cluster: Cluster) -> int:
    assert cluster.process is not None
    return cluster.process.resident_bytes()


def served(log: Path, topic: str, cluster: Cluster, partitions: int) -> None:
    """Every partition is online, takes a record and gives it back; nothing broke meanwhile."""
    entry = cluster.metadata(topic)
    assert not [p for p in entry["Partitions"] if p["LeaderId"] < 0 or p["OfflineReplicas"]]
    with cluster.connect() as connection:
        for index in range(partitions):
            assert produce(connection, topic, b"v", index)["ErrorCode"] == 0
    assert all(cluster.stored(topic, index) for index in range(0, partitions, 50))
    assert complaints(log) == []


# -- descriptors --------------------------------------------------------------------------------


def test_more_connections_and_partitions_than_descriptors(tmp_path: Path) -> None:
    log, options = tmp_path / "log", ["--data-dir", str(tmp_path / "data")]
    with serving(log, *options, brokers=1, ulimit=f"-n {DESCRIPTORS}") as cluster:
        topic = cluster.create_topic(partitions=PARTITIONS, replication_factor=1)
        with cluster.connect() as producer, connections(cluster, ATTEMPTS) as attempts:
            wait_until("most are closed", lambda: closed(attempts) > ATTEMPTS - DESCRIPTORS)
            for index in range(PARTITIONS):
                assert produce(producer, topic, b"v", index)["ErrorCode"] == 0
            with control_of(cluster) as control:
                assert control.partition(topic)["leader"] == 1
            held = ATTEMPTS - closed(attempts)
            assert DESCRIPTORS / 3 < held < DESCRIPTORS
        wait_until("there is room again", lambda: is_admitted(cluster))
        served(log, topic, cluster, PARTITIONS)
    assert "connections_refused" in log.read_text()


def is_admitted(cluster: Cluster) -> bool:
    try:
        with cluster.connect() as connection:
            connection.call("ApiVersions", 0, {})
    except (OSError, EOFError):
        return False
    return True


def test_descriptors_that_are_used_up_from_the_first_moment_on(tmp_path: Path) -> None:
    log, options = tmp_path / "log", ["--data-dir", str(tmp_path / "data")]
    with serving(log, *options, brokers=1, ulimit=f"-n {DESCRIPTORS}") as cluster:
        with (
            cluster.connect() as client,
            connections(cluster, ATTEMPTS),
            control_of(cluster) as control,
        ):
            created: Body = {
                "Name": "t",
                "NumPartitions": 50,
                "ReplicationFactor": 1,
                "Configs": [],
            }
            # Modules are imported for these requests, and the control API with all that it needs.
            client.call("CreateTopics", 7, {"Topics": [created], "timeoutMs": 20_000})
            assert produce(client, "t", b"v", 49)["ErrorCode"] == 0
            assert control.partition("t")["leader"] == 1
        wait_until("there is room again", lambda: is_admitted(cluster))
        served(log, "t", cluster, 50)


def test_partitions_that_lacked_descriptors_come_back(tmp_path: Path) -> None:
    log, options = tmp_path / "log", ["--data-dir", str(tmp_path / "data")]
    with serving(log, *options, brokers=1) as cluster, cluster.connect() as client:
        assert cluster.process is not None
        pid, topic = cluster.process.pid, cluster.create_topic(replication_factor=1)
        assert produce(client, topic, b"v")["ErrorCode"] == 0
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        # Lower than could be known at the start: nothing can be opened at all.
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (8, hard))
        try:
            created: Body = {"Name": "new", "NumPartitions": 3, "ReplicationFactor": 1}
            client.call(
                "CreateTopics", 7, {"Topics": [{**created, "Configs": []}], "timeoutMs": 20_000}
            )
            assert produce(client, topic, b"w")["ErrorCode"] == 0
            assert produce(client, "new", b"v", 2)["ErrorCode"] == KAFKA_STORAGE_ERROR
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        for index in range(3):
            wait_until(f"partition {index} is back", partial(is_produced, client, "new", index))


def test_too_few_descriptors_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match=r"may open 48 files and connections.*ulimit -n"):
        serve(tmp_path / "log", brokers=1, ulimit="-n 48")


# -- memory -------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [b"", FIVE_BYTES] if FULL else [FIVE_BYTES])
def test_an_idle_connection_takes_little(tmp_path: Path, first: bytes) -> None:
    with serving(tmp_path / "log", brokers=1) as cluster, control_of(cluster) as control:
        control.reset()  # everything is imported
        with connections(cluster, 50, first) as warm:
            wait_until("they are there", lambda: open_connections(cluster) >= len(warm))
            before = resident(cluster)
            with connections(cluster, IDLE, first) as socks:
                wait_until("all are there", lambda: open_connections(cluster) >= len(socks))
                assert closed(socks) == 0
                assert resident(cluster) - before < IDLE * IDLE_BYTES


def open_connections(cluster: Cluster) -> int:
    """How many connections of clients there are, by the metrics."""
    text = httpx.get(f"{cluster.control}/metrics", trust_env=False, timeout=TIMEOUT_S).text
    found = re.search(r'^fencepost_connections{broker="1"} (.*)$', text, re.MULTILINE)
    assert found is not None
    return int(float(found[1]))


PROGRAM: Final = """
from pathlib import Path
import sys
from fencepost.broker.server import resources, run
from fencepost.cli import main
run.available_memory = lambda: resources.available_memory(Path({root!r}), Path({own!r}))
sys.exit(main(sys.argv[1:]))
"""


def cgroup(tmp_path: Path, limit: int) -> tuple[str, str]:
    """A program of Python that serves in a control group of this limit."""
    group = tmp_path / "cgroup" / "user" / "tests"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("max\n")
    (group.parent / "memory.max").write_text(f"{limit}\n")
    own = tmp_path / "own"
    own.write_text("0::/user/tests\n")
    return "-c", PROGRAM.format(root=str(tmp_path / "cgroup"), own=str(own))


@pytest.mark.parametrize(
    ("limited_by", "size"),
    [
        ("address space", 1_000_000),
        ("control group", 100_000),
        *([(by, 10_000) for by in ("address space", "control group")] if FULL else []),
    ],
)
def test_a_server_that_is_produced_into_without_end_goes_on(
    tmp_path: Path, limited_by: str, size: int
) -> None:
    log, limit = tmp_path / "log", 384 << 20
    program, ulimit = ("-m", "fencepost"), ""
    if limited_by == "address space":
        limit = 640 << 20
        ulimit = f"-v {limit >> 10}"
    else:
        program = cgroup(tmp_path, limit)
    with serving(log, brokers=3, program=program, ulimit=ulimit) as cluster:
        topic = cluster.create_topic(replication_factor=3)
        with cluster.connect(cluster.leader(topic)) as connection:
            produced = refused = 0
            while refused < MORE and produced < 2 * limit:
                entry = produce(connection, topic, os.urandom(size))
                if entry["ErrorCode"] == 0:
                    produced += size
                    continue
                assert entry["ErrorCode"] == POLICY_VIOLATION
                assert "--max-memory" in entry["ErrorMessage"]
                refused += max(size, 1_000_000)
        assert limit / 8 < produced < limit / 2
        assert resident(cluster) < limit
        assert len(cluster.stored(topic)) > 0
        with control_of(cluster) as control:
            assert control.partition(topic)["leader"] > 0
            control.reset()
        topic = cluster.create_topic(replication_factor=3)
        cluster.append(topic, (NOW_MS, None, b"room again"))
    assert complaints(log) == []
    assert log.read_text().count("memory_full") == 1
