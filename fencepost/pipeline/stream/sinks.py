"""Queries that run: into Parquet files, and into another topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fencepost.pipeline.stream.counts import count
from fencepost.pipeline.stream.source import FORMAT, client_options, read
from fencepost.pipeline.stream.wanted import Counting, Pace, Source, Trigger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_MS_PER_S: Final = 1000


def to_parquet(spark: SparkSession, source: Source, pace: Pace, directory: str) -> StreamingQuery:
    """Write every record to files in a directory, each once, however often the query is restarted.

    That holds for who reads ``_spark_metadata`` in it, as Spark does: it names the files of the
    batches that were finished. Others may lie beside them.
    """
    records = read(spark, source)
    return _start(records.writeStream.format("parquet").option("path", directory), pace)


def to_topic(
    spark: SparkSession, source: Source, pace: Pace, target: str, counting: Counting
) -> StreamingQuery:
    """Count records by their keys, and append the counts to a topic, at least once.

    Without windows a count is appended when it has grown; with windows once, when its window is
    over. A batch that is done again after a failure appends the same counts again.
    """
    counted = count(read(spark, source), counting)
    writer = (
        counted.writeStream.format(FORMAT)
        .options(**client_options(source))
        .option("topic", target)
        .outputMode("update" if counting.window_s is None else "append")
    )
    return _start(writer, pace)


def _start(writer: DataStreamWriter, pace: Pace) -> StreamingQuery:
    if pace.trigger is Trigger.AVAILABLE_NOW:
        writer = writer.trigger(availableNow=True)
    else:
        interval_ms = round(pace.interval_s * _MS_PER_S)
        writer = writer.trigger(processingTime=f"{interval_ms} milliseconds")
    return writer.option("checkpointLocation", pace.checkpoint).start()
