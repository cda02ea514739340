"""The lineage of partitions as a DataFrame of Spark, for notebooks and jobs.

from fencepost.pipeline.audit.job import AuditOptions
from fencepost.pipeline.audit.lineage.data_frame import lineage_frame

lineage = lineage_frame(spark, AuditOptions(directory="/var/lib/kafka"))
lineage.where("kind = 'pair' AND parts_at IS NOT NULL").show()
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit.bucket_job import bucket_job
from fencepost.pipeline.audit.job import AuditOptions, find_partition_metadata
from fencepost.pipeline.audit.lineage.partition_lineage import partition_lineages
from fencepost.pipeline.audit.lineage.table import LINEAGE_SCHEMA, lineage_table
from fencepost.pipeline.audit.rule import PartitionMetadata, TopicPartition
from fencepost.pipeline.audit.spark_task import partition_evidence, partitions_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def lineage_frame(spark: SparkSession, options: AuditOptions) -> DataFrame:
    """The lineage of every partition, computed by executors when an action asks for it.

    No rule is followed.

    :param options: What is read; rules and histories in it count for nothing.
    :returns: The columns of `LINEAGE_SCHEMA`, each partition's rows together and in their order.
    :raises CannotRunError: When there is nothing to look at, or it can't be read.
    """
    metadata = find_partition_metadata(options)
    now_ms = options.now_ms

    def both(traces: pa.Table, batches: pa.Table) -> pa.Table:
        return lineage_rows(batches, traces, metadata, now_ms=now_ms)

    def one(batches: pa.Table) -> pa.Table:
        return lineage_rows(batches, None, metadata, now_ms=now_ms)

    return bucket_job(
        spark, options, metadata, (one, both), LINEAGE_SCHEMA, with_partition_rows=True
    )


def lineage_rows(
    batches: pa.Table,
    traces: pa.Table | None,
    metadata: Mapping[TopicPartition, PartitionMetadata],
    *,
    now_ms: int,
) -> pa.Table:
    """The lineage of some partitions: what an executor makes of a bucket.

    :param batches: `BATCHES`, and rows that say nothing but which partition they are of.
    :param metadata: Of these partitions and of others.
    :returns: `LINEAGE_SCHEMA`.
    """
    own = {key: metadata[key] for key in partitions_in(batches, traces) if key in metadata}
    batches = batches.filter(pc.is_valid(batches["place"]))
    return lineage_table(
        (evidence.topic, evidence.partition, partition_lineages(evidence))
        for evidence, _ in partition_evidence(batches, traces, own, now_ms=now_ms)
    )
