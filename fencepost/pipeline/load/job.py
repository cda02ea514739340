"""The load as one Spark job."""

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from fencepost.pipeline.load.failures import FAILURES, reason, unreadable
from fencepost.pipeline.load.outcomes import (
    Loaded,
    LoadInterrupted,
    LoadRefused,
    PartitionLoaded,
)
from fencepost.pipeline.load.plan import make_plan
from fencepost.pipeline.load.progress import Progress
from fencepost.pipeline.load.rows import arrange, read
from fencepost.pipeline.load.sink import ASSIGNMENT, NAME, REPORT, LoadSource
from fencepost.pipeline.load.tasks import Assignment
from fencepost.pipeline.load.wanted import Columns, Files, Target


class NoSource(Exception):
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
    :param tell: Is told in a line, now and then, how far it has come.
    :raises LoadRefused: When a partition has something else where a row belongs, or will not take
        one. The text names partition and offset.
    :raises LoadInterrupted: When a task failed too often; to be called again.
    :raises NoSource: When the source cannot be read.
    :raises NoSuchColumns: When it has no such columns.
    """
    columns = columns or Columns()
    spark.dataSource.register(LoadSource)
    with _reading():
        rows = read(spark, files)
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
    with nullcontext() if tell is None else Progress(target, plan, total, tell):
        told = _run(records, assignment)
    partitions = sorted(told["partitions"], key=lambda each: each["partition"])
    return Loaded(
        topic=target.topic, partitions=tuple(PartitionLoaded(**each) for each in partitions)
    )


def _run(records: DataFrame, assignment: Assignment) -> dict[str, Any]:
    """Run the job; the report of its writer."""
    with tempfile.TemporaryDirectory(prefix="fencepost-load-") as folder:
        report = Path(folder) / "report.json"
        writer = records.write.format(NAME).mode("append")
        writer = writer.option(ASSIGNMENT, assignment.to_json()).option(REPORT, str(report))
        failure: Exception | None = None
        try:
            writer.save()
        except FAILURES as error:
            failure = error
        told: dict[str, Any] = json.loads(report.read_text()) if report.exists() else {}
    if told.get("refused"):
        raise LoadRefused("; ".join(told["refused"])) from failure
    if failure is not None:
        said = unreadable(failure)
        if said is not None:
            raise NoSource(said) from failure
        raise LoadInterrupted(reason(failure)) from failure
    return told


@contextmanager
def _reading() -> Iterator[None]:
    """What Spark says of the source, before any row is taken from it."""
    try:
        yield
    except FAILURES as error:
        raise NoSource(unreadable(error) or reason(error)) from error


def _total(rows: DataFrame, files: Files) -> int | None:
    """How many rows there are, where the files say so themselves."""
    return rows.count() if files.format == "parquet" else None
