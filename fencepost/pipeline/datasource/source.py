"""``spark.read.format("fencepost")``: log directories, remote tiers and traces as DataFrames.

    spark.read.format("fencepost").option("level", "records").load("/var/lib/fencepost")

Options, besides the folder that ``load`` names:

``level``
    What a row is: ``batches`` (which is understood), ``records`` or ``traces``; see `schemas`.
``topics``
    Names with commas between; all without it.
``remote``
    The URL of the tier, as ``serve --remote`` takes it. Without a folder only it is read.
``checks``
    Of the level ``batches``: ``batches`` (which is understood), or ``records`` to look at records
    too.
``beside``
    Of the level ``batches``: ``files`` for a row for each producer snapshot and transaction index,
    or ``nothing`` (which is understood).

A segment is a partition of the DataFrame, and an executor reads it in one pass. Segments that are
read faster than a task starts share one. With level ``traces``, each file of the trace is one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from fencepost.pipeline.datasource.log_directories import UnreadableSource
from fencepost.pipeline.datasource.schemas import SCHEMAS, Level, Place
from fencepost.pipeline.datasource.segment_scan import MIN_ROWS, Checks, scan_batches, scan_records
from fencepost.pipeline.datasource.segments import SegmentFiles, list_segments, split_into_tasks
from fencepost.pipeline.datasource.tier import Tier
from fencepost.pipeline.datasource.trace_files import TraceFile, find_trace_files, read_trace_file
from fencepost.pipeline.python_workers import freeze_loaded_modules

if TYPE_CHECKING:
    import pyarrow as pa


class Beside(StrEnum):
    """What else of a segment has rows in the level ``batches``."""

    NOTHING = "nothing"
    FILES = "files"
    """Producer snapshots and the transaction index."""


_MAX_BYTES: Final = 4 << 20
"""Of the record batches that are joined into one."""
_Choice = TypeVar("_Choice", bound=StrEnum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is to be read.

    :ivar folder: Absolute.
    :ivar topics: None for all.
    """

    level: Level
    folder: str | None
    remote: str | None
    topics: frozenset[str] | None
    checks: Checks
    beside: Beside

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Options:
        """The options of a DataFrame's reader.

        :raises UnreadableSource: When they make no sense.
        """
        folder, remote = given.get("path"), given.get("remote")
        level = _choice(given, "level", Level.BATCHES)
        if not folder and not (remote and level is not Level.TRACES):
            raise UnreadableSource("nothing to read: load() names no folder")
        topics = frozenset(name.strip() for name in given.get("topics", "").split(","))
        return cls(
            level=level,
            folder=str(Path(folder.removeprefix("file://")).absolute()) if folder else None,
            remote=remote or None,
            topics=(topics - {""}) or None,
            checks=_choice(given, "checks", Checks.BATCHES),
            beside=_choice(given, "beside", Beside.NOTHING),
        )


class FencepostDataSource(DataSource):
    """The data source ``fencepost``."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        """:raises UnreadableSource: When the options make no sense."""
        super().__init__(options)
        self._options = Options.parse(options)

    @classmethod
    def name(cls) -> str:
        """What `format` takes."""
        return "fencepost"

    def schema(self) -> StructType:
        """The columns of the level."""
        return from_arrow_schema(SCHEMAS[self._options.level])

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002  # Spark's own name
        """What finds the partitions, and reads one."""
        options = self._options
        if options.level is Level.TRACES:
            assert options.folder is not None, "the options were looked at"
            return TraceReader(options.folder, options.topics)
        return SegmentReader(options)


class SegmentReader(DataSourceReader):
    """Reads segments of logs and of the tier."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """A partition a segment; small ones share one.

        :raises UnreadableSource: When the logs or the tier can't be read.
        """
        found = list_segments(self._options.folder, self._tier(), self._options.topics)
        # Of no partition at all Spark would make one that says nothing.
        return [InputPartition(share) for share in split_into_tasks(found) or [()]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a segment, or of some."""
        freeze_loaded_modules()
        share: tuple[SegmentFiles, ...] = partition.value
        tier = self._tier() if any(files.place is Place.TIER for files in share) else None
        return coalesce(batch for files in share for batch in self._scan(files, tier))

    def _scan(self, files: SegmentFiles, tier: Tier | None) -> Iterator[pa.RecordBatch]:
        if self._options.level is Level.RECORDS:
            return scan_records(files, tier)
        return scan_batches(
            files,
            tier,
            checks=self._options.checks,
            beside=self._options.beside is Beside.FILES,
        )

    def _tier(self) -> Tier | None:
        return None if self._options.remote is None else Tier.open(self._options.remote)


def coalesce(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer record batches: Spark takes a millisecond for each, however small."""
    parts: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        parts.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= MIN_ROWS or size >= _MAX_BYTES:
            yield from _combined(parts)
            parts, rows, size = [], 0, 0
    yield from _combined(parts)


def _combined(parts: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(parts) < 2:
        return parts
    found: list[pa.RecordBatch] = pa.Table.from_batches(parts).combine_chunks().to_batches()
    return found


def _choice(given: Mapping[str, str], name: str, default: _Choice) -> _Choice:
    kind = type(default)
    text = given.get(name, default)
    try:
        return kind(text.lower())
    except ValueError:
        choices = ", ".join(kind)
        raise UnreadableSource(f"{name} is {text!r}, and may be one of {choices}") from None


class TraceReader(DataSourceReader):
    """Reads the files that are there when a query is planned.

    :param path: The directory of ``serve --trace``.
    :param topics: Names of those whose rows are wanted, besides rows of no topic; None: all.
    """

    def __init__(self, path: str, topics: Collection[str] | None = None) -> None:
        self._path = path
        self._topics = topics

    def partitions(self) -> list[InputPartition]:
        """One for each file.

        :raises UnreadableTrace: When there is none.
        """
        return [InputPartition(each) for each in find_trace_files(self._path)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one file, as Arrow."""
        freeze_loaded_modules()
        piece: TraceFile = partition.value
        return read_trace_file(piece, self._topics)
