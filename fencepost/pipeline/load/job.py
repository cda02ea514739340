"""The load as one Spark job: its plan, its progress and the reason of a failure.

A load begins at offset 0 of an empty topic, or behind the records that the topic had when the load
was first begun. The log does not tell this offset later on: it is written to a file before anything
is appended. Progress is read from the topic itself: how long its partitions are.
"""

import asyncio
import json
import os
import re
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final, Self
from uuid import UUID

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from fencepost.client.client import Client
from fencepost.client.cluster import TopicConfigs, TopicMetadata, topic_configs
from fencepost.client.errors import RETRIABLE, KafkaClientError
from fencepost.client.model import OffsetSpec, Partition
from fencepost.client.partitions import list_offsets
from fencepost.client.retry import A, RetryFailed, retry
from fencepost.pipeline.load.options import (
    Columns,
    Files,
    Loaded,
    LoadInterrupted,
    LoadRefused,
    PartitionLoaded,
    Target,
)
from fencepost.pipeline.load.partition_load import PartitionLog
from fencepost.pipeline.load.sink import (
    ASSIGNMENT_OPTION,
    FORMAT,
    REPORT_OPTION,
    Assignment,
    LoadSource,
)
from fencepost.pipeline.load.source_rows import arrange, read_files
from fencepost.protocol.errors import ErrorCode

REQUIRED_CONFIGS: Final = {
    "check.expected.offsets": "true",
    "check.expected.offsets.source": "batch",
    "check.expected.offsets.scope": "partition",
}
"""What the topic must be like; the last two are so by default."""
PLAN_FILE: Final = "load.json"
_VERSION: Final = 1
_UNKNOWN_TOPIC: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_ATTEMPT_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the tasks of all attempts must agree about."""

    topic_id: UUID | None
    bases: tuple[int, ...]
    """Of each partition, the offset of its first row."""


async def make_plan(
    target: Target, columns: Columns, files: Sequence[str], checkpoint: Path | None
) -> Plan:
    """The plan of this load, which is that of its first attempt.

    :param files: The names of the source's files, in their order.
    :param checkpoint: The folder where the plan is kept. None: it begins at 0 everywhere.
    :raises LoadRefused: When the topic is none to load into, or the plan is another load's.
    :raises LoadInterrupted: When brokers do not answer in time.
    :raises OSError: When the folder cannot be read or written.
    """
    async with Client(target.bootstrap, client_id="fencepost-load") as client:
        topic_id, count = await _describe_topic(client, target)
        if checkpoint is None:
            return Plan(topic_id=topic_id, bases=(0,) * count)
        identity = {"topic": target.topic, "columns": asdict(columns), "files": list(files)}
        path = checkpoint / PLAN_FILE
        if not path.exists():
            partitions = (
                Partition(topic=target.topic, index=each, topic_id=topic_id)
                for each in range(count)
            )
            logs = [PartitionLog(client, each, patience_s=target.patience_s) for each in partitions]
            bases = tuple([(await log.bounds())[1] for log in logs])
            _write_plan(path, Plan(topic_id=topic_id, bases=bases), identity)
    return _read_plan(path, topic_id, count, identity)


# -- what the topic is like ---------------------------------------------------------------------


async def _describe_topic(client: Client, target: Target) -> tuple[UUID | None, int]:
    """The topic's id, and how many partitions it has."""

    async def look() -> TopicMetadata:
        return (await client.refresh(target.topic, timeout_s=_ATTEMPT_S)).topics[target.topic]

    async def look_at_configs() -> TopicConfigs:
        anybody = await client.any_broker(timeout_s=_ATTEMPT_S)
        return await topic_configs(
            anybody, target.topic, tuple(REQUIRED_CONFIGS), timeout_s=_ATTEMPT_S
        )

    found = await _ask_until_answered(client, look, target)
    if (await _ask_until_answered(client, look_at_configs, target)).values != REQUIRED_CONFIGS:
        needed = ", ".join(f"{name}={value}" for name, value in REQUIRED_CONFIGS.items())
        raise LoadRefused(f"topic {target.topic} must have {needed}")
    return found.topic_id, len(found.partitions)


async def _ask_until_answered(client: Client, ask: Callable[[], Awaitable[A]], target: Target) -> A:
    try:
        return await retry(
            client, ask, deadline_s=target.patience_s, retriable=RETRIABLE - {_UNKNOWN_TOPIC}
        )
    except RetryFailed as error:
        if error.error == _UNKNOWN_TOPIC:
            raise LoadRefused(f"there is no topic {target.topic}") from error
        if error.error is not None:
            raise LoadRefused(f"topic {target.topic}: {error}") from error
        raise LoadInterrupted(str(error)) from error


# -- what is written down -----------------------------------------------------------------------


def _write_plan(path: Path, plan: Plan, identity: Mapping[str, Any]) -> None:
    """Write the plan beside its place and then to it: it is there wholly, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    topic_id = None if plan.topic_id is None else str(plan.topic_id)
    content = {"version": _VERSION, **identity, "topic_id": topic_id, "bases": plan.bases}
    aside = path.with_suffix(".new")
    with aside.open("w") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    aside.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _read_plan(path: Path, topic_id: UUID | None, count: int, identity: Mapping[str, Any]) -> Plan:
    """The plan that is written down, if it is this load's."""
    try:
        content = json.loads(path.read_text())
        version, bases = content["version"], tuple(map(int, content["bases"]))
    except (ValueError, KeyError, TypeError) as error:
        raise LoadRefused(f"{path} is no plan of a load: {error}") from error
    if version != _VERSION:
        raise LoadRefused(f"{path} is of version {version}; {_VERSION} is known here")
    for name, value in identity.items():
        if content.get(name) != value:
            raise LoadRefused(f"{path} is the plan of a load with other {name}")
    if content.get("topic_id") != (None if topic_id is None else str(topic_id)):
        raise LoadRefused(f"{path} is of another topic of the name {identity['topic']}")
    if len(bases) != count:
        raise LoadRefused(f"{path} is of {len(bases)} partitions; there are {count} now")
    return Plan(topic_id=topic_id, bases=bases)


class UnreadableRows(Exception):
    """The source cannot be read: no such file, none of that format, or a row that is none."""


def load(
    spark: SparkSession,
    files: Files,
    target: Target,
    *,
    columns: Columns | None = None,
    checkpoint: Path | None = None,
    tell: Callable[[str], None] | None = None,
) -> Loaded:
    """Bring every row of some files into a topic, each once.

    To call it again with the same arguments is safe after whatever happened, and goes on: the
    files must be the same then, and the topic have as many partitions. Afterwards it finds all
    rows and appends nothing.

    :param checkpoint: A folder of the driver that keeps where the load began, for a topic that is
        not empty. None: it begins at offset 0 of every partition.
    :param tell: Called now and then with a line about the progress.
    :raises LoadRefused: When a partition has something else where a row belongs, or will not take
        one. The text names partition and offset.
    :raises LoadInterrupted: When a task failed too often; to be called again.
    :raises UnreadableRows: When the source cannot be read.
    :raises NoSuchColumns: When it has no such columns.
    """
    columns = columns or Columns()
    spark.dataSource.register(LoadSource)
    with _source_errors():
        rows = read_files(spark, files)
        names = sorted(rows.inputFiles())
        total = _total(rows, files) if tell is not None else None
    plan = asyncio.run(make_plan(target, columns, names, checkpoint))
    assignment = Assignment(
        bootstrap=target.bootstrap,
        topic=target.topic,
        topic_id=plan.topic_id,
        bases=plan.bases,
        limits=target.limits,
        patience_s=target.patience_s,
    )
    records = arrange(rows, files, columns, len(plan.bases), names)
    with nullcontext() if tell is None else ProgressReporter(target, plan, total, tell):
        report_data = _run(records, assignment)
    partitions = sorted(report_data["partitions"], key=lambda each: each["partition"])
    return Loaded(
        topic=target.topic, partitions=tuple(PartitionLoaded(**each) for each in partitions)
    )


def _run(records: DataFrame, assignment: Assignment) -> dict[str, Any]:
    """Run the job; the report of its writer."""
    with tempfile.TemporaryDirectory(prefix="fencepost-load-") as folder:
        report = Path(folder) / "report.json"
        writer = records.write.format(FORMAT).mode("append")
        writer = writer.option(ASSIGNMENT_OPTION, assignment.to_json()).option(
            REPORT_OPTION, str(report)
        )
        failure: Exception | None = None
        try:
            writer.save()
        except SPARK_ERRORS as error:
            failure = error
        report_data: dict[str, Any] = json.loads(report.read_text()) if report.exists() else {}
    if report_data.get("refused"):
        raise LoadRefused("; ".join(report_data["refused"])) from failure
    if failure is not None:
        reason = unreadable_row(failure)
        if reason is not None:
            raise UnreadableRows(reason) from failure
        raise LoadInterrupted(failure_reason(failure)) from failure
    return report_data


@contextmanager
def _source_errors() -> Iterator[None]:
    """What Spark says of the source, before any row is taken from it."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise UnreadableRows(unreadable_row(error) or failure_reason(error)) from error


def _total(rows: DataFrame, files: Files) -> int | None:
    """How many rows there are, where the files say so themselves."""
    return rows.count() if files.format == "parquet" else None


SPARK_ERRORS: Final = (PySparkException, Py4JError)
"""What Spark raises: the second where pyspark has no class for what the JVM threw, such as a row
that cannot be read, or a worker that died too often."""
_INTERRUPTED: Final = re.compile(rf"{LoadInterrupted.__name__}: (.+)")
_CAUSE: Final = re.compile(r"^(?:Caused by: |: )?[\w.$]+(?:Exception|Error): (.+)$", re.MULTILINE)
_FILE: Final = re.compile(r"Encountered error while reading file (\S+?)\.\s")
_OF_ROWS: Final = re.compile(
    r"(?:^|: )(\[(?:MALFORMED_RECORD_IN_PARSING|USER_RAISED_EXCEPTION)[^\n]*)", re.MULTILINE
)
"""What comes again however often it is tried. `source_rows` raises the second."""


def failure_reason(failure: Exception) -> str:
    """What a task said, of all that Spark says around it; otherwise the last cause."""
    text = str(failure)
    found = _INTERRUPTED.findall(text) or _CAUSE.findall(text) or [text.strip()]
    return _at_file(text, found[-1].strip().partition("\n")[0])


def unreadable_row(failure: Exception) -> str | None:
    """Which row cannot be read; None where it has failed for something else."""
    text = str(failure)
    found = _OF_ROWS.search(text)
    return None if found is None else _at_file(text, found[1].strip())


def _at_file(text: str, reason: str) -> str:
    file = _FILE.search(text)
    return reason if file is None or file[1] in reason else f"{file[1]}: {reason}"


PROGRESS_INTERVAL_S: Final = 1.0
_PROGRESS_ATTEMPT_S: Final = 2.0

Tell = Callable[[str], None]


class ProgressReporter:
    """Tells of it in a line now and then, from a thread of its own, while it is entered.

    It stands aside: where brokers do not answer it says nothing, and the load goes on.

    :param total: How many rows there are; None where that is not known.
    """

    def __init__(self, target: Target, plan: Plan, total: int | None, tell: Tell) -> None:
        self._target = target
        self._plan = plan
        self._total = total
        self._tell = tell
        self._ends: dict[int, int] = {}
        self._over = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        began, before = 0.0, -1
        first: int | None = None
        while not self._over.wait(PROGRESS_INTERVAL_S):
            asyncio.run(self._look())
            if not self._ends:
                continue
            there = sum(self._ends.values())
            if first is None:
                first, began = there, time.monotonic()
            if there != before:
                self._tell(
                    progress_line(there, self._total, there - first, time.monotonic() - began)
                )
            before = there

    async def _look(self) -> None:
        """Ask how long the partitions are; what is not told stays as it was last."""
        target = self._target
        async with Client(target.bootstrap, client_id="fencepost-load-progress") as client:
            for index, base in enumerate(self._plan.bases):
                if self._over.is_set():  # leaving the context waits for this
                    return
                partition = Partition(topic=target.topic, index=index)
                try:
                    leader = await client.leader(target.topic, index, timeout_s=_PROGRESS_ATTEMPT_S)
                    found = await list_offsets(
                        leader, partition, OffsetSpec.LATEST, timeout_s=_PROGRESS_ATTEMPT_S
                    )
                except KafkaClientError:
                    continue
                if not found.error:
                    self._ends[index] = max(found.offset - base, 0)


def progress_line(there: int, total: int | None, since: int, seconds: float) -> str:
    """The line of progress: ``120000 of 5000000 rows (2 %), 60000 rows/s``.

    :param there: Rows that are in the topic.
    :param since: How many of them came in these seconds.
    """
    of_all = "" if total is None else f" of {total}"
    share = f" ({100 * min(there, total) // total} %)" if total else ""
    return f"{there}{of_all} rows{share}, {since / max(seconds, 1e-3):.0f} rows/s"
