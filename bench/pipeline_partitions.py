"""``fencepost audit`` of many small partitions: four segments of a few kilobytes each.

A served fencepost writes one of them and has the directories of all; each of the others is then
given the files of the first. Two cores follow all rules on every record, and nothing may be found.
What counts is the whole job, after some that warm the JVM up.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import inside, process, servers
from bench import spark as sessions
from bench.pipeline_audit import audit
from fencepost.client.batches import NewRecord, encode_records
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from fencepost.storage.formats import file_names
from fencepost.storage.formats.checkpoints import decode_offsets, encode_offsets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC: Final = "small"
SEGMENTS: Final = 4
_BATCHES_A_SEGMENT: Final = 3
_BATCH_RECORDS: Final = 10
_RECORD_BYTES: Final = 100
_SEGMENT_MS: Final = 60_000
"""By the time of its records: a segment is closed when one comes that is so much newer."""
TURNS: Final = 2
"""The best of them counts, after one that warms up."""


def measure(kind: servers.Kind, partitions: int) -> Mapping[str, float]:
    """Seconds of the job.

    :param partitions: How many.
    :raises bench.tools.Missing: Without Spark.
    """
    with servers.launching() as launch, sessions.session("local[2]") as spark:
        folder = write(kind, launch, partitions)
        seconds = [_seconds(spark, folder) for _ in range(1 + TURNS)]
    return {"pipeline_audit_partitions": min(seconds[1:])}


def write(kind: servers.Kind, launch: servers.Launch, partitions: int) -> Path:
    """A data directory of so many partitions, at rest."""
    assert isinstance(kind, servers.Fencepost), "it has no peers"
    configs = (f"log.roll.ms={_SEGMENT_MS}", "auto.create.topics.enable=false")
    kind = dataclasses.replace(kind, durable=True, brokers=1, configs=configs)
    with servers.started(kind, launch) as server:
        server.create((TOPIC,), partitions)
        with server.connect_to_leader(TOPIC, 0) as connection:
            for age in range(SEGMENTS, 0, -1):
                for _ in range(_BATCHES_A_SEGMENT):
                    connection.ask(_request(age * 2 * _SEGMENT_MS))
        process.wait_until_idle(server.pid)
    folder = launch.directory / "data"
    log_dir = folder / "broker-1"
    _multiply(log_dir, partitions)
    return folder


def _multiply(log_dir: Path, partitions: int) -> None:
    """Give all partitions the files of the first, and what the checkpoints say of it."""
    first = log_dir / f"{TOPIC}-0"
    for number in range(1, partitions):
        other = log_dir / f"{TOPIC}-{number}"
        for path in other.iterdir():
            path.unlink()
        for path in first.iterdir():
            os.link(path, other / path.name)
    for name in (file_names.HIGH_WATERMARKS, file_names.RECOVERY_POINTS, file_names.LOG_STARTS):
        file = log_dir / name
        if file.exists():
            offsets = dict(decode_offsets(file.read_bytes()))
            if (TOPIC, 0) in offsets:
                own = offsets[TOPIC, 0]
                offsets |= {(TOPIC, number): own for number in range(partitions)}
                file.write_bytes(encode_offsets(offsets))


def _request(age_ms: int) -> bytes:
    """Brings a batch of records that are so old, with acks=1."""
    time_ms = int(time.time() * 1e3) - age_ms
    values = (os.urandom(_RECORD_BYTES) for _ in range(_BATCH_RECORDS))
    batch = bytes(encode_records([NewRecord(timestamp=time_ms, value=value) for value in values]))
    data = TopicProduceData(
        name=TOPIC, partition_data=(PartitionProduceData(index=0, records=batch),)
    )
    return inside.frame("produce", 9, ProduceRequest(acks=1, timeout_ms=30_000, topic_data=(data,)))


def _seconds(spark: SparkSession, folder: Path) -> float:
    begin = time.perf_counter()
    audit(spark, folder, "records")
    return time.perf_counter() - begin
