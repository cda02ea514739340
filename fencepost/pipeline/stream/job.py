"""One job of Structured Streaming: preflight checks, session, and the query until it ends.

The preflight checks find in seconds what Spark would report after a minute of retries, and less
clearly. A query writes records to Parquet files, or counts them by key into another topic.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit
from urllib.request import url2pathname

from fencepost.client import Client, KafkaClientError
from fencepost.client.errors import RETRIABLE
from fencepost.pipeline.requirements import CannotRunError, require_packages
from fencepost.pipeline.session import session
from fencepost.pipeline.stream.options import (
    CountOptions,
    OnDataLoss,
    SourceOptions,
    Trigger,
    TriggerOptions,
)
from fencepost.pipeline.stream.query_monitor import explain_failure, monitor_query
from fencepost.protocol.errors import ErrorCode, error_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from fencepost.client.cluster import ClusterMetadata
    from fencepost.pipeline.stream.query_monitor import MicroBatch


TIMEOUT_S: Final = 10.0
_SECURITY: Final = "kafka.security.protocol"
_PLAIN: Final = "PLAINTEXT"


def check_topics(source: SourceOptions, target: str | None = None) -> None:
    """Look for the brokers and the topics.

    Brokers that take encrypted connections alone are not asked.

    :param target: The topic that is written to.
    :raises CannotRunError: When no broker answers, or a topic is missing or not to be had.
    """
    if source.options.get(_SECURITY, _PLAIN) != _PLAIN:
        return
    topics = [*source.topics, *([target] if target is not None else [])]
    try:
        seen = asyncio.run(_metadata(source.bootstrap, topics))
    except ValueError as error:
        raise CannotRunError(f"--bootstrap: {error}") from None
    except KafkaClientError as error:
        raise CannotRunError(f"no broker answers at {source.bootstrap}: {error}") from None
    for topic in topics:
        found = seen.topics.get(topic)
        if found is None or found.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise CannotRunError(f"there is no topic {topic} at {source.bootstrap}")
        if found.error and found.error not in RETRIABLE:
            raise CannotRunError(f"topic {topic}: {error_name(found.error)}")
    if target in source.topics:
        raise CannotRunError(f"{target} is read, and cannot be written to as well")


async def _metadata(bootstrap: str, topics: Sequence[str]) -> ClusterMetadata:
    async with Client(bootstrap, client_id="fencepost-stream") as client:
        return await client.refresh(*topics, timeout_s=TIMEOUT_S)


def check_output_directory(pace: TriggerOptions, directory: str) -> None:
    """Look whether a directory belongs to a checkpoint, where both are folders of this machine.

    Spark numbers batches by the checkpoint. What the directory has of a greater number it takes for
    done, and leaves out without a word.

    :raises CannotRunError: When the directory has batches that the checkpoint does not know.
    """
    written, known = _local_path(directory), _local_path(pace.checkpoint)
    if written is None or known is None:
        return
    done = _newest_batch(written / "_spark_metadata")
    if done > _newest_batch(known / "offsets"):
        raise CannotRunError(
            f"{directory} has batches up to {done} that the checkpoint {pace.checkpoint} does not"
            " know: give the checkpoint that they were written with, or another directory"
        )


def _local_path(place: str) -> Path | None:
    """A path or a ``file:`` URL as a path; None for what is elsewhere."""
    url = urlsplit(place)
    if not url.scheme:
        return Path(place)
    return Path(url2pathname(url.path)) if url.scheme == "file" else None


def _newest_batch(folder: Path) -> int:
    """The greatest number of a batch that has a file in a folder of Spark's; -1 where none has."""
    names = (each.name.removesuffix(".compact") for each in folder.glob("[0-9]*"))
    return max((int(name) for name in names if name.isdecimal()), default=-1)


FORMAT: Final = "kafka"
_CLIENT_PREFIX: Final = "kafka."
COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


def read_topics(spark: SparkSession, source: SourceOptions) -> DataFrame:
    """The records of the topics, with `COLUMNS`, as they come."""
    reader = (
        spark.readStream.format(FORMAT)
        .options(**source.options)
        .options(**client_options(source))
        .option("subscribe", ",".join(source.topics))
        .option("startingOffsets", source.start.value)
        .option("failOnDataLoss", source.on_data_loss is OnDataLoss.FAIL)
        .option("includeHeaders", True)
    )
    if source.max_offsets is not None:
        reader = reader.option("maxOffsetsPerTrigger", source.max_offsets)
    return reader.load().select(*COLUMNS)


def client_options(source: SourceOptions) -> dict[str, str]:
    """What the connector is told of its Kafka clients, whether they read or write."""
    given = {key: value for key, value in source.options.items() if key.startswith(_CLIENT_PREFIX)}
    return {**given, f"{_CLIENT_PREFIX}bootstrap.servers": source.bootstrap}


_MS_PER_S: Final = 1000


def count_by_key(records: DataFrame, counting: CountOptions) -> DataFrame:
    """A row for each key, or for each key and window: its key and, as JSON, what was counted.

    ``count`` is of records, ``bytes`` of their values. A window also has ``start`` (inclusive) and
    ``end`` (exclusive), in milliseconds since the epoch.

    :param records: With key, value and timestamp.
    """
    from pyspark.sql import functions as f

    counted: tuple[Column, ...] = (
        f.count("*").alias("count"),
        f.coalesce(f.sum(f.octet_length("value")), f.lit(0)).alias("bytes"),
    )
    if counting.window_s is None:
        columns: tuple[Column, ...] = (f.col("count"), f.col("bytes"))
        rows = records.groupBy("key").agg(*counted)
    else:
        window = f.window("timestamp", _interval(counting.window_s)).alias("window")
        start, end = (f.unix_millis(f"window.{edge}").alias(edge) for edge in ("start", "end"))
        columns = (start, end, f.col("count"), f.col("bytes"))
        in_time = records.withWatermark("timestamp", _interval(counting.late_s))
        rows = in_time.groupBy(window, "key").agg(*counted)
    return rows.select("key", f.to_json(f.struct(*columns)).alias("value"))


def _interval(seconds: float) -> str:
    return f"{round(seconds * _MS_PER_S)} milliseconds"


def start_parquet_query(
    spark: SparkSession, source: SourceOptions, pace: TriggerOptions, directory: str
) -> StreamingQuery:
    """Write every record to files in a directory, each once, however often the query is restarted.

    That holds for who reads ``_spark_metadata`` in it, as Spark does: it names the files of the
    batches that were finished. Others may lie beside them.
    """
    records = read_topics(spark, source)
    return _start(records.writeStream.format("parquet").option("path", directory), pace)


def start_count_query(
    spark: SparkSession,
    source: SourceOptions,
    pace: TriggerOptions,
    target: str,
    counting: CountOptions,
) -> StreamingQuery:
    """Count records by their keys, and append the counts to a topic, at least once.

    Without windows a count is appended when it has grown; with windows once, when its window is
    over. A batch that is done again after a failure appends the same counts again.
    """
    counted = count_by_key(read_topics(spark, source), counting)
    writer = (
        counted.writeStream.format(FORMAT)
        .options(**client_options(source))
        .option("topic", target)
        .outputMode("update" if counting.window_s is None else "append")
    )
    return _start(writer, pace)


def _start(writer: DataStreamWriter, pace: TriggerOptions) -> StreamingQuery:
    if pace.trigger is Trigger.AVAILABLE_NOW:
        writer = writer.trigger(availableNow=True)
    else:
        interval_ms = round(pace.interval_s * _MS_PER_S)
        writer = writer.trigger(processingTime=f"{interval_ms} milliseconds")
    return writer.option("checkpointLocation", pace.checkpoint).start()


_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_CONFIGS: Final = {
    # A streaming query switches it off anyway, and warns.
    "spark.sql.adaptive.enabled": "false",
    # They are looked at a few times a second.
    "spark.sql.streaming.numRecentProgressUpdates": "20",
}


def write_files(
    source: SourceOptions,
    pace: TriggerOptions,
    directory: str,
    *,
    master: str | None,
    tell: Callable[[MicroBatch], None],
) -> None:
    """Write topics to Parquet, until all is read or SIGTERM or Ctrl-C comes.

    :param tell: Called with each batch that is done.
    :raises CannotRunError: When something is missing, or will not do.
    :raises StreamFailedError: When the query failed.
    """
    require_packages()
    check_topics(source)
    check_output_directory(pace, directory)
    _run(
        f"stream {','.join(source.topics)} to {directory}",
        lambda spark: start_parquet_query(spark, source, pace, directory),
        master,
        tell,
    )


def write_counts(
    source: SourceOptions,
    pace: TriggerOptions,
    target: str,
    counting: CountOptions,
    *,
    master: str | None,
    tell: Callable[[MicroBatch], None],
) -> None:
    """Count the records of topics into another, as `write_files` does."""
    require_packages()
    check_topics(source, target)
    _run(
        f"stream {','.join(source.topics)} to {target}",
        lambda spark: start_count_query(spark, source, pace, target, counting),
        master,
        tell,
    )


def _run(
    app: str,
    begin: Callable[[SparkSession], StreamingQuery],
    master: str | None,
    tell: Callable[[MicroBatch], None],
) -> None:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    opened = session(app, master=master, connector=True, configs=_CONFIGS)
    with _StopSignals() as stop, opened as spark:
        stop.listen()  # again: Spark has taken Ctrl-C for itself
        try:
            query = begin(spark)
        except (PySparkException, Py4JError) as error:
            raise CannotRunError(
                f"Spark refuses the query: {explain_failure(str(error))}"
            ) from None
        monitor_query(query, tell, lambda: stop.requested)


class _StopSignals:
    """Whether the program was asked to end, by SIGTERM or Ctrl-C, within a context."""

    def __init__(self) -> None:
        self.requested = False
        self._before = {number: signal.getsignal(number) for number in _SIGNALS}

    def __enter__(self) -> Self:
        self.listen()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def listen(self) -> None:
        for number in _SIGNALS:
            signal.signal(number, self._ask)

    def _ask(self, *_: object) -> None:
        self.requested = True
