"""The whole of a job: what it needs is looked at, its session opened, its query run to the end."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self

from fencepost.pipeline.needs import CannotRunError, need_packages
from fencepost.pipeline.session import session
from fencepost.pipeline.stream import sinks
from fencepost.pipeline.stream.ahead import look_at_files, look_at_topics
from fencepost.pipeline.stream.failures import explain
from fencepost.pipeline.stream.running import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from fencepost.pipeline.stream.progress import Batch
    from fencepost.pipeline.stream.wanted import Counting, Pace, Source

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_CONFIGS: Final = {
    # A streaming query switches it off anyway, and warns.
    "spark.sql.adaptive.enabled": "false",
    # They are looked at a few times a second.
    "spark.sql.streaming.numRecentProgressUpdates": "20",
}


def write_files(
    source: Source, pace: Pace, directory: str, *, master: str | None, tell: Callable[[Batch], None]
) -> None:
    """Write topics to Parquet, until all is read or SIGTERM or Ctrl-C comes.

    :param tell: Called with each batch that is done.
    :raises CannotRunError: When something is missing, or will not do.
    :raises StreamFailedError: When the query failed.
    """
    need_packages()
    look_at_topics(source)
    look_at_files(pace, directory)
    _run(
        f"stream {','.join(source.topics)} to {directory}",
        lambda spark: sinks.to_parquet(spark, source, pace, directory),
        master,
        tell,
    )


def write_counts(
    source: Source,
    pace: Pace,
    target: str,
    counting: Counting,
    *,
    master: str | None,
    tell: Callable[[Batch], None],
) -> None:
    """Count the records of topics into another, as `write_files` does."""
    need_packages()
    look_at_topics(source, target)
    _run(
        f"stream {','.join(source.topics)} to {target}",
        lambda spark: sinks.to_topic(spark, source, pace, target, counting),
        master,
        tell,
    )


def _run(
    app: str,
    begin: Callable[[SparkSession], StreamingQuery],
    master: str | None,
    tell: Callable[[Batch], None],
) -> None:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    opened = session(app, master=master, connector=True, configs=_CONFIGS)
    with _Stop() as stop, opened as spark:
        stop.listen()  # again: Spark has taken Ctrl-C for itself
        try:
            query = begin(spark)
        except (PySparkException, Py4JError) as error:
            raise CannotRunError(f"Spark refuses the query: {explain(str(error))}") from None
        run(query, tell, lambda: stop.asked)


class _Stop:
    """Whether the program was asked to end, by SIGTERM or Ctrl-C, within a context."""

    def __init__(self) -> None:
        self.asked = False
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
        self.asked = True
