"""The data source ``fencepost-load``: it can only be written to.

A row is a record and says its partition. The rows of a partition are all in one task, together, in
their order: `rows.arrange` sees to that.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceWriter,
    WriterCommitMessage,
)

from fencepost.pipeline.load.outcomes import LoadRefused
from fencepost.pipeline.load.tasks import Assignment, Brought, bring

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

NAME: Final = "fencepost-load"
ASSIGNMENT: Final = "assignment"
"""The option with an `Assignment`."""
REPORT: Final = "report"
"""The option with the path of a file on the driver, where it is told how it went."""
COLUMNS: Final = ("partition", "key", "value", "timestamp")
"""What every row has; it may have ``headers`` as well."""


class LoadSource(DataSource):
    """Appends rows to a topic, each once."""

    @classmethod
    def name(cls) -> str:
        """By which a session knows it."""
        return NAME

    def writer(self, schema: "StructType", overwrite: bool) -> DataSourceWriter:
        """Who writes such rows."""
        missing = [name for name in COLUMNS if name not in schema.names]
        if missing or overwrite:
            raise ValueError(f"{NAME} appends rows with {', '.join(COLUMNS)}")
        return LoadWriter(Assignment.from_json(self.options[ASSIGNMENT]), self.options[REPORT])


@dataclass
class TaskMessage(WriterCommitMessage):
    """What a task tells the driver."""

    brought: Brought


class LoadWriter(DataSourceArrowWriter):
    """Writes the rows of a task, and tells of all of them.

    :param report: The path of the file for the report.
    """

    def __init__(self, assignment: Assignment, report: str) -> None:
        self._assignment = assignment
        self._report = report

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> TaskMessage:
        """On an executor. A refusal is no failure here: Spark would only try it again."""
        return TaskMessage(brought=bring(self._assignment, iterator))

    def commit(self, messages: "list[WriterCommitMessage | None]") -> None:
        """On the driver, when every task has ended."""
        refused = self._tell(messages)
        if refused:
            raise LoadRefused("; ".join(refused))

    def abort(self, messages: "list[WriterCommitMessage | None]") -> None:
        """On the driver, when a task has failed for good. What is appended stays."""
        self._tell(messages)

    def _tell(self, messages: "list[WriterCommitMessage | None]") -> list[str]:
        """Write the report; why rows were refused."""
        all_brought = [cast("TaskMessage", each).brought for each in messages if each is not None]
        partitions = [each for brought in all_brought for each in brought.partitions]
        refused = [each.refused for each in all_brought if each.refused is not None]
        numbers = [each.partition for each in partitions]
        refused += (
            f"rows of {self._assignment.topic}-{number} were in more than one task"
            for number in sorted({each for each in numbers if numbers.count(each) > 1})
        )
        told: Mapping[str, object] = {
            "partitions": [asdict(each) for each in partitions],
            "refused": refused,
        }
        Path(self._report).write_text(json.dumps(told))
        return refused
