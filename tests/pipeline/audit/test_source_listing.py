"""Tasks read all there is of a cluster: a driver that does not see its files finds the same."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fencepost.pipeline.audit import metadata_rows
from fencepost.pipeline.audit.job import AuditOptions, audit, list_logs
from fencepost.pipeline.audit.metadata_rows import FoundTraceFile, ReplicaPart, ScanShare
from fencepost.pipeline.audit.partition_metadata import (
    partition_metadata,
    read_partition_metadata,
)
from fencepost.pipeline.audit.source_listing import one_a_task
from tests.harness.recorded_cluster import Recorded, recorded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(tmp_path_factory.mktemp("cluster"), seed=3, minutes=1)


def options(cluster: Recorded) -> AuditOptions:
    return AuditOptions(
        directory=str(cluster.data), trace=str(cluster.trace), remote=cluster.tier, now_ms=0
    )


def test_a_driver_without_the_directories_finds_the_same(
    spark: SparkSession, cluster: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = audit(spark, options(cluster))
    assert spark._jvm is not None
    # Relative to where the JVM was started, which its Python workers share; the driver goes away.
    there = Path(spark._jvm.java.lang.System.getProperty("user.dir"))
    data, trace = (os.path.relpath(each, there) for each in (cluster.data, cluster.trace))
    elsewhere = tmp_path / "as" / "deep" / "as" / "need" / "be"
    elsewhere.mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    assert not Path(data).exists()
    assert not Path(trace).exists()
    found = audit(spark, replace(options(cluster), directory=data, trace=trace))
    assert found.summaries == expected.summaries
    assert found.violations.num_rows == expected.violations.num_rows
    assert found.directories.directories == expected.directories.directories > 1


def test_what_tasks_have_read_is_not_read_again(
    spark: SparkSession, cluster: Recorded, tmp_path: Path
) -> None:
    there = tmp_path / "cluster"
    shutil.copytree(cluster.data.parent, there)
    expected = read_partition_metadata(there / "data", remote=(there / "tier").as_uri())
    wanted = replace(
        options(cluster),
        directory=str(there / "data"),
        trace=str(there / "trace"),
        remote=(there / "tier").as_uri(),
        rules=("torn-tail",),
    )
    listing = list_logs(spark, wanted)
    shutil.rmtree(there)
    rows = metadata_rows.from_arrow(listing.bucket_rows.toArrow())
    assert partition_metadata(rows, with_objects=True) == expected
    assert listing.partitions == len(expected)
    replicas = sum(len(each.replicas) for each in expected.values())
    assert listing.rows(ReplicaPart).count() == listing.count(ReplicaPart) == replicas
    assert listing.rows(FoundTraceFile).count() == listing.count(FoundTraceFile) == 1
    listing.unpersist()


def test_each_share_has_a_task_of_its_own(spark: SparkSession) -> None:
    shares = [
        metadata_rows.MetadataRow(value=ScanShare(segments=()), key=str(number))
        for number in range(7)
    ]
    tables = [batch.to_pylist() for batch in metadata_rows.to_batches(shares)]
    frame = spark.createDataFrame(tables[0], "kind string, key string, value binary").repartition(3)
    sizes = one_a_task(frame, 7).rdd.mapPartitions(lambda rows: [sum(1 for _ in rows)]).collect()
    assert sizes == [1] * 7
