"""Files into a topic by Spark: partitions, order, columns, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kafka.partitioner.default import murmur2

from fencepost.client import Client, FetchedRecord, NewRecord, Partition, encode_records, produce
from fencepost.pipeline.load import (
    Columns,
    Files,
    LoadInterrupted,
    LoadRefused,
    Target,
    job,
    load,
)
from fencepost.pipeline.load.job import UnreadableRows
from fencepost.pipeline.load.source_rows import NoSuchColumns, arrange
from fencepost.testing.cluster import Cluster
from tests.harness.log_reader import log_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC: Final = "loaded"
PARTITIONS: Final = 3
T = TypeVar("T")

pytestmark = [
    pytest.mark.fencepost(
        brokers=1,
        topics=[
            {
                "name": TOPIC,
                "partitions": PARTITIONS,
                "replication_factor": 1,
                "configs": {"check.expected.offsets": "true", "retention.ms": "-1"},
            },
            {"name": "plain", "partitions": 1, "replication_factor": 1},
        ],
    ),
    pytest.mark.timeout(600),
]


def logs(cluster: Cluster) -> list[list[FetchedRecord]]:
    """The records of all partitions."""

    async def read() -> list[list[FetchedRecord]]:
        async with Client(cluster.bootstrap) as client:
            return [await log_of(client, TOPIC, index) for index in range(PARTITIONS)]

    return asyncio.run(read())


def append(cluster: Cluster, index: int, at: int, *values: bytes) -> None:
    """Another writer appends."""

    async def send() -> None:
        async with Client(cluster.bootstrap) as client:
            found = [NewRecord(value=value, timestamp=1) for value in values]
            leader = await client.leader(TOPIC, index)
            partition = Partition(topic=TOPIC, index=index)
            done = await produce(leader, partition, encode_records(found, base_offset=at))
            assert done is not None
            assert done.error == 0

    asyncio.run(send())


def by_key(keys: Sequence[str]) -> list[list[bytes]]:
    """The keys of each partition, as Kafka's producers place them, in their order."""
    placed: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    for key in keys:
        placed[(murmur2(key.encode()) & 0x7FFFFFFF) % PARTITIONS].append(key.encode())
    return placed


def target(cluster: Cluster, topic: str = TOPIC) -> Target:
    return Target(bootstrap=cluster.bootstrap, topic=topic, patience_s=20)


def with_settings(spark: SparkSession, settings: dict[str, str], act: Callable[[], T]) -> T:
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        return act()
    finally:
        for name in settings:
            spark.conf.unset(name)


# -- formats ------------------------------------------------------------------------------------


def write_parquet(folder: Path, files: int, rows: int) -> list[str]:
    """Files whose names ask for care; the keys in their order."""
    keys = [f"key-{number}" for number in range(files * rows)]
    for file in range(files):
        of_file = keys[file * rows : (file + 1) * rows]
        table = pa.table({"id": of_file, "value": [f"value of {key}".encode() for key in of_file]})
        path = folder / "day=1 ü" / f"part {file} %20.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(table, path, row_group_size=70)
    return keys


def test_the_order_does_not_depend_on_how_files_are_split(
    fencepost: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    """The second time, Spark reads other parts, in another order, and a row at a time."""
    keys = write_parquet(tmp_path, files=3, rows=400)
    source = Files(paths=(str(tmp_path),), format="parquet")

    def once() -> tuple[int, int]:
        done = load(spark, source, target(fencepost), columns=Columns(key="id"))
        return done.found, done.appended

    assert once() == (0, 1_200)
    found = logs(fencepost)
    assert [[each.key for each in log] for log in found] == by_key(keys)
    assert found[0][0].value == b"value of " + (found[0][0].key or b"")
    modified = {path.stat().st_mtime_ns // 1_000_000 for path in tmp_path.rglob("*.parquet")}
    assert {each.timestamp for log in found for each in log} == modified
    others = {
        "spark.sql.files.maxPartitionBytes": "2000",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
    }
    assert with_settings(spark, others, once) == (1_200, 0)
    assert logs(fencepost) == found


@pytest.mark.parametrize("form", ["csv", "json"])
def test_text_keeps_the_order_of_its_lines(
    fencepost: Cluster, spark: SparkSession, tmp_path: Path, form: str
) -> None:
    keys = [f"k{number}" for number in range(900)]
    for file in range(2):
        lines = keys[450 * file : 450 * (file + 1)]
        text = (
            ["id,number", *(f"{key},{at}" for at, key in enumerate(lines))]
            if form == "csv"
            else [json.dumps({"id": key, "number": str(at)}) for at, key in enumerate(lines)]
        )
        (tmp_path / f"{file}.{form}").write_text("\n".join(text) + "\n")
    source = Files(paths=(str(tmp_path),), format=form)

    def once() -> tuple[int, int]:
        done = load(spark, source, target(fencepost), columns=Columns(key="id"))
        return done.found, done.appended

    assert with_settings(spark, {"spark.sql.files.maxPartitionBytes": "1500"}, once) == (0, 900)
    found = logs(fencepost)
    assert [[each.key for each in log] for log in found] == by_key(keys)
    first = json.loads(found[0][0].value or b"")
    assert first["id"].encode() == found[0][0].key
    assert set(first) == {"id", "number"}
    assert once() == (900, 0)


@pytest.mark.parametrize(
    ("name", "line", "options"),
    [
        ("rows.csv", '7,"text without an end\n', {}),
        ("rows.json", '{"id": 7,\n', {}),
        # It is not among those that the columns are learnt by.
        ("rows.json", '{"id": 7,\n', {"samplingRatio": "0.01"}),
    ],
)
def test_a_line_that_cannot_be_read_is_not_left_out(
    fencepost: Cluster,
    spark: SparkSession,
    tmp_path: Path,
    name: str,
    line: str,
    options: dict[str, str],
) -> None:
    good = "id,a,b\n1,2,3\n" if name.endswith("csv") else '{"id": 1}\n'
    (tmp_path / name).write_text(good + line)
    form = name.partition(".")[2]
    source = Files(paths=(str(tmp_path / name),), format=form, options=options)
    with pytest.raises(UnreadableRows, match=r"(?i)malformed") as refused:
        load(spark, source, target(fencepost))
    assert "\n" not in str(refused.value)
    assert logs(fencepost) == [[], [], []]


def test_files_that_are_of_another_format(
    fencepost: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    path.write_text("id,number\n1,2\n")
    with pytest.raises(UnreadableRows, match=r"^[^\n]*rows\.parquet[^\n]*$"):
        load(spark, Files(paths=(str(path),), format="parquet"), target(fencepost))
    separated = Files(paths=(str(path),), format="csv", options={"sep": ""})
    with pytest.raises(UnreadableRows, match=r"(?i)^[^\n]*delimiter[^\n]*$"):
        load(spark, separated, target(fencepost))


# -- columns ------------------------------------------------------------------------------------


def test_columns(fencepost: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    when = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    table = pa.table(
        {
            "n": pa.array([5, 6, 7]),
            "body": ["a", None, "c"],
            "at": pa.array([when, when, None], pa.timestamp("us", "UTC")),
            "tags": pa.array(
                [[("x", "1"), ("y", None)], [], None], pa.map_(pa.string(), pa.string())
            ),
            "p": pa.array([2, 1, 2], pa.int32()),
        }
    )
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path)
    source = Files(paths=(str(path),), format="parquet")
    columns = Columns(key="n", value="body", timestamp="at", headers="tags", partition="p")
    load(spark, source, target(fencepost), columns=columns)
    none, second, third = logs(fencepost)
    assert none == []
    ms = int(when.timestamp() * 1000)
    assert [(e.key, e.value, e.timestamp, e.headers) for e in second] == [(b"6", None, ms, ())]
    modified = path.stat().st_mtime_ns // 1_000_000
    assert [(e.key, e.value, e.timestamp, e.headers) for e in third] == [
        (b"5", b"a", ms, (("x", b"1"), ("y", None))),
        (b"7", b"c", modified, ()),
    ]


def test_what_cannot_be_taken_so(fencepost: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "rows.parquet")
    source = Files(paths=(str(tmp_path),), format="parquet")
    for columns in (Columns(key="b"), Columns(timestamp="a"), Columns(headers="a")):
        with pytest.raises(NoSuchColumns):
            load(spark, source, target(fencepost), columns=columns)
    nothing = Files(paths=(str(tmp_path / "none"),), format="parquet")
    with pytest.raises(UnreadableRows, match=r"(?i)path"):
        load(spark, nothing, target(fencepost))


def test_a_partition_that_is_no_number(
    fencepost: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    table = pa.table({"text": ["0", "east"], "large": [0, 1 << 40], "value": ["a", "b"]})
    pq.write_table(table, tmp_path / "rows.parquet")
    source = Files(paths=(str(tmp_path),), format="parquet")
    for name in ("text", "large"):
        with pytest.raises(LoadRefused, match=r"^a row says partition none; loaded has 3$"):
            load(spark, source, target(fencepost), columns=Columns(partition=name))


# -- where it begins, and how it ends -----------------------------------------------------------


def write_rows(path: Path, count: int) -> Files:
    pq.write_table(pa.table({"value": [f"row {at}".encode() for at in range(count)]}), path)
    return Files(paths=(str(path),), format="parquet")


def test_a_topic_with_records_needs_a_checkpoint(
    fencepost: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    append(fencepost, 1, 0, b"before", b"it")
    source = write_rows(tmp_path / "rows.parquet", 300)
    with pytest.raises(LoadRefused) as refused:
        load(spark, source, target(fencepost))
    assert str(refused.value) == "loaded-1 has something else at offset 0 than the source"
    kept = tmp_path / "kept"
    for topic in ("loaded-0", "loaded-2"):  # they are loaded all the same, from 0 on
        assert topic not in str(refused.value)
    done = load(spark, source, target(fencepost), checkpoint=kept)
    bases = [each.base for each in done.partitions]
    assert bases[1] == 2
    assert done.appended == 300
    again = load(spark, source, target(fencepost), checkpoint=kept)
    assert (again.found, again.appended) == (300, 0)
    assert [each.base for each in again.partitions] == bases
    other = Columns(value="value", key="value")
    with pytest.raises(LoadRefused, match="plan of a load with other columns"):
        load(spark, source, target(fencepost), columns=other, checkpoint=kept)


def test_topics_to_load_into(fencepost: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    source = write_rows(tmp_path / "rows.parquet", 3)
    with pytest.raises(LoadRefused, match=r"topic plain must have check\.expected\.offsets=true"):
        load(spark, source, target(fencepost, "plain"))
    with pytest.raises(LoadRefused, match="there is no topic nothing"):
        load(spark, source, target(fencepost, "nothing"))


def test_no_rows(fencepost: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    assert load(spark, write_rows(tmp_path / "rows.parquet", 0), target(fencepost)).rows == 0


def test_workers_that_die_too_often_interrupt_it(
    fencepost: Cluster, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dying(*arguments: Any) -> DataFrame:  # noqa: ANN401  # what `arrange` takes
        def die(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from rows
            os._exit(1)

        arranged = arrange(*arguments)
        return arranged.mapInArrow(die, arranged.schema)

    source = write_rows(tmp_path / "rows.parquet", 30)
    with monkeypatch.context() as patch:
        patch.setattr(job, "arrange", dying)
        with pytest.raises(LoadInterrupted, match=r"^[^\n]*worker exited unexpectedly[^\n]*$"):
            load(spark, source, target(fencepost))
    assert load(spark, source, target(fencepost)).rows == 30


def test_progress_is_told(fencepost: Cluster, spark: SparkSession, tmp_path: Path) -> None:
    told: list[str] = []
    fencepost.add_fault("Produce", topic=TOPIC, count=None, action={"delay": 1500})
    load(spark, write_rows(tmp_path / "r.parquet", 300), target(fencepost), tell=told.append)
    assert told
    assert all(" of 300 rows (" in line for line in told)
