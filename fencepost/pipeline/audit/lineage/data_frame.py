"""The lineage of partitions as a DataFrame of Spark, for notebooks and jobs.

from fencepost.pipeline.audit.job import AuditOptions
from fencepost.pipeline.audit.lineage.data_frame import lineage_frame

lineage = lineage_frame(spark, AuditOptions(directory="/var/lib/kafka"))
lineage.where("kind = 'pair' AND parts_at IS NOT NULL").show()
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from fencepost.pipeline.audit.bucket_job import bucket_job
from fencepost.pipeline.audit.condensed.refinement import ReadWindow
from fencepost.pipeline.audit.condensed.window_scan import WindowReader
from fencepost.pipeline.audit.job import AuditOptions, list_logs
from fencepost.pipeline.audit.lineage.partition_lineage import partition_lineages
from fencepost.pipeline.audit.lineage.table import LINEAGE_SCHEMA, lineage_table
from fencepost.pipeline.audit.rule import PartitionMetadata, TopicPartition
from fencepost.pipeline.audit.spark_task import partition_evidence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NO_RULE: Final = ("",)
"""No rule is called so, and so none is followed."""


def lineage_frame(spark: SparkSession, options: AuditOptions) -> DataFrame:
    """The lineage of every partition, computed by executors when an action asks for it.

    No rule is followed.

    :param options: What is read; rules and histories in it count for nothing.
    :returns: The columns of `LINEAGE_SCHEMA`, each partition's rows together and in their order.
    :raises CannotRunError: When there is nothing to look at, or it can't be read.
    """
    # Its metadata stay with the executors as long as the session: the frame may be computed often.
    listing = list_logs(spark, replace(options, rules=_NO_RULE))
    read = WindowReader(options.remote)
    rows_of_bucket = partial(lineage_rows, now_ms=options.now_ms, read=read)
    return bucket_job(options, listing, rows_of_bucket, LINEAGE_SCHEMA)


def lineage_rows(
    batches: pa.Table,
    traces: pa.Table | None,
    metadata: Mapping[TopicPartition, PartitionMetadata],
    *,
    now_ms: int,
    read: ReadWindow,
) -> pa.Table:
    """The lineage of some partitions: what an executor makes of a bucket.

    :param batches: `WINDOWS`.
    :param metadata: Of these partitions, and of such as have no row.
    :param read: Reads the batches of windows.
    :returns: `LINEAGE_SCHEMA`.
    """
    return lineage_table(
        (evidence.topic, evidence.partition, partition_lineages(evidence))
        for evidence, _ in partition_evidence(batches, traces, metadata, now_ms=now_ms, read=read)
    )
