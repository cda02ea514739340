"""``fencepost audit`` of a gigabyte that a served fencepost wrote: records of 1,024 random bytes.

They are in batches of 16, as a Java producer sends them, and in four partitions of one broker. Both
levels run in one Spark session of two cores, after some of each that warm it up; all rules are
followed, and nothing may be found. What each takes is the whole job, from the question to the
findings.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import inside, load, process, servers, wire
from bench import spark as sessions
from fencepost.client.batches import NewRecord, encode_records
from fencepost.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from fencepost.pipeline.audit.job import AuditResult

TOPIC: Final = "audited"
PARTITIONS: Final = 4
BATCH_RECORDS: Final = 16
TURNS: Final = 5
WARM_UPS: Final = 3
"""The JVM compiles what it has run often."""
_MASTER: Final = "local[2]"


def measure(kind: servers.Kind, records: int) -> Mapping[str, float]:
    """Megabytes a second of both levels, and of reading records into columns.

    :param records: How many.
    :raises bench.tools.Missing: Without Spark.
    """
    assert isinstance(kind, servers.Fencepost), "it has no peers"
    kind = dataclasses.replace(kind, durable=True, brokers=1)
    with servers.launching() as launch, sessions.session(_MASTER) as spark:
        kind.prepare(launch)
        with servers.started(kind, launch) as server:
            process.wait_until_idle(server.pid)
            written = write(server, records)
        folder = launch.directory / "data"
        megabytes = sum(log.stat().st_size for log in folder.glob("*/*/*.log")) / 1e6
        ways: dict[str, Callable[[], object]] = {
            "pipeline_audit_batches": lambda: audit(spark, folder, "batches"),
            "pipeline_audit_records": lambda: audit(spark, folder, "records"),
            "pipeline_read_records": lambda: read(spark, folder, written),
        }
        for _ in range(WARM_UPS):
            for way in ways.values():
                way()
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(TURNS):
            for name, way in ways.items():
                times[name].append(_seconds(way))
    return {name: megabytes / statistics.median(each) for name, each in times.items()}


def write(server: servers.Server, records: int) -> int:
    """Produce so many records or some more, evenly to all partitions; how many they were."""
    server.create((TOPIC,), PARTITIONS)
    request = _request()
    rounds = -(-records // (PARTITIONS * BATCH_RECORDS))
    with server.connect_to_leader(TOPIC, 0) as connection:
        for _ in range(rounds):
            connection.ask(request)
        for partition in range(PARTITIONS):
            end = wire.decode_list_offsets(
                connection.ask(wire.list_offsets_request(TOPIC, partition))
            )
            if end != rounds * BATCH_RECORDS:
                raise wire.BadAnswer(f"a partition ends at {end}, not {rounds * BATCH_RECORDS}")
    return rounds * BATCH_RECORDS * PARTITIONS


def audit(spark: SparkSession, folder: Path, level: str) -> AuditResult:
    """Follow all rules.

    :raises bench.wire.BadAnswer: When it finds something.
    """
    from fencepost.pipeline.audit.job import AuditOptions
    from fencepost.pipeline.audit.job import audit as run
    from fencepost.pipeline.datasource.schemas import Level

    findings = run(spark, AuditOptions(directory=str(folder), level=Level(level)))
    if findings.violation_count or findings.failures:
        raise wire.BadAnswer(
            f"the audit found {findings.violation_count} violations where there are none"
        )
    return findings


def read(spark: SparkSession, folder: Path, records: int) -> None:
    """Have every byte of every record in a column of a DataFrame.

    :raises bench.wire.BadAnswer: When some are missing.
    """
    rows = spark.read.format("fencepost").option("level", "records").load(str(folder))
    (found,) = rows.selectExpr("count(1) AS records", "sum(length(value)) AS bytes").collect()
    if (found.records, found.bytes) != (records, records * load.RECORD_BYTES):
        raise wire.BadAnswer(f"{found.records} of {records} records were read")


def _request() -> bytes:
    """Brings a batch for each partition, with acks=1."""
    data = TopicProduceData(
        name=TOPIC,
        partition_data=tuple(
            PartitionProduceData(index=partition, records=random_batch())
            for partition in range(PARTITIONS)
        ),
    )
    return inside.frame("produce", 9, ProduceRequest(acks=1, timeout_ms=30_000, topic_data=(data,)))


def random_batch() -> bytes:
    """As a producer sends it that is not idempotent."""
    now_ms = int(time.time() * 1e3)
    values = (os.urandom(load.RECORD_BYTES) for _ in range(BATCH_RECORDS))
    return bytes(encode_records([NewRecord(timestamp=now_ms, value=value) for value in values]))


def _seconds(way: Callable[[], object]) -> float:
    begin = time.perf_counter()
    way()
    return time.perf_counter() - begin
