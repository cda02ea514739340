"""Queries that are killed in the middle of a batch, and started again."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from fencepost.pipeline.stream.job import start_count_query
from fencepost.pipeline.stream.options import CountOptions, SourceOptions, Trigger, TriggerOptions
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import iter_headers
from fencepost.verbs.methods import Verbs
from fencepost.verbs.remote import Remote
from tests.harness.served_cluster import Cluster, serving
from tests.harness.wait import wait_until
from tests.pipeline.stream.ground import WAIT_S
from tests.pipeline.stream.jobs import PATIENCE_S, job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE: Final = "orders"
TARGET: Final = "counts"
PARTITIONS: Final = 2
KEYS: Final = ("k0", "k3", "k4", "k7")
"""Kafka's partitioner has the first of them alone in partition 1."""
KILLS: Final = int(os.environ.get("FENCEPOST_STREAM_KILLS", "1"))
"""How often the job that writes files is killed."""
DROP: Final = {"drop": True}
"""Carried out, and never answered."""
NOT_YET: Final = {"error": "OFFSET_NOT_AVAILABLE"}
"""Refused, so that it is asked for again."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Cluster]:
    with serving(tmp_path / "fencepost.log", brokers=2) as cluster:
        yield cluster


@pytest.fixture
def verbs(served: Cluster) -> Iterator[Verbs]:
    assert served.control is not None
    with closing(Remote(served.control)) as remote:
        made = Verbs(remote)
        for topic in (SOURCE, TARGET):
            # Each has a leader of its own, and requests are of one partition.
            made.create_topic(topic, assignments=[[1], [2]])
        yield made


def fill(cluster: Cluster, start: int, end: int) -> None:
    """Send records to both partitions in turns, the end exclusive; the keys go around."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for n in range(start, end):
        key = KEYS[n % len(KEYS)]
        producer.produce(SOURCE, b"%d" % n, key.encode(), partition=n % PARTITIONS)
    assert producer.flush(30) == 0


@pytest.mark.timeout(600 + 120 * KILLS)
def test_every_record_is_in_the_files_once(
    served: Cluster, verbs: Verbs, spark_with_kafka: SparkSession, tmp_path: Path
) -> None:
    files = tmp_path / "files"
    command = ("to-parquet", SOURCE, str(files), "--bootstrap", served.bootstrap)
    fill(served, 0, 20)
    left: list[Path] = []
    for number in range(KILLS):
        with job(tmp_path / f"killed-{number}.log", *command) as killed:
            batch = killed.batch()
            assert (batch["batch"], batch["records"]) == (number, 20)
            # One task of the next batch will write its file, and the other wait for its records.
            verbs.add_fault("Fetch", topic=SOURCE, partition=1, count=None, action=DROP)
            # All of them must be in that batch: until then no broker answers how many there are.
            hidden = verbs.add_fault("ListOffsets", topic=SOURCE, count=None, action=NOT_YET)
            fill(served, 20 * number + 20, 20 * number + 40)
            verbs.remove_fault(hidden.id)
            left = wait_for(number + 1, files)
            killed.kill()
        assert not (files / "_checkpoint" / "commits" / f"{number + 1}").exists()
        verbs.remove_faults()
    with job(tmp_path / "again.log", *command) as again:
        batch = again.batch()
        assert (batch["batch"], batch["records"]) == (KILLS, 20)
        fill(served, 20 * KILLS + 20, 20 * KILLS + 40)
        again.batches(20)
        again.process.stop()
    values = [int(bytes(row.value)) for row in spark_with_kafka.read.parquet(str(files)).collect()]
    assert sorted(values) == list(range(20 * KILLS + 40))
    # What was written in vain is still there, for readers that ignore the list of finished batches.
    assert set(left) <= set(orphans(files))
    assert [pq.read_metadata(each).num_rows for each in left] == [10] * KILLS


def wait_for(count: int, files: Path) -> list[Path]:
    """So many files that were written in vain."""

    def enough() -> list[Path]:
        found = orphans(files)
        return found if len(found) >= count else []

    return wait_until(f"{count} orphaned files", enough, PATIENCE_S)


def orphans(files: Path) -> list[Path]:
    """Files that are whole, and of no batch that is done."""
    lines = [line for log in (files / "_spark_metadata").glob("[0-9]*") for line in text(log)]
    known = {Path(json.loads(line)["path"]).name for line in lines if line.startswith("{")}
    return [each for each in files.glob("part-*") if each.name not in known and is_whole(each)]


def text(path: Path) -> list[str]:
    return path.read_text().splitlines()


def is_whole(path: Path) -> bool:
    data = path.read_bytes()
    return len(data) > 8 and data.endswith(b"PAR1")


@pytest.mark.timeout(600)
def test_counts_are_right_and_some_are_told_twice(
    served: Cluster, verbs: Verbs, spark_with_kafka: SparkSession, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    command = ("to-topic", SOURCE, TARGET, "--bootstrap", served.bootstrap)
    # While a producer sends a batch again it sends no other to that partition.
    patient = ("--option", "kafka.request.timeout.ms=110000")
    # What is appended to one partition of the target is acknowledged, to the other it is not: one
    # key's count, as nothing is read from a connection after a request whose answer is dropped.
    verbs.add_fault("Produce", topic=TARGET, partition=1, count=None, action=DROP)
    fill(served, 0, 40)
    # All tasks of the batch at a time: each that sends to either partition may wait for the other,
    # as they share a producer.
    tasks = 2 * (os.cpu_count() or 1)
    checkpointed = (*command, *patient, "--checkpoint", str(checkpoint))
    with job(tmp_path / "killed.log", *checkpointed, tasks=tasks) as killed:
        wait_until("all is appended", lambda: len(told(served)) == len(KEYS), PATIENCE_S)
        killed.kill()
    assert not (checkpoint / "commits" / "0").exists()
    verbs.remove_faults()
    source = SourceOptions(bootstrap=served.bootstrap, topics=(SOURCE,))
    pace = TriggerOptions(checkpoint=str(checkpoint), trigger=Trigger.AVAILABLE_NOW)
    query = start_count_query(spark_with_kafka, source, pace, TARGET, CountOptions())
    assert query.awaitTermination(WAIT_S)
    found = told(served)
    assert dict(found) == dict.fromkeys(KEYS, 40 // len(KEYS))
    assert Counter(found) == dict.fromkeys(found, 2)


def told(cluster: Cluster) -> list[tuple[str, int]]:
    """The records of the target as keys and counts."""
    found = []
    for partition in range(PARTITIONS):
        data = cluster.stored(TARGET, partition) if cluster.end_offset(TARGET, partition) else b""
        for record in (each for at, _ in iter_headers(data) for each in iter_records(data, at)):
            count = json.loads(bytes(record.value or b""))["count"]
            found.append((bytes(record.key or b"").decode(), count))
    return found
