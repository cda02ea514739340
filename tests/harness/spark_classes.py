"""What most jobs of Spark load, loaded: run as a program, in the folder that is the argument.

Its JVM is one that writes an archive of the classes when it ends; see `tests.harness.spark`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fencepost.pipeline.session import session

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession


def load(spark: SparkSession, folder: Path) -> None:
    """Files, shuffles, Python workers and a query of two batches."""
    files, checkpoint = str(folder / "files"), str(folder / "checkpoint")
    rows = spark.range(20).selectExpr("id", "id % 3 AS key", "string(id) AS value")
    rows.write.parquet(files)
    read = spark.read.parquet(files)
    counted = read.groupBy("key").count().orderBy("key").mapInArrow(_same, "key long, count long")
    assert [row["count"] for row in counted.collect()] == [7, 7, 6]
    assert read.toPandas().shape == (20, 3)
    stream = spark.readStream.schema(read.schema).parquet(files).writeStream
    query = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    query.start(str(folder / "copied"), format="parquet").awaitTermination()
    assert spark.read.parquet(str(folder / "copied")).count() == 20


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def main(folder: Path) -> None:
    """Returns when the JVM has ended, and so has written what it writes at its end."""
    with session("classes", master="local[2,4]") as spark:
        load(spark, folder)
        gateway: Any = spark.sparkContext._gateway
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
