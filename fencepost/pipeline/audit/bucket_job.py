"""A job over partitions: batches and traces go to buckets, and a function is called with each.

Rows go to one of some buckets by their partition, rows of no partition to all of them: events of a
trace, and metadata of the whole cluster. A bucket is one call of a Python function, which separates
its partitions. That costs less than a group for each of hundreds of partitions, and needs no second
pass over the trace for the events that concern all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.pipeline.audit import metadata_rows
from fencepost.pipeline.audit.condensed.window_rows import WINDOWS
from fencepost.pipeline.audit.metadata_rows import FoundTraceFile, ReplicaPart, ScanShare, TierPart
from fencepost.pipeline.audit.partition_metadata import partition_metadata
from fencepost.pipeline.audit.scan_tasks import scan_share
from fencepost.pipeline.audit.source_listing import SourceListing, one_a_task
from fencepost.pipeline.audit.spark_task import WITHOUT_PARTITION
from fencepost.pipeline.audit.state.kept_segments import KEPT
from fencepost.pipeline.audit.trace_rows import slimmed
from fencepost.pipeline.audit.trace_scan.ordering import (
    SESSION_ORDER,
    TURN_ORDER,
    TURNS,
    with_turns,
)
from fencepost.pipeline.audit.trace_scan.passes import fill_session_epochs, leave_out_exchanges
from fencepost.pipeline.audit.trace_scan.shared_scans import SCANS
from fencepost.pipeline.datasource.schemas import TRACES
from fencepost.pipeline.datasource.segment_scan import Checks
from fencepost.pipeline.datasource.trace_files import read_trace_file
from fencepost.pipeline.python_workers import freeze_loaded_modules

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from fencepost.pipeline.audit.job import AuditOptions
    from fencepost.pipeline.audit.rule import PartitionMetadata, TopicPartition


_FEW_BUCKETS: Final = 128
"""At most so many where partitions are few: each takes some milliseconds, however small it is."""
COPIES_A_BUCKET: Final = 64
"""Of partitions, on average at most: the rows of a bucket are in memory together."""
_BUCKET: Final = "bucket"
BucketFunction: TypeAlias = Callable[
    [pa.Table, "pa.Table | None", "dict[TopicPartition, PartitionMetadata]"], pa.Table
]
"""What is called with a bucket: its batches, its traces (None without a trace) and its metadata."""


def bucket_job(
    options: AuditOptions,
    listing: SourceListing,
    function: BucketFunction,
    schema: pa.Schema,
    windows: DataFrame | None = None,
    keys: DataFrame | None = None,
) -> DataFrame:
    """The rows that a function makes of each bucket.

    :param schema: Of these rows.
    :param windows: `WINDOWS` of all segments; None: these are scanned.
    :param keys: More metadata of partitions: what `key_differences` finds; None without.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    with_objects = options.remote is not None

    def both(traces: pa.Table | None, rows: pa.Table) -> pa.Table:
        freeze_loaded_modules()
        batches, metadata = separate_metadata(rows, with_objects=with_objects)
        return function(batches, traces, metadata)

    def one(rows: pa.Table) -> pa.Table:
        return both(None, rows)

    copies = max(listing.count(ReplicaPart), listing.count(TierPart))
    buckets = bucket_count(listing.partitions, copies)
    if windows is None:
        windows = scan_segments(options, listing)
    batches = _batches(windows, listing, keys, buckets).groupBy(_BUCKET)
    if options.trace is None:
        return batches.applyInArrow(one, from_arrow_schema(schema))
    traces = _traces(options, listing, buckets).groupBy(_BUCKET)
    return traces.cogroup(batches).applyInArrow(both, from_arrow_schema(schema))


def bucket_count(partitions: int, copies: int) -> int:
    """How many buckets there are.

    :param partitions: How many there are, or fewer where they are many.
    :param copies: Of partitions, in log directories or in the tier.
    """
    return max(min(partitions, _FEW_BUCKETS), -(-copies // COPIES_A_BUCKET))


def separate_metadata(
    rows: pa.Table, *, with_objects: bool
) -> tuple[pa.Table, dict[TopicPartition, PartitionMetadata]]:
    """The batches of a bucket, and the metadata that came with them.

    :param rows: Of batches, with the columns of `metadata_rows.SCHEMA` besides.
    :param with_objects: As `partition_metadata` takes it.
    """
    is_batch = pc.is_null(rows["kind"])
    metadata = metadata_rows.from_arrow(rows.filter(pc.invert(is_batch)))
    batches = rows.filter(is_batch).drop_columns(["kind", "key", "value"])
    return batches, partition_metadata(metadata, with_objects=with_objects)


def _batches(
    batches: DataFrame, listing: SourceListing, keys: DataFrame | None, buckets: int
) -> DataFrame:
    """The batches, and the metadata of partitions and of the cluster."""
    from pyspark.sql.functions import hash as murmur
    from pyspark.sql.functions import lit, pmod

    batches = batches.withColumn(_BUCKET, pmod(murmur("topic", "partition"), lit(buckets)))
    rows = listing.bucket_rows if keys is None else listing.bucket_rows.unionByName(keys)
    metadata = _to_buckets(rows, "topic IS NOT NULL", buckets)
    return batches.unionByName(metadata, allowMissingColumns=True)


def scan_segments(
    options: AuditOptions, listing: SourceListing, *, keep: bool = False
) -> DataFrame:
    """The windows and folds of the segments that are read, each share of these by one task.

    :param keep: Whether they are kept for the next audit: then they are `KEPT`.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    from fencepost.pipeline.datasource.source import coalesce

    remote, checks = options.remote, Checks(options.level.value)

    def scan(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_loaded_modules()
        for batch in batches:
            for row in metadata_rows.from_arrow(batch):
                assert isinstance(row.value, ScanShare), "no others are asked for"
                segments = row.value.segments
                yield from coalesce(scan_share(segments, remote, checks, keep=keep))

    shares = one_a_task(listing.planned_rows(ScanShare), listing.count(ScanShare))
    return shares.mapInArrow(scan, from_arrow_schema(KEPT if keep else WINDOWS))


def _traces(options: AuditOptions, listing: SourceListing, buckets: int) -> DataFrame:
    """What can concern a partition: its own rows, and all events."""
    from pyspark.sql.functions import expr
    from pyspark.sql.pandas.types import from_arrow_schema

    topics, with_histories = frozenset(options.topics) or None, options.with_histories

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_loaded_modules()
        for batch in batches:
            for row in metadata_rows.from_arrow(batch):
                assert isinstance(row.value, FoundTraceFile), "no others are asked for"
                for rows in read_trace_file(row.value.file, topics):
                    slim = slimmed(rows, all_of_followers=with_histories)
                    yield slim if with_histories else with_turns(slim)

    files = one_a_task(listing.rows(FoundTraceFile), listing.count(FoundTraceFile))
    rows = files.mapInArrow(read, from_arrow_schema(TRACES if with_histories else TURNS))
    of_one = "partition IS NOT NULL"
    rows = _to_buckets(rows.where(expr(f"{of_one} OR {WITHOUT_PARTITION}")), of_one, buckets)
    # A chart has a point for each exchange.
    return rows if with_histories else _without_idle_exchanges(rows)


def _without_idle_exchanges(rows: DataFrame) -> DataFrame:
    """The rows without exchanges that change nothing that a rule finds.

    Spark sorts them, on disk where they are many, and a task sees a stretch of them at a time.

    :param rows: `TURNS` in buckets.
    """

    def fill(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_loaded_modules()
        return fill_session_epochs(batches)

    def leave_out(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_loaded_modules()
        return leave_out_exchanges(batches, SCANS)

    by_session = rows.repartition(_BUCKET).sortWithinPartitions(_BUCKET, *SESSION_ORDER)
    filled = by_session.mapInArrow(fill, rows.schema)
    in_turn = filled.sortWithinPartitions(_BUCKET, *TURN_ORDER)
    return in_turn.mapInArrow(leave_out, in_turn.select(*TRACES.names, _BUCKET).schema)


def _to_buckets(rows: DataFrame, of_one: str, buckets: int) -> DataFrame:
    """The rows, with the number of their bucket.

    :param of_one: Which of them are of one partition, in SQL; the others go to all buckets.
    """
    from pyspark.sql.functions import array, explode, expr, lit, pmod, sequence, when
    from pyspark.sql.functions import hash as murmur

    own: Column = array(pmod(murmur("topic", "partition"), lit(buckets)))
    everywhere = sequence(lit(0), lit(buckets - 1))
    return rows.withColumn(_BUCKET, explode(when(expr(of_one), own).otherwise(everywhere)))
