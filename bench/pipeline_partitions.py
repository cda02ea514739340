"""``fencepost audit`` of many small partitions: four segments of a few kilobytes each.

A served fencepost writes one of them and has the directories of all; each of the others is then
given the files of the first. Two cores follow all rules on every record, and nothing may be found.
What counts is the whole job, after some that warm the JVM up: how long it takes, and the time of
the driver, the JVM and the Python workers on processors.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
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

    from fencepost.pipeline.audit.job import AuditResult

TOPIC: Final = "small-0"
"""The one whose first partition is written."""
TOPIC_PARTITIONS: Final = 1_000
"""Of each topic: a request may create some thousands."""
SEGMENTS: Final = 4
_BATCHES_A_SEGMENT: Final = 3
_BATCH_RECORDS: Final = 10
_RECORD_BYTES: Final = 100
_SEGMENT_MS: Final = 60_000
"""By the time of its records: a segment is closed when one comes that is so much newer."""
TURNS: Final = 2
"""The best of them counts, after one that warms up."""


def measure(kind: servers.Kind, partitions: int) -> Mapping[str, float]:
    """Seconds of the job, milliseconds of a core for a partition, and bytes of its summary.

    :param partitions: How many.
    :raises bench.tools.Missing: Without Spark.
    """
    from fencepost.pipeline.audit.partition_summary import to_json

    with servers.launching() as launch, sessions.session("local[2]") as spark:
        folder = write(kind, launch, partitions)
        runs = [_run(spark, folder) for _ in range(1 + TURNS)]
    summaries = runs[0].result.summaries
    return {
        "pipeline_audit_partitions": min(run.seconds for run in runs[1:]),
        "pipeline_audit_partition_core": min(run.core_s for run in runs[1:]) * 1e3 / partitions,
        "pipeline_audit_summary": sum(len(to_json(each)) for each in summaries) / len(summaries),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One job."""

    seconds: float
    core_s: float
    result: AuditResult


def write(kind: servers.Kind, launch: servers.Launch, partitions: int) -> Path:
    """A data directory of so many partitions, at rest."""
    assert isinstance(kind, servers.Fencepost), "it has no peers"
    configs = (f"log.roll.ms={_SEGMENT_MS}", "auto.create.topics.enable=false")
    kind = dataclasses.replace(kind, durable=True, brokers=1, configs=configs)
    with servers.started(kind, launch) as server:
        for number, first in enumerate(range(0, partitions, TOPIC_PARTITIONS)):
            server.create((f"small-{number}",), min(partitions - first, TOPIC_PARTITIONS))
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
    keys = [
        (f"small-{number // TOPIC_PARTITIONS}", number % TOPIC_PARTITIONS)
        for number in range(partitions)
    ]
    for topic, index in keys[1:]:
        other = log_dir / f"{topic}-{index}"
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
                offsets |= dict.fromkeys(keys, own)
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


def _run(spark: SparkSession, folder: Path) -> _Run:
    begin, spent = time.perf_counter(), _core_seconds()
    result = audit(spark, folder, "records")
    return _Run(seconds=time.perf_counter() - begin, core_s=_core_seconds() - spent, result=result)


def _core_seconds() -> float:
    """What this process and those below it have used, which outlive the job."""
    return time.process_time() + sum(map(process.cpu_seconds, process.descendants("")))
