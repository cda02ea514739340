"""Real clients at a topic whose beginning is only in the remote tier (KIP-405)."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Message
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.harness import batches
from tests.harness.confluent import delivered, read_partition, send
from tests.harness.java import story
from tests.harness.kafka_tools import kafka_tool
from tests.harness.require import tool
from tests.harness.run import run
from tests.harness.s3 import S3, serve_s3
from tests.harness.served_cluster import Cluster, configs, serve
from tests.harness.wait import wait_until

TOOLS: Final = "org.apache.kafka.tools"
RECORDS: Final = 600
SEGMENT_BYTES: Final = 40_000
SETTINGS: Final = {
    "remote.log.manager.task.interval.ms": "100",
    "log.retention.check.interval.ms": "100",
}
TIERED: Final = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": str(SEGMENT_BYTES),
    "retention.ms": "-1",
}
EARLIEST_LOCAL, LATEST_TIERED = -4, -5


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiered:
    """A cluster with a tier, and what of a topic moved there."""

    cluster: Cluster
    topic: str
    stored: bytes
    """The batches of the topic as they were before."""
    pending: int
    """The first offset that is not in the tier; those before it are nowhere else."""


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with serve_s3(tmp_path_factory.mktemp("s3") / "moto.log") as server:
        server.make_bucket("a-tier")
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tier") / "made by fencepost"


@pytest.fixture(scope="module")
def tiered(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tiered]:
    """Three brokers, their tier in a folder."""
    url = f"file://{folder}".replace(" ", "%20")
    yield from moved(url, tmp_path_factory.mktemp("tiered"))


@pytest.fixture(scope="module")
def in_bucket(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tiered]:
    yield from moved(s3.url("a-tier", "below/this"), tmp_path_factory.mktemp("tiered"))


@pytest.fixture(scope="module")
def in_memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tiered]:
    yield from moved("memory:", tmp_path_factory.mktemp("tiered"))


@pytest.fixture(params=["tiered", "in_bucket", "in_memory"])
def anywhere(request: pytest.FixtureRequest) -> Tiered:
    """The same, wherever the tier is."""
    found: Tiered = request.getfixturevalue(request.param)
    return found


def moved(url: str, place: Path) -> Iterator[Tiered]:
    cluster = serve(place / "fencepost.log", "--remote", url, *configs(SETTINGS))
    try:
        topic = cluster.create_topic("tiered", configs=TIERED)
        fill(cluster, topic)
        wait_until(
            f"{topic} is in the tier",
            lambda: cluster.end_offset(topic, timestamp=LATEST_TIERED) > 500,
        )
        stored = whole(cluster, topic)
        keep_little(cluster, topic)
        pending = cluster.end_offset(topic, timestamp=LATEST_TIERED) + 1
        wait_until(
            f"{topic} is in the tier alone",
            lambda: cluster.end_offset(topic, timestamp=EARLIEST_LOCAL) == pending,
        )
        yield Tiered(cluster=cluster, topic=topic, stored=stored, pending=pending)
    finally:
        cluster.stop()


def fill(cluster: Cluster, topic: str) -> None:
    """Records with keys and headers; compressed in every way, a batch each ten or so."""
    for number, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        share = range(number * RECORDS // 5, (number + 1) * RECORDS // 5)
        values = [value(each) for each in share]
        answers = send(cluster, topic, values, compression_type=codec, batch_num_messages=10)
        assert delivered(answers) == list(share)


def value(number: int) -> bytes:
    """What does not compress to nothing."""
    return b"%d %s" % (number, bytes((number * n * n + n) % 251 for n in range(600)))


def keep_little(cluster: Cluster, topic: str) -> None:
    """Let all be deleted here that is in the tier."""
    entry = ConfigEntry("local.retention.bytes", "1", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


def whole(cluster: Cluster, topic: str) -> bytes:
    """The bytes of all batches, as a consumer is given them."""
    data, at = b"", 0
    while at < RECORDS:
        found, left = batches.parse(part := cluster.stored(topic, offset=at))
        data += part[: len(part) - left]
        at = found[-1].last_offset + 1
    return data


# -- the same bytes -------------------------------------------------------------------------------


def test_all_but_the_last_segment_is_only_in_the_tier(anywhere: Tiered) -> None:
    assert 500 < anywhere.pending < RECORDS
    assert len(anywhere.stored) > 5 * SEGMENT_BYTES


def test_the_bytes_are_the_same(anywhere: Tiered) -> None:
    assert whole(anywhere.cluster, anywhere.topic) == anywhere.stored


def test_librdkafka_reads_it_all(anywhere: Tiered) -> None:
    found = read_partition(anywhere.cluster, anywhere.topic, RECORDS)
    assert [each.offset() for each in found] == list(range(RECORDS))
    assert [each.value() for each in found] == list(map(value, range(RECORDS)))


def test_librdkafka_reads_from_the_middle(anywhere: Tiered) -> None:
    (found,) = read_partition(anywhere.cluster, anywhere.topic, 1, start=317)
    assert isinstance(found, Message)
    assert (found.offset(), found.value()) == (317, value(317))


def test_kcat_reads_it_all(anywhere: Tiered) -> None:
    command = [tool("kcat"), "-b", anywhere.cluster.bootstrap, "-C", "-q", "-e"]
    command += ["-t", anywhere.topic, "-o", "beginning", "-f", "%o %S\\n"]
    want = [f"{number} {len(value(number))}" for number in range(RECORDS)]
    assert run(command, timeout_s=60).lines == want


def test_java_reads_it_all(tiered: Tiered) -> None:
    digest = hashlib.sha256()
    for each in read_partition(tiered.cluster, tiered.topic, RECORDS):
        at, (_, timestamp) = each.offset(), each.timestamp()
        digest.update(struct.pack(">qq", at, timestamp) + value(at or 0))
    told = story("DigestStory", tiered.cluster.bootstrap, tiered.topic).lines
    assert told == [f"records={RECORDS}", f"sha256={digest.hexdigest()}"]


# -- offsets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "time",
    ["-1", "-2", "-3", "earliest-local", "latest-tiered", "earliest-pending-upload"],
)
def test_get_offset_shell(tiered: Tiered, time: str) -> None:
    want = {
        "-1": RECORDS,
        "-2": 0,
        "-3": latest(tiered),
        "earliest-local": tiered.pending,
        "latest-tiered": tiered.pending - 1,
        "earliest-pending-upload": tiered.pending,
    }
    options = ["--bootstrap-server", tiered.cluster.bootstrap, "--topic", tiered.topic]
    lines = kafka_tool(f"{TOOLS}.GetOffsetShell", *options, "--time", time).lines
    assert lines == [f"{tiered.topic}:0:{want[time]}"]


def latest(tiered: Tiered) -> int:
    """The first offset with the highest timestamp; producers' times rise, though not each."""
    found = read_partition(tiered.cluster, tiered.topic, RECORDS)
    times = [each.timestamp()[1] for each in found]
    return times.index(max(times))


def test_java_asks_for_a_time_that_is_only_in_the_tier(tiered: Tiered) -> None:
    found, _ = batches.parse(tiered.stored)
    batch = found[len(found) // 3]
    first = next(each for each in found if each.max_timestamp >= batch.base_timestamp)
    options = ["--bootstrap-server", tiered.cluster.bootstrap, "--topic", tiered.topic]
    time = str(batch.base_timestamp)
    (line,) = kafka_tool(f"{TOOLS}.GetOffsetShell", *options, "--time", time).lines
    topic, partition, at = line.split(":")
    assert (topic, partition) == (tiered.topic, "0")
    assert first.base_offset <= int(at) <= first.last_offset < tiered.pending


# -- the tier itself ------------------------------------------------------------------------------


def test_the_folder_holds_what_a_log_directory_does(tiered: Tiered, folder: Path) -> None:
    names = sorted(path.name for path in folder.rglob("*") if path.is_file())
    logs = [path for path in folder.rglob("*.log") if tiered.topic in str(path)]
    assert {name.partition(".")[2] for name in names} == {
        "log",
        "index",
        "timeindex",
        "snapshot",
        "leader-epoch-checkpoint",
        "json",
    }
    data = b"".join(path.read_bytes() for path in sorted(logs, key=lambda each: each.name))
    assert tiered.stored.startswith(data)
    assert len(data) > 4 * SEGMENT_BYTES


def test_a_deleted_topic_leaves_nothing_in_the_tier(tiered: Tiered, folder: Path) -> None:
    cluster = tiered.cluster
    topic = cluster.create_topic("gone", configs=TIERED)
    fill(cluster, topic)
    wait_until(
        f"{topic} is in the tier", lambda: cluster.end_offset(topic, timestamp=LATEST_TIERED) > 500
    )
    assert list(folder.glob(f"{topic}-*/**/*.log"))
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.delete_topics([topic])[topic].result()
    wait_until(f"{topic} is gone", lambda: not _files(folder, topic))


def _files(folder: Path, topic: str) -> list[str]:
    """What the tier has of a topic; a folder that is deleted meanwhile has none."""
    walked = os.walk(folder)
    return [name for path, _, names in walked if f"/{topic}-" in path for name in names]
