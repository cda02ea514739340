"""Records counted by their keys, as the records of another topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from fencepost.pipeline.stream.wanted import Counting

_MS_PER_S: Final = 1000


def count(records: DataFrame, counting: Counting) -> DataFrame:
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
        told: tuple[Column, ...] = (f.col("count"), f.col("bytes"))
        rows = records.groupBy("key").agg(*counted)
    else:
        window = f.window("timestamp", _interval(counting.window_s)).alias("window")
        start, end = (f.unix_millis(f"window.{edge}").alias(edge) for edge in ("start", "end"))
        told = (start, end, f.col("count"), f.col("bytes"))
        in_time = records.withWatermark("timestamp", _interval(counting.late_s))
        rows = in_time.groupBy(window, "key").agg(*counted)
    return rows.select("key", f.to_json(f.struct(*told)).alias("value"))


def _interval(seconds: float) -> str:
    return f"{round(seconds * _MS_PER_S)} milliseconds"
