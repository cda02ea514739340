"""A topic of one partition on three brokers, and queries that read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from fencepost.pipeline.stream.job import start_parquet_query
from fencepost.pipeline.stream.options import OnDataLoss, SourceOptions, Trigger, TriggerOptions
from fencepost.pipeline.stream.query_monitor import OffsetRange, new_batches
from fencepost.verbs.methods import Verbs
from fencepost.verbs.remote import Remote
from tests.harness.confluent import delivered, send
from tests.harness.served_cluster import Cluster, configs, serve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TOPIC: Final = "orders"
CLIENT: Final = "spark"
WAIT_S: Final = 90
QUICK: Final = {
    "kafka.client.id": CLIENT,
    # Where offsets go back, Spark asks three times, by default a second apart.
    "fetchOffset.retryIntervalMs": "10",
}
SETTINGS: Final = {
    # A replica may be held without being dropped from the ISR.
    "replica.lag.time.max.ms": "600000",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The cluster, and the folder of one query's files and checkpoint."""

    spark: SparkSession
    cluster: Cluster
    verbs: Verbs
    folder: Path
    queries: list[StreamingQuery] = field(default_factory=list)

    @property
    def files(self) -> Path:
        return self.folder / "files"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def send(self, letter: str, start: int, end: int, acks: str = "all") -> None:
        """Send records ``letter + number``, the end exclusive."""
        values = [f"{letter}{n}".encode() for n in range(start, end)]
        delivered(send(self.cluster, TOPIC, values, acks=acks))

    def begin(
        self,
        trigger: Trigger = Trigger.MICRO_BATCHES,
        *,
        on_data_loss: OnDataLoss = OnDataLoss.FAIL,
        max_offsets: int | None = None,
        **options: str,
    ) -> StreamingQuery:
        """Start or go on: topic to Parquet. Options of the connector have ``_`` for ``.``."""
        source = SourceOptions(
            bootstrap=self.cluster.bootstrap,
            topics=(TOPIC,),
            on_data_loss=on_data_loss,
            max_offsets=max_offsets,
            options={**QUICK, **dotted(options)},
        )
        pace = TriggerOptions(checkpoint=str(self.checkpoint), trigger=trigger)
        query = start_parquet_query(self.spark, source, pace, str(self.files))
        self.queries.append(query)
        return query

    def catch_up(self, on_data_loss: OnDataLoss = OnDataLoss.FAIL) -> list[tuple[int, OffsetRange]]:
        """Go on until all is read that is there; the batches that took."""
        query = self.begin(Trigger.AVAILABLE_NOW, on_data_loss=on_data_loss)
        assert query.awaitTermination(WAIT_S), "it does not end"
        return batches(query)

    def read(self) -> list[tuple[int, str]]:
        """Offset and value of what the files hold, in order."""
        rows = self.spark.read.parquet(str(self.files)).select("offset", "value").collect()
        return sorted((row.offset, bytes(row.value).decode()) for row in rows)

    def answers(self, api: str) -> list[Mapping[str, Any]]:
        """What Spark was answered about the partition, the oldest first."""
        return [
            partition
            for exchange in self.verbs.trace(api=api, client_id=CLIENT, limit=4096)
            for topic in _topics(exchange.response)
            for partition in topic["partitions"]
        ]


def _topics(response: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = (response or {}).get("topics") or ()
    return found


@contextmanager
def ground(spark: SparkSession, folder: Path, **settings: str) -> Iterator[Ground]:
    """A served cluster with the topic. Queries that still run are stopped with it.

    :param settings: Broker configs, with ``_`` for ``.``.
    """
    served = serve(folder / "fencepost.log", *configs({**SETTINGS, **dotted(settings)}))
    assert served.control is not None
    with closing(Remote(served.control)) as remote:
        verbs = Verbs(remote)
        verbs.create_topic(TOPIC, assignments=[[1, 2, 3]])
        made = Ground(spark=spark, cluster=served, verbs=verbs, folder=folder)
        try:
            yield made
        finally:
            for query in made.queries:
                query.stop()
    served.stop()


def dotted(given: Mapping[str, str]) -> dict[str, str]:
    """Names with ``.`` for ``_``."""
    return {key.replace("_", "."): value for key, value in given.items()}


def batches(query: StreamingQuery) -> list[tuple[int, OffsetRange]]:
    """Records and range of each batch that a query has done, in their order."""
    done = new_batches(query.recentProgress, -1)
    return [(each.records, span) for each in done for span in each.ranges]


def spans(query: StreamingQuery) -> list[tuple[int | None, int]]:
    """From where to where its batches went."""
    return [(span.start, span.end) for _, span in batches(query)]


def numbered(letter: str, start: int, end: int) -> list[tuple[int, str]]:
    """What is read of records whose number is their offset."""
    return [(n, f"{letter}{n}") for n in range(start, end)]


def failure(query: StreamingQuery) -> str:
    """The text of the exception that a query ends with."""
    from pyspark.errors import StreamingQueryException

    with pytest.raises(StreamingQueryException):
        query.awaitTermination(WAIT_S)
    return str(query.exception())
