"""Where a load begins is written down once, and is no other load's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from fencepost.client import Client, NewRecord, Partition, encode_records, produce
from fencepost.pipeline.load.job import PLAN_FILE, Plan, make_plan, progress_line
from fencepost.pipeline.load.options import Columns, LoadInterrupted, LoadRefused, Target, format_of
from fencepost.testing.cluster import AsyncCluster

TOPIC: Final = "loaded"
CHECKED: Final = {"check.expected.offsets": "true", "retention.ms": "-1"}
"""Some records are old."""
FILES: Final = ("file:/a", "file:/b")

pytestmark = pytest.mark.fencepost(
    brokers=1,
    topics=[{"name": TOPIC, "partitions": 2, "replication_factor": 1, "configs": CHECKED}],
)


async def plan(
    cluster: AsyncCluster,
    checkpoint: Path | None,
    columns: Columns | None = None,
    files: tuple[str, ...] = FILES,
) -> Plan:
    target = Target(bootstrap=cluster.bootstrap, topic=TOPIC, patience_s=5)
    return await make_plan(target, columns or Columns(), files, checkpoint)


async def append(cluster: AsyncCluster, at: int, count: int) -> None:
    async with Client(cluster.bootstrap) as client:
        batch = encode_records([NewRecord(value=b"", timestamp=1)] * count, base_offset=at)
        leader = await client.leader(TOPIC, 1)
        done = await produce(leader, Partition(topic=TOPIC, index=1), batch)
        assert done is not None
        assert done.error == 0


async def test_without_a_checkpoint_it_begins_at_0(fencepost_async: AsyncCluster) -> None:
    await append(fencepost_async, 0, 3)
    assert (await plan(fencepost_async, None)).bases == (0, 0)


async def test_with_one_where_the_log_ended_then(
    fencepost_async: AsyncCluster, tmp_path: Path
) -> None:
    kept = tmp_path / "not" / "there yet"
    await append(fencepost_async, 0, 3)
    first = await plan(fencepost_async, kept)
    assert first.bases == (0, 3)
    assert first.topic_id is not None
    await append(fencepost_async, 3, 4)
    assert await plan(fencepost_async, kept) == first
    assert [each.name for each in kept.iterdir()] == [PLAN_FILE]


async def test_that_of_another_load_is_refused(
    fencepost_async: AsyncCluster, tmp_path: Path
) -> None:
    await plan(fencepost_async, tmp_path)
    with pytest.raises(LoadRefused, match="a load with other columns"):
        await plan(fencepost_async, tmp_path, Columns(key="k"))
    with pytest.raises(LoadRefused, match="a load with other files"):
        await plan(fencepost_async, tmp_path, files=("file:/a",))
    await fencepost_async.delete_topic(TOPIC)
    await fencepost_async.create_topic(
        TOPIC, partitions=2, replication_factor=1, configs=dict(CHECKED)
    )
    with pytest.raises(LoadRefused, match="of another topic of the name loaded"):
        await plan(fencepost_async, tmp_path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"version": 2}, "is of version 2"),
        ({"bases": [0]}, "is of 1 partitions; there are 2 now"),
        ({"bases": None}, "is no plan of a load"),
    ],
)
async def test_one_that_says_something_else(
    fencepost_async: AsyncCluster, tmp_path: Path, change: dict[str, object], why: str
) -> None:
    await plan(fencepost_async, tmp_path)
    path = tmp_path / PLAN_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(LoadRefused, match=why):
        await plan(fencepost_async, tmp_path)
    path.write_text("{")
    with pytest.raises(LoadRefused, match="is no plan of a load"):
        await plan(fencepost_async, tmp_path)


async def test_brokers_that_are_not_there_interrupt_it() -> None:
    target = Target(bootstrap="127.0.0.1:1", topic=TOPIC, patience_s=0.2)
    with pytest.raises(LoadInterrupted, match=r"not within 0\.2 s"):
        await make_plan(target, Columns(), FILES, None)


def test_how_far_it_is() -> None:
    assert progress_line(0, 10, 0, 1.0) == "0 of 10 rows (0 %), 0 rows/s"
    assert progress_line(500, 1_000, 300, 2.0) == "500 of 1000 rows (50 %), 150 rows/s"
    assert progress_line(1_003, 1_000, 3, 1.0) == "1003 of 1000 rows (100 %), 3 rows/s"
    assert progress_line(5, None, 5, 2.5) == "5 rows, 2 rows/s"
    assert progress_line(0, 0, 0, 0.0) == "0 of 0 rows, 0 rows/s"


def test_formats_by_names() -> None:
    names = ["a.parquet", "a.snappy.parquet", "b.csv.gz", "c.jsonl", "d.NDJSON", "e.txt", "f.gz"]
    expected = ["parquet", "parquet", "csv", "json", "json", None, None]
    assert [format_of(name) for name in names] == expected
