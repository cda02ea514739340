"""A job that makes a JVM load what most jobs load, and end: ``OPTIONS FOLDER``.

The options are the JVM's; one of them lets it write down its classes when it ends.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def work(spark: SparkSession, folder: Path) -> None:
    """Write files, read them, and read them as a stream, by the JVM and by Python."""
    rows, counts = str(folder / "rows"), str(folder / "counts")
    spark.range(1000).selectExpr("id", "id % 7 AS key").write.parquet(rows)
    read = spark.read.parquet(rows)
    read.groupBy("key").count().orderBy("key").collect()
    read.rdd.mapPartitions(lambda part: [sum(1 for _ in part)]).collect()
    read.mapInArrow(lambda batches: batches, read.schema).count()
    stream = spark.readStream.schema(read.schema).parquet(rows).writeStream.format("parquet")
    stream = stream.option("checkpointLocation", str(folder / "checkpoint"))
    stream.trigger(availableNow=True).start(counts).awaitTermination()


def main(options: str, folder: Path) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.Builder().master("local[2,4]")
    for name, value in {
        "spark.driver.extraJavaOptions": options,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    jvm = spark.sparkContext._gateway
    assert jvm is not None
    work(spark, folder)
    spark.stop()
    jvm.shutdown()
    jvm.proc.stdin.close()  # then it ends
    jvm.proc.wait()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]) / "written")
