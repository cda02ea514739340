"""What fencepost's own brokers left when they were killed, in their logs and in the tier."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fencepost.pipeline.datasource.log_directories import (
    UnreadableSource,
    find_log_dirs,
    find_replicas,
)
from fencepost.pipeline.datasource.schemas import RECORDS
from fencepost.pipeline.datasource.segment_scan import Checks, scan_folder, scan_records
from fencepost.pipeline.datasource.segments import list_segments
from fencepost.pipeline.datasource.tier import Tier
from fencepost.storage.tier.object_store import ObjectKind, object_key
from tests.pipeline.datasource.leaving import Left


def test_nothing_is_wrong(left: Left) -> None:
    rows = scan_folder(left.folder, remote=left.remote, checks=Checks.RECORDS)
    assert rows.filter(pc.is_valid(rows["problem"])).to_pylist() == []
    counts = rows.group_by(["topic", "place", "broker"]).aggregate([("count", "sum")]).to_pylist()
    found = {(row["topic"], row["place"], row["broker"]): row["count_sum"] for row in counts}
    assert found.keys() >= {(left.topic, "tier", None), (left.topic, "log", 3)}
    assert found[left.topic, "tier", None] > 400
    assert {place for topic, place, _ in found if topic == left.compacted} == {"log"}


def test_only_some_topics(left: Left) -> None:
    rows = scan_folder(left.folder, remote=left.remote, topics=[left.topic])
    assert set(rows["topic"].to_pylist()) == {left.topic}
    assert set(rows["place"].to_pylist()) == {"log", "tier"}
    rows = scan_folder(left.folder, remote=left.remote, topics=[left.compacted])
    assert set(rows["topic"].to_pylist()) == {left.compacted}


def test_records_of_log_and_tier_are_what_was_sent(left: Left) -> None:
    tier = Tier.open(left.remote)
    read = pa.Table.from_batches(
        [
            batch
            for files in list_segments(str(left.folder), tier, [left.topic])
            for batch in scan_records(files, tier)
        ],
        RECORDS,
    ).to_pylist()
    for partition, values in enumerate(left.values):
        for broker in (1, 2, 3):
            found = {
                row["offset"]: row["value"]
                for row in read
                if row["partition"] == partition and row["broker"] in {broker, None}
            }
            assert [found[offset] for offset in range(len(values))] == values


def test_a_tier_alone(left: Left) -> None:
    rows = scan_folder(None, remote=left.remote)
    assert set(rows["place"].to_pylist()) == {"tier"}
    assert rows["segment_id"].null_count == 0


def test_replicas(left: Left) -> None:
    dirs = find_log_dirs(left.folder)
    assert [(each.broker, each.clean) for each in dirs] == [(1, False), (2, False), (3, False)]
    replicas = find_replicas(dirs, [left.topic])
    assert [(each.partition, each.broker) for each in replicas] == [
        (partition, broker) for partition in (0, 1) for broker in (1, 2, 3)
    ]


# -- the tier -------------------------------------------------------------------------------------


def test_segments_of_the_tier(left: Left) -> None:
    tier = Tier.open(left.remote)
    segments = tier.segments()
    assert tier.unreadable == ()
    places = [(each.partition.index, each.start_offset) for each in segments]
    assert places == sorted(places)
    assert {each.partition.topic for each in segments} == {left.topic}
    log = tier.read(object_key(segments[0], ObjectKind.LOG))
    assert len(log) == segments[0].size_bytes
    assert tier.segments(["other"]) == ()


def test_metadata_that_say_nothing(left: Left, tmp_path: Path) -> None:
    tier = copied(left, tmp_path)
    (broken, *others) = tier.segments()
    key = object_key(broken, ObjectKind.METADATA)
    (tmp_path / "tier" / key).write_bytes(b"{}")
    assert tier.segments() == tuple(others)
    ((told, why),) = tier.unreadable
    assert told == key
    assert "no metadata" in why


def test_objects_that_are_gone(left: Left, tmp_path: Path) -> None:
    tier = copied(left, tmp_path)
    first, second, *_ = tier.segments()
    for segment, part in ((first, ObjectKind.LOG), (second, ObjectKind.TIME_INDEX)):
        (tmp_path / "tier" / object_key(segment, part)).unlink()
    rows = scan_folder(None, remote=tier.url)
    wrong = rows.filter(pc.is_valid(rows["problem"])).to_pylist()
    assert [(row["problem"], row["segment"]) for row in wrong] == [
        ("missing", first.start_offset),
        ("missing", second.start_offset),
    ]
    assert all("is not there" in row["message"] for row in wrong)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("memory:", "no other process can read it"),
        ("ftp://x", "is not memory:, file:///FOLDER or s3://BUCKET"),
        ("file:///there/is/none", "there is no tier in /there/is/none"),
    ],
)
def test_tiers_that_cannot_be_read(url: str, why: str) -> None:
    with pytest.raises(UnreadableSource, match=why):
        Tier.open(url)


def copied(left: Left, folder: Path) -> Tier:
    shutil.copytree(left.tier, folder / "tier")
    return Tier.open(f"file://{folder / 'tier'}")
