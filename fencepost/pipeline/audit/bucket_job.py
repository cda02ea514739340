"""A job over partitions: batches and traces go to buckets, and a function is called with each.

Rows go to one of a few buckets by their partition, events of no partition to all of them. A bucket
is one call of a Python function, which separates its partitions. That costs less than a group for
each of hundreds of partitions, and needs no second pass over the trace for the events that concern
all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa

from fencepost.pipeline.audit.rule import TopicPartition
from fencepost.pipeline.audit.spark_task import WITHOUT_PARTITION
from fencepost.pipeline.datasource.schemas import Level

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from fencepost.pipeline.audit.job import AuditOptions


MAX_BUCKETS: Final = 256
_BUCKET: Final = "bucket"
BucketFunctions: TypeAlias = tuple[
    Callable[[pa.Table], pa.Table], Callable[[pa.Table, pa.Table], pa.Table]
]
"""What Spark calls with a bucket: one for its batches alone, one for its traces and its batches."""


def bucket_job(
    spark: SparkSession,
    options: AuditOptions,
    partitions: Collection[TopicPartition],
    functions: BucketFunctions,
    schema: pa.Schema,
    *,
    with_partition_rows: bool = False,
) -> DataFrame:
    """The rows that a function makes of each bucket.

    :param partitions: All that there are.
    :param schema: Of the rows that the functions make.
    :param with_partition_rows: Whether each partition has a row among the batches that says nothing
        else, so that one without a batch is seen too.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    buckets = min(len(partitions), MAX_BUCKETS)
    one, both = functions
    named = partitions if with_partition_rows else ()
    batches = _batches(spark, options, buckets, named).groupBy(_BUCKET)
    if options.trace is None:
        return batches.applyInArrow(one, from_arrow_schema(schema))
    traces = _traces(spark, options, options.trace, buckets).groupBy(_BUCKET)
    # The left side is planned first, and a trace must not be newer than the logs.
    return traces.cogroup(batches).applyInArrow(both, from_arrow_schema(schema))


def _batches(
    spark: SparkSession,
    options: AuditOptions,
    buckets: int,
    partitions: Collection[TopicPartition],
) -> DataFrame:
    """The batches, and a row of its own for each of some partitions."""
    from pyspark.sql.functions import hash as murmur
    from pyspark.sql.functions import lit, pmod

    reader = spark.read.format("fencepost").option("level", Level.BATCHES.value)
    reader = reader.option("checks", options.level.value).option("beside", "files")
    if options.remote is not None:
        reader = reader.option("remote", options.remote)
    if options.topics:
        reader = reader.option("topics", ",".join(options.topics))
    rows = reader.load(options.directory)
    if partitions:
        named = spark.createDataFrame(sorted(partitions), "topic string, partition int")
        rows = rows.unionByName(named, allowMissingColumns=True)
    return rows.withColumn(_BUCKET, pmod(murmur("topic", "partition"), lit(buckets)))


def _traces(spark: SparkSession, options: AuditOptions, trace: str, buckets: int) -> DataFrame:
    """What can concern a partition: its own rows, and all events."""
    from pyspark.sql.functions import array, col, explode, expr, lit, pmod, sequence, when
    from pyspark.sql.functions import hash as murmur

    reader = spark.read.format("fencepost").option("level", Level.TRACES.value)
    if options.topics:
        reader = reader.option("topics", ",".join(options.topics))
    rows = reader.load(trace)
    of_one = col("partition").isNotNull()
    own: Column = array(pmod(murmur("topic", "partition"), lit(buckets)))
    all_of_them = sequence(lit(0), lit(buckets - 1))
    return rows.where(of_one | expr(WITHOUT_PARTITION)).withColumn(
        _BUCKET, explode(when(of_one, own).otherwise(all_of_them))
    )
