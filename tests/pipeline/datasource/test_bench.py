"""The benchmark of the audit measures what it says it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench import (
    pipeline_audit,
    pipeline_incremental,
    pipeline_large_partition,
    pipeline_partitions,
    rows,
    servers,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_measurement(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_audit, "TURNS", 1)
    monkeypatch.setattr(pipeline_audit, "WARM_UPS", 0)
    values = pipeline_audit.measure(servers.Fencepost(), 3000)
    assert values.keys() <= {row.key for row in rows.ROWS}
    assert len(values) == 3
    assert all(value > 0 for value in values.values())
    assert spark.range(3).count() == 3  # the session is not the benchmark's to stop


def test_a_measurement_of_many_partitions(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_partitions, "TURNS", 1)
    values = pipeline_partitions.measure(servers.Fencepost(), 5)
    assert values.keys() <= {row.key for row in rows.ROWS}
    assert all(value > 0 for value in values.values())


def test_a_measurement_of_a_partition_that_has_grown(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_incremental, "TURNS", 1)
    monkeypatch.setattr(pipeline_large_partition, "SEGMENTS", 5)
    values = pipeline_incremental.measure(servers.Fencepost(), 6)
    assert values.keys() <= {row.key for row in rows.ROWS}
    assert 0 < values["pipeline_incremental_bytes"] < 100
    assert values["pipeline_incremental_time"] > 0


def test_a_measurement_of_one_partition(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_large_partition, "TURNS", 1)
    monkeypatch.setattr(pipeline_large_partition, "SEGMENTS", 5)
    values = pipeline_large_partition.measure(servers.Fencepost(), 6)
    assert values.keys() <= {row.key for row in rows.ROWS}
    assert len(values) == 3
    assert values["pipeline_large_partition_rss"] > 30
    assert spark.range(3).count() == 3
