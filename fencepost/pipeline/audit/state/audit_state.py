"""The state of audits while one runs: what the last one has kept, and what this one leaves.

A run writes the rows of all segments first, its own and those that it took over, and judges what it
has written: a task that is run again finds the same. Then come its findings and the lineage, and in
the end the row that makes it count (`state_folder`). Only then what the one before it had kept is
deleted.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from fencepost.pipeline.audit import metadata_rows
from fencepost.pipeline.audit.condensed.window_rows import WINDOWS
from fencepost.pipeline.audit.metadata_rows import KeptPart, MetadataRow, TrustedSegments
from fencepost.pipeline.audit.state.kept_segments import KEPT, ScanExtent, Trust, kept_segment
from fencepost.pipeline.audit.state.run_tables import check_format, run_table
from fencepost.pipeline.audit.state.state_folder import (
    FINDINGS,
    KEPT_ROWS,
    LINEAGE,
    RUNS,
    StateFolder,
    number_of,
)
from fencepost.pipeline.datasource.schemas import Place
from fencepost.pipeline.datasource.segment_scan import Checks
from fencepost.pipeline.python_workers import freeze_loaded_modules
from fencepost.pipeline.requirements import CannotRunError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

_SUFFIX_BYTES: Final = 4
_TRUSTED: Final = "segment_key string, log_now string"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditState:
    """The state, and the run that goes on."""

    spark: SparkSession
    folder: StateFolder
    run: str
    """Its name: a number, one more than that of the last run, and some letters that no other run
    has."""
    last: Mapping[str, Any] | None
    """The row of the last run; None where there is none."""
    last_run: str | None
    trust: Trust

    @classmethod
    def open(
        cls, spark: SparkSession, url: str, checks: Checks, *, full: bool, reread: float
    ) -> Self:
        """Begin a run.

        :param checks: How closely it looks.
        :param full: Whether it reads all there is.
        :param reread: The share (0 to 1) of what did not change that it reads.
        :raises CannotRunError: When the state can't be used, or is of another format.
        """
        folder = StateFolder(spark, url)
        last_run = folder.last_run()
        last = None
        number = 1
        if last_run is not None:
            (last,) = folder.read(RUNS, last_run).to_pylist()
            check_format(last, folder.shown_url)
            number = number_of(last_run) + 1
        return cls(
            spark=spark,
            folder=folder,
            run=f"{number:08d}-{secrets.token_hex(_SUFFIX_BYTES)}",
            last=last,
            last_run=last_run,
            trust=Trust.rereading(
                reread, 0 if last is None else last["next_reread"], checks=checks, full=full
            ),
        )

    def check_cluster(self, cluster_ids: Collection[str]) -> None:
        """:raises CannotRunError: When the state is of another cluster than the logs."""
        known = () if self.last is None else self.last["cluster_ids"]
        if known and cluster_ids and not {*known} & {*cluster_ids}:
            raise CannotRunError(
                f"the state {self.folder.shown_url} is of another cluster ({', '.join(known)})"
                f" than the logs ({', '.join(cluster_ids)})"
            )

    def kept_parts(self) -> DataFrame | None:
        """What the last run has kept of each segment: `metadata_rows.SCHEMA`; None without one."""
        if self.last_run is None or self.trust.full:
            return None
        rows = (
            self._kept_rows(self.last_run)
            .where("summary IS NOT NULL")
            .select("summary", "topic", "partition")
        )
        return rows.mapInArrow(_kept_parts, _schema(metadata_rows.SCHEMA))

    def write(
        self,
        scanned: DataFrame,
        trusted: DataFrame,
        *,
        topics: Collection[str] = (),
        with_tier: bool,
    ) -> DataFrame:
        """Write the rows of all segments, and give those that are judged.

        :param scanned: `KEPT`, of the segments that are read.
        :param trusted: Metadata rows with `TrustedSegments`.
        :param topics: The rows of others stay as they are; none: all are looked at.
        :param with_tier: Whether the tier is looked at; else its rows stay as they are.
        :returns: `WINDOWS`.
        """
        rows, is_in_scope = scanned, _is_in_scope(topics, with_tier=with_tier)
        if self.last_run is not None:
            taken_over = _taken_over(self._kept_rows(self.last_run), trusted, is_in_scope)
            rows = rows.unionByName(taken_over)
        path = self.folder.path(KEPT_ROWS, self.run)
        rows = rows.repartition("topic", "partition").sortWithinPartitions("segment_key")
        rows.write.parquet(path)
        written = self._kept_rows(self.run).where("summary IS NULL").where(is_in_scope)
        return written.select(*WINDOWS.names)

    def commit(
        self,
        findings: pa.Table,
        lineage: pa.Table,
        found: Mapping[str, object],
        extent: ScanExtent,
    ) -> None:
        """Write what was found, and let the run count.

        :param found: As `run_table` takes it.
        """
        self.folder.write(FINDINGS, self.run, findings)
        self.folder.write(LINEAGE, self.run, lineage)
        self.folder.write(RUNS, self.run, run_table(found, extent, self.trust.next_start))
        self.folder.clean(self.run, number_of(self.run))

    def _kept_rows(self, run: str) -> DataFrame:
        return self.spark.read.schema(_schema(KEPT)).parquet(self.folder.path(KEPT_ROWS, run))


def _schema(schema: pa.Schema) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def _is_in_scope(topics: Collection[str], *, with_tier: bool) -> Column:
    """Whether rows are of a segment that an audit looks at."""
    from pyspark.sql.functions import col, lit

    wanted = col("topic").isin(*topics) if topics else lit(True)
    return wanted if with_tier else wanted & (col("place") == Place.LOG.value)


def _kept_parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    freeze_loaded_modules()
    for batch in batches:
        summaries, topics, partitions = (
            batch[name].to_pylist() for name in ("summary", "topic", "partition")
        )
        yield from metadata_rows.to_batches(
            MetadataRow(value=KeptPart(segment=kept_segment(each)), key=f"{topic}-{partition}")
            for each, topic, partition in zip(summaries, topics, partitions, strict=True)
        )


def _taken_over(kept: DataFrame, trusted: DataFrame, is_in_scope: Column) -> DataFrame:
    """The kept rows of some segments, with the places where these are by now, and those of others.

    :param is_in_scope: Of which rows the others are not.
    """
    from pyspark.sql.functions import coalesce, col, when

    logs = trusted.mapInArrow(_trusted_logs, _TRUSTED)
    found = kept.join(logs, "segment_key", "left")
    found = found.where(col("log_now").isNotNull() | ~is_in_scope)
    now = when(col("log").isNotNull(), coalesce("log_now", "log"))
    return found.withColumn("log", now).drop("log_now")


def _trusted_logs(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    freeze_loaded_modules()
    for batch in batches:
        for row in metadata_rows.from_arrow(batch):
            assert isinstance(row.value, TrustedSegments), "no others are asked for"
            logs = row.value.logs
            yield pa.RecordBatch.from_pydict({"segment_key": [*logs], "log_now": [*logs.values()]})
