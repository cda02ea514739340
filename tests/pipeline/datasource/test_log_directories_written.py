"""What brokers wrote is found, and nothing is wrong with it: a real Kafka's, and a fencepost's."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fencepost.pipeline.datasource.log_directories import find_log_dirs, find_replicas
from fencepost.pipeline.datasource.schemas import RECORDS
from fencepost.pipeline.datasource.segment_scan import Checks, scan_folder, scan_records
from fencepost.pipeline.datasource.segments import list_segments
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import iter_headers
from tests.harness.kafka_writes import KafkaWrites, KafkaWrote

Key = tuple[str, int]


@pytest.fixture(params=["killed", "stopped"])
def wrote(request: pytest.FixtureRequest, kafka_wrote: KafkaWrites) -> KafkaWrote:
    return kafka_wrote.killed if request.param == "killed" else kafka_wrote.stopped


def test_a_kafkas_log_directory(wrote: KafkaWrote) -> None:
    (log_dir,) = find_log_dirs(wrote.folder)
    assert (log_dir.broker, log_dir.clean) == (1, wrote.folder.name == "stopped")
    replicas = {(each.topic, each.partition): each for each in find_replicas([log_dir])}
    assert wrote.partitions.keys() <= replicas.keys()
    assert "deleted" not in {topic for topic, _ in replicas}
    assert "__cluster_metadata" not in {topic for topic, _ in replicas}
    assert len(replicas["plain", 0].segments) > 3
    assert [each.active for each in replicas["plain", 0].segments][-2:] == [False, True]


def test_a_kafkas_batches(wrote: KafkaWrote) -> None:
    rows = scan_folder(wrote.folder, checks=Checks.RECORDS)
    assert rows.filter(pa.compute.is_valid(rows["problem"])).to_pylist() == []
    for key, written in wrote.partitions.items():
        found = [
            (row["base_offset"], row["last_offset"], row["count"], row["epoch"], row["crc"])
            for row in of(rows, key)
            if row["base_offset"] is not None and row["last_offset"] >= written.log_start_offset
        ]
        assert found == [
            (
                header.base_offset,
                header.last_offset,
                header.record_count,
                header.partition_leader_epoch,
                header.crc,
            )
            for _, header in iter_headers(written.batches)
        ], key


def test_a_kafkas_records(wrote: KafkaWrote) -> None:
    read = records_of(wrote.folder)
    for key, written in wrote.partitions.items():
        found = [
            (row["offset"], row["timestamp"], row["key"], row["value"], row["control"])
            for row in of(read, key)
            if row["offset"] >= written.log_start_offset
        ]
        assert found == [
            (record.offset, record.timestamp, record.key, record.value, header.is_control)
            for at, header in iter_headers(written.batches)
            for record in iter_records(written.batches, at)
            if record.offset >= written.log_start_offset
        ], key


def of(table: pa.Table, key: Key) -> Iterable[dict[str, Any]]:
    """The rows of one partition."""
    mask = pa.compute.and_(
        pa.compute.equal(table["topic"], key[0]), pa.compute.equal(table["partition"], key[1])
    )
    rows: list[dict[str, Any]] = table.filter(mask).to_pylist()
    return rows


def records_of(folder: Path) -> pa.Table:
    return pa.Table.from_batches(
        [batch for files in list_segments(str(folder), None) for batch in scan_records(files)],
        RECORDS,
    )
