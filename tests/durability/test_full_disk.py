"""A full disk: the partition is KAFKA_STORAGE_ERROR, the rest is served, nothing is lost."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, TopicPartition

from tests.durability.conftest import Serve
from tests.durability.test_restarts import ask, partition
from tests.harness import require
from tests.harness.confluent import consumer, delivered, read, send

MIB = 1 << 20


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    directory = tmp_path / "small"
    directory.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(directory)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        require.unavailable(f"a small tmpfs can't be mounted here: {mounted.stderr.decode()}")
    yield directory
    subprocess.run(["umount", "-l", str(directory)], check=True)


def test_a_full_disk_fails_one_partition_and_keeps_what_was_acknowledged(
    serve: Serve, small: Path
) -> None:
    served = serve("--topic", "t", "--topic", "other", brokers=1, directory=small)
    served.start()
    cluster = served.cluster
    delivered(send(cluster, "other", [b"before"]))
    acknowledged = 0
    for _ in range(100):
        (answer,) = send(cluster, "t", [b"x" * (MIB // 2)], message_timeout_ms=2000, retries=0)
        error = answer.error()
        if error is not None:
            assert error.code() in (
                KafkaError.KAFKA_STORAGE_ERROR,
                KafkaError._MSG_TIMED_OUT,
            )
            break
        acknowledged += 1
    assert 8 < acknowledged < 16
    state = partition(served, "t")
    assert (state["leader"], state["offline"]) == (-1, [1])
    (failed,) = served.logged("replica_failed")
    assert "No space left" in failed["error"]

    with consumer(cluster) as reader:
        reader.assign([TopicPartition("other", 0, 0)])
        assert [message.value() for message in read(reader, 1)] == [b"before"]

    segments = sorted(small.glob("broker-1/t-0/*.log"))
    subprocess.run(["mount", "-o", "remount,size=32m", str(small)], check=True)
    ask(served, "/v1/brokers/1/stop", {})
    ask(served, "/v1/brokers/1/start", {})
    assert segments
    assert partition(served, "t")["leader"] == 1
    with consumer(cluster) as reader:
        reader.assign([TopicPartition("t", 0, 0)])
        assert len(read(reader, acknowledged)) == acknowledged
    delivered(send(cluster, "t", [b"after"]))
