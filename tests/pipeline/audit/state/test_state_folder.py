"""Tables of a state that the driver writes: Spark reads them, and sees none that is not whole."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from fencepost.pipeline.audit.rule import FINDING_SCHEMA
from fencepost.pipeline.audit.state.run_tables import RUN_SCHEMA
from fencepost.pipeline.audit.state.state_folder import FINDINGS, RUNS, StateFolder
from fencepost.pipeline.requirements import CannotRunError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STARTED = datetime(2026, 11, 29, 12, 30, 0, 250_000, UTC)
RUN = "00000001-0a"


def run_row(run: int) -> pa.Table:
    row = {"started": STARTED, "cluster_ids": ["a", "b"], "topics": [], "format": run}
    return pa.Table.from_pylist([row], RUN_SCHEMA)


def test_spark_reads_what_the_driver_has_written_beside_what_spark_wrote_before(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = StateFolder(spark, str(tmp_path / "st ate"))
    spark.createDataFrame(run_row(1)).coalesce(1).write.parquet(folder.path(RUNS, RUN))
    folder.write(RUNS, "00000002-0b", run_row(2))
    assert folder.runs(RUNS) == ["00000002-0b", RUN]
    assert folder.last_run() == "00000002-0b"
    for number, run in enumerate((RUN, "00000002-0b"), 1):
        (row,) = folder.read(RUNS, run).to_pylist()
        assert (row["format"], row["cluster_ids"], row["topics"]) == (number, ["a", "b"], [])
    found = spark.read.parquet(f"{folder.url}/{RUNS}").orderBy("run").toArrow()
    assert found["run"].to_pylist() == [RUN, "00000002-0b"]
    assert [each.astimezone(UTC) for each in found["started"].to_pylist()] == [STARTED, STARTED]


def test_a_table_of_no_rows_has_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    folder = StateFolder(spark, str(tmp_path))
    folder.write(FINDINGS, RUN, FINDING_SCHEMA.empty_table())
    found = spark.read.parquet(f"{folder.url}/{FINDINGS}")
    assert (found.columns, found.count()) == ([*FINDING_SCHEMA.names, "run"], 0)


class Killed:
    """Hadoop's file system of a driver that is killed before what it wrote has its name."""

    def __init__(self, files: object) -> None:
        self._files = files

    def __getattr__(self, name: str) -> object:
        return getattr(self._files, name)

    def rename(self, *_: object) -> bool:
        raise KeyboardInterrupt


def test_what_was_not_written_to_its_end_is_not_read(spark: SparkSession, tmp_path: Path) -> None:
    folder = StateFolder(spark, str(tmp_path))
    folder.write(RUNS, RUN, run_row(1))
    killed = StateFolder(spark, str(tmp_path))
    killed._files = Killed(killed._files)
    with pytest.raises(KeyboardInterrupt):
        killed.write(RUNS, "00000002-0b", run_row(2))
    assert list((tmp_path / RUNS / "run=00000002-0b").iterdir())
    assert folder.last_run() == RUN
    assert spark.read.parquet(f"{folder.url}/{RUNS}").count() == 1


@pytest.mark.parametrize("left", [b"", b"PAR1 and nothing else"])
def test_a_run_that_cannot_be_read_is_named(
    spark: SparkSession, tmp_path: Path, left: bytes
) -> None:
    folder = StateFolder(spark, str(tmp_path))
    folder.write(RUNS, RUN, run_row(1))
    for path in (tmp_path / RUNS / f"run={RUN}").glob("*part*"):
        path.unlink()
    (tmp_path / RUNS / f"run={RUN}" / "part-00000.parquet").write_bytes(left)
    with pytest.raises(CannotRunError, match=f"can.t read file://{tmp_path}/runs/run={RUN}: "):
        folder.read(RUNS, RUN)
