"""The data source ``fencepost-load``, which can only be written to.

A row is a record and says its partition. The rows of a partition are all in one task, together, in
their order: `source_rows.arrange` sees to that.

One request of a partition is under way at a time, while the next chunk is encoded. With more of
them, a foreign record between two would leave a hole: the second could find the log as long as it
expects, though not with the first one in it.
"""

import asyncio
import json
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Self, cast
from uuid import UUID

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceWriter,
    WriterCommitMessage,
)

from fencepost.client.client import Client
from fencepost.client.model import Partition
from fencepost.pipeline.load.batch_encoding import BatchLimits, ChunkBuilder
from fencepost.pipeline.load.options import LoadRefused, PartitionLoaded
from fencepost.pipeline.load.partition_load import PartitionLoad
from fencepost.protocol.compression import Codec

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


CLIENT_ID: Final = "fencepost-load"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What every task of a load must know."""

    bootstrap: str
    topic: str
    topic_id: UUID | None
    bases: tuple[int, ...]
    """Of each partition, the offset of its first row."""
    limits: BatchLimits
    patience_s: float

    def to_json(self) -> str:
        """As text, for an option of a data source."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        topic_id = None if self.topic_id is None else str(self.topic_id)
        return json.dumps({**fields, "topic_id": topic_id, "limits": asdict(self.limits)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The same from its text."""
        fields: Mapping[str, Any] = json.loads(text)
        limits, topic_id = fields["limits"], fields["topic_id"]
        return cls(
            **{
                **fields,
                "bases": tuple(fields["bases"]),
                "topic_id": None if topic_id is None else UUID(topic_id),
                "limits": BatchLimits(**{**limits, "codec": Codec(limits["codec"])}),
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """What a task has come to, when it was not interrupted."""

    partitions: tuple[PartitionLoaded, ...]
    refused: str | None
    """Why it ended before its last row, for good; None where it did not."""


def load_rows(assignment: Assignment, rows: Iterator[pa.RecordBatch]) -> TaskResult:
    """Bring all rows of a task to where they belong.

    :param rows: Those of a partition together, in the order that they are to have there.
    :raises LoadInterrupted: When it cannot be seen through now; to be tried again.
    """
    done: list[PartitionLoaded] = []
    with _PartitionWorker(assignment) as worker:
        try:
            for number, part in _runs(rows):
                if number is None or number != worker.partition:
                    done += worker.finish()
                    worker.begin(_checked_partition(number, assignment, done))
                _require_header_keys(part, f"{assignment.topic}-{number}")
                worker.add(part)
            done += worker.finish()
        except LoadRefused as error:
            return TaskResult(partitions=tuple(done), refused=str(error))
    return TaskResult(partitions=tuple(done), refused=None)


def _runs(rows: Iterator[pa.RecordBatch]) -> Iterator[tuple[int | None, pa.RecordBatch]]:
    """Rows that stand together and are of one partition; None where they do not say of which."""
    for batch in rows:
        numbers = batch["partition"].to_numpy(zero_copy_only=False)
        if batch["partition"].null_count:
            yield None, batch
            continue
        bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), batch.num_rows]
        for start, end in pairwise(bounds):
            if start < end:
                yield int(numbers[start]), batch.slice(start, end - start)


def _checked_partition(
    number: int | None, assignment: Assignment, done: list[PartitionLoaded]
) -> int:
    """The partition that is begun, if it can be."""
    count = len(assignment.bases)
    if number is None or not 0 <= number < count:
        number_text = "none" if number is None else str(number)
        raise LoadRefused(f"a row says partition {number_text}; {assignment.topic} has {count}")
    if any(each.partition == number for each in done):
        raise LoadRefused(f"rows of {assignment.topic}-{number} stand between those of others")
    return number


def _require_header_keys(rows: pa.RecordBatch, name: str) -> None:
    """Kafka's format has no place for a header that is null, or whose key is."""
    if "headers" in rows.schema.names:
        keys, _ = rows["headers"].flatten().flatten()
        if keys.null_count:
            raise LoadRefused(f"a row of {name} has a header without a key")


class _PartitionWorker:
    """Loads one partition after the other, in a thread of its own.

    :ivar partition: The one that it is at; None before the first.
    """

    def __init__(self, assignment: Assignment) -> None:
        self.partition: int | None = None
        self._assignment = assignment
        self._chunks = ChunkBuilder(assignment.limits)
        self._load: PartitionLoad | None = None
        self._under_way: Future[None] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._client: Client | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._under_way is not None:
            self._under_way.cancel()
        if self._client is not None:
            with suppress(Exception):  # how a connection ends does not matter
                asyncio.run_coroutine_threadsafe(self._client.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def begin(self, number: int) -> None:
        """Begin with a partition."""
        self.partition = number
        self._send(self._begin(number))
        self._wait()

    def add(self, rows: pa.RecordBatch) -> None:
        """Take more of the partition's rows."""
        for chunk in self._chunks.add(rows):
            self._send(self._current_load().append_or_verify(chunk))

    def finish(self) -> list[PartitionLoaded]:
        """Wait until the partition has all its rows; what it has come to, if there was one."""
        if self._load is None:
            return []
        for chunk in self._chunks.finish():
            self._send(self._load.append_or_verify(chunk))
        self._wait()
        loaded, self._load = self._load.loaded, None
        return [loaded]

    def _current_load(self) -> PartitionLoad:
        assert self._load is not None, "a partition was begun"
        return self._load

    async def _begin(self, number: int) -> None:
        assignment = self._assignment
        if self._client is None:
            self._client = Client(assignment.bootstrap, client_id=CLIENT_ID)
        partition = Partition(topic=assignment.topic, index=number, topic_id=assignment.topic_id)
        base, patience_s = assignment.bases[number], assignment.patience_s
        self._load = PartitionLoad(self._client, partition, base=base, patience_s=patience_s)
        await self._load.begin()

    def _send(self, coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            self._wait()
        except BaseException:
            coroutine.close()
            raise
        self._under_way = asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _wait(self) -> None:
        under_way, self._under_way = self._under_way, None
        if under_way is not None:
            under_way.result()


FORMAT: Final = "fencepost-load"
ASSIGNMENT_OPTION: Final = "assignment"
"""The option with an `Assignment`."""
REPORT_OPTION: Final = "report"
"""The option with the path of a file on the driver, that gets the report."""
COLUMNS: Final = ("partition", "key", "value", "timestamp")
"""What every row has; it may have ``headers`` as well."""


class LoadSource(DataSource):
    """Appends rows to a topic, each once."""

    @classmethod
    def name(cls) -> str:
        """By which a session knows it."""
        return FORMAT

    def writer(self, schema: "StructType", overwrite: bool) -> DataSourceWriter:
        """Who writes such rows."""
        missing = [name for name in COLUMNS if name not in schema.names]
        if missing or overwrite:
            raise ValueError(f"{FORMAT} appends rows with {', '.join(COLUMNS)}")
        return LoadWriter(
            Assignment.from_json(self.options[ASSIGNMENT_OPTION]), self.options[REPORT_OPTION]
        )


@dataclass
class TaskMessage(WriterCommitMessage):
    """What a task tells the driver."""

    result: TaskResult


class LoadWriter(DataSourceArrowWriter):
    """Writes the rows of a task, and tells of all of them.

    :param report: The path of the file for the report.
    """

    def __init__(self, assignment: Assignment, report: str) -> None:
        self._assignment = assignment
        self._report = report

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> TaskMessage:
        """On an executor. A refusal is no failure here: Spark would only try it again."""
        return TaskMessage(result=load_rows(self._assignment, iterator))

    def commit(self, messages: "list[WriterCommitMessage | None]") -> None:
        """On the driver, when every task has ended."""
        refused = self._write_report(messages)
        if refused:
            raise LoadRefused("; ".join(refused))

    def abort(self, messages: "list[WriterCommitMessage | None]") -> None:
        """On the driver, when a task has failed for good. What is appended stays."""
        self._write_report(messages)

    def _write_report(self, messages: "list[WriterCommitMessage | None]") -> list[str]:
        """Write the report; why rows were refused."""
        all_brought = [cast("TaskMessage", each).result for each in messages if each is not None]
        partitions = [each for brought in all_brought for each in brought.partitions]
        refused = [each.refused for each in all_brought if each.refused is not None]
        numbers = [each.partition for each in partitions]
        refused += (
            f"rows of {self._assignment.topic}-{number} were in more than one task"
            for number in sorted({each for each in numbers if numbers.count(each) > 1})
        )
        report: Mapping[str, object] = {
            "partitions": [asdict(each) for each in partitions],
            "refused": refused,
        }
        Path(self._report).write_text(json.dumps(report))
        return refused
