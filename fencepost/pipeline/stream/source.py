"""The topics as a table that grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fencepost.pipeline.stream.wanted import OnDataLoss

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from fencepost.pipeline.stream.wanted import Source

FORMAT: Final = "kafka"
_CLIENTS: Final = "kafka."
COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


def read(spark: SparkSession, source: Source) -> DataFrame:
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


def client_options(source: Source) -> dict[str, str]:
    """What the connector is told of its Kafka clients, whether they read or write."""
    given = {key: value for key, value in source.options.items() if key.startswith(_CLIENTS)}
    return {**given, f"{_CLIENTS}bootstrap.servers": source.bootstrap}
