"""Reads the transaction coordinators' log with Spark: executors thin it out, the driver adds it up.

What comes to the driver is two records at most for each transactional id, of each replica and task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from fencepost.pipeline.audit.coordinator_log import (
    COLUMNS,
    SCHEMA,
    TOPIC,
    CoordinatorLog,
    coordinator_log,
    last_records,
)
from fencepost.pipeline.datasource.log_directories import find_log_dirs, find_replicas
from fencepost.pipeline.datasource.schemas import Level

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read_coordinators(spark: SparkSession, directory: str) -> CoordinatorLog | None:
    """What all coordinators know, by the log directories; None where their log is not there.

    :raises UnreadableSource: When the directories can't be read.
    :raises PySparkException: When the job fails.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    log_dirs = find_log_dirs(directory)
    replicas = find_replicas(log_dirs, {TOPIC})
    if not replicas:
        return None
    reader = spark.read.format("fencepost").option("level", Level.RECORDS.value)
    rows = reader.option("topics", TOPIC).load(directory).select(*COLUMNS)
    counted = rows.mapInArrow(last_of_each, from_arrow_schema(SCHEMA)).toArrow()
    return coordinator_log(
        counted.cast(SCHEMA),
        {each.partition for each in replicas},
        clean=all(each.clean for each in log_dirs),
    )


def last_of_each(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What Spark calls with some of the log: of each run of rows it keeps those that count."""
    for each in rows:
        table = pa.Table.from_batches([each]).cast(SCHEMA)
        yield from last_records(table).to_batches()
