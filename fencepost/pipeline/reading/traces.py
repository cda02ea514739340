"""Level ``traces`` of the data source: a partition of the job for each file of a trace."""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from fencepost.pipeline.reading.trace_files import TraceSlice, find_traces
from fencepost.pipeline.reading.trace_lines import read_traces

if TYPE_CHECKING:
    import pyarrow as pa


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

        :raises NoTrace: When there is none.
        """
        return [InputPartition(each) for each in find_traces(self._path)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The rows of one file, as Arrow."""
        piece: TraceSlice = partition.value
        return read_traces(piece, self._topics)
