"""The data source in Spark gives what a scan in one process gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from obstore.store import LocalStore

from fencepost.broker.server.remote_urls import open_remote
from fencepost.pipeline.datasource.log_directories import UnreadableSource
from fencepost.pipeline.datasource.schemas import BATCHES, RECORDS, Level, Place
from fencepost.pipeline.datasource.segment_scan import MIN_ROWS, Checks, scan_folder, scan_records
from fencepost.pipeline.datasource.segments import (
    SMALL_SEGMENTS_BYTES,
    SegmentFiles,
    list_segments,
    split_into_tasks,
)
from fencepost.pipeline.datasource.source import FencepostDataSource, Options, coalesce
from fencepost.pipeline.datasource.tier import Tier
from tests.harness.s3 import serve_s3
from tests.pipeline.datasource.leaving import Left
from tests.pipeline.datasource.segments import batch, some_batches, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORDER = [(name, "ascending") for name in ("topic", "partition", "place", "broker", "segment")]


def load(spark: SparkSession, left: Left, **options: str) -> DataFrame:
    reader = spark.read.format("fencepost").options(remote=left.remote, **options)
    return reader.load(str(left.folder))


def rows_of(table: pa.Table, *last: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.sort_by(
        [*ORDER, *((name, "ascending") for name in last)]
    ).to_pylist()
    return found


def test_batches(spark: SparkSession, left: Left) -> None:
    read = load(spark, left, checks="records")
    found = read.toArrow()
    assert found.schema.remove_metadata().equals(BATCHES)
    expected = scan_folder(left.folder, remote=left.remote, checks=Checks.RECORDS, beside=False)
    assert rows_of(found, "position") == rows_of(expected, "position")


def test_files_beside_the_segments(spark: SparkSession, left: Left) -> None:
    found = load(spark, left, beside="files").where("file IS NOT NULL").toArrow()
    expected = scan_folder(left.folder, remote=left.remote)
    expected = expected.filter(pc.is_valid(expected["file"]))
    assert found.num_rows
    assert rows_of(found, "file") == rows_of(expected, "file")


def test_records(spark: SparkSession, left: Left) -> None:
    found = load(spark, left, level="records", topics=left.topic).toArrow()
    tier = Tier.open(left.remote)
    expected = pa.Table.from_batches(
        [
            batch
            for files in list_segments(str(left.folder), tier, [left.topic])
            for batch in scan_records(files, tier)
        ],
        RECORDS,
    )
    assert rows_of(found, "offset") == rows_of(expected, "offset")


def test_a_tier_in_s3(spark: SparkSession, left: Left, tmp_path: Path) -> None:
    with serve_s3(tmp_path / "moto.log") as server:
        server.make_bucket("copied")
        url = server.url("copied", "a/prefix")
        bucket, folder = open_remote(url, {}), LocalStore(left.tier)
        for chunk in folder.list():
            for meta in chunk:
                bucket.put(meta["path"], folder.get(meta["path"]).bytes())
        read = spark.read.format("fencepost").option("remote", url).load()
        expected = scan_folder(None, remote=left.remote)
        assert rows_of(read.toArrow(), "position") == rows_of(expected, "position")


def test_faults_are_told(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "broker-1" / "t-0"
    written = write(folder, some_batches(), closed=False)
    written.change(written.log, written.position(3) + 70, b"\xff\xff\xff")
    rows = spark.read.format("fencepost").load(str(tmp_path)).where("problem IS NOT NULL")
    (row,) = rows.collect()
    assert (row.problem, row.position, row.broker) == ("crc", written.position(3), 1)


def test_no_row(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "broker-1" / "t-0", [], closed=False)
    assert spark.read.format("fencepost").load(str(tmp_path)).count() == 0
    assert (
        spark.read.format("fencepost").option("level", "records").load(str(tmp_path)).count() == 0
    )


def test_no_segment(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "broker-1" / "t-0").mkdir(parents=True)
    assert spark.read.format("fencepost").load(str(tmp_path)).count() == 0


def test_columns_of_some_rows(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "broker-1" / "t-0", [batch(0, 5)], closed=False)
    read = spark.read.format("fencepost").option("level", "RECORDS").load(str(tmp_path))
    rows = read.where("offset >= 3").select("key", "headers").orderBy("offset").collect()
    assert [(bytes(row.key), row.headers[0].key) for row in rows] == [
        (b"key 3", "h"),
        (b"key 4", "h"),
    ]


# -- options --------------------------------------------------------------------------------------


def test_options() -> None:
    options = Options.parse({"path": "file:///data", "topics": "a, b", "level": "records"})
    assert (options.folder, options.topics) == ("/data", frozenset({"a", "b"}))
    assert (options.level, options.checks) == (Level.RECORDS, Checks.BATCHES)
    assert Options.parse({"path": "here"}).folder == str(Path("here").absolute())


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "names no folder"),
        ({"remote": "file:///tier", "level": "traces"}, "names no folder"),
        (
            {"path": "/x", "level": "segments"},
            "level is 'segments', and may be one of batches, rec",
        ),
        ({"path": "/x", "checks": "all"}, "checks is 'all', and may be one of batches, records"),
    ],
)
def test_options_that_make_no_sense(given: dict[str, str], why: str) -> None:
    with pytest.raises(UnreadableSource, match=why):
        Options.parse(given)


def test_a_partition_a_segment_unless_they_are_small(tmp_path: Path) -> None:
    sizes = [
        SMALL_SEGMENTS_BYTES + 1,
        10,
        SMALL_SEGMENTS_BYTES,
        SMALL_SEGMENTS_BYTES - 10,
        10,
        1,
        0,
    ]
    found = [segment(base, size) for base, size in enumerate(sizes)]
    assert [[each.segment for each in share] for share in split_into_tasks(found)] == [
        [0],
        [1],
        [2],
        [3, 4],
        [5, 6],
    ]
    assert split_into_tasks([]) == []


def segment(base: int, size: int) -> SegmentFiles:
    return SegmentFiles(
        topic="t",
        partition=0,
        place=Place.LOG,
        broker=1,
        segment=base,
        segment_id=None,
        log="",
        offset_index=None,
        time_index=None,
        size=size,
        closed=True,
    )


def test_what_it_is_called() -> None:
    source = FencepostDataSource({"path": "/x"})
    assert source.name() == "fencepost"
    assert source.schema().names == BATCHES.names


def test_many_small_record_batches_are_few_and_hold_the_same() -> None:
    rows = [pa.RecordBatch.from_pydict({"offset": [number]}) for number in range(20_000)]
    found = list(coalesce(rows))
    assert [each.num_rows for each in found] == [MIN_ROWS, MIN_ROWS, 20_000 - 2 * MIN_ROWS]
    assert pa.Table.from_batches(found) == pa.Table.from_batches(rows).combine_chunks()
    assert list(coalesce([])) == []
