"""Segments are planned with those of all copies of their partition, whichever task found them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from fencepost.pipeline.audit import scan_tasks
from fencepost.pipeline.audit.condensed.window_rows import PlannedSegment, plan_windows
from fencepost.pipeline.audit.condensed.window_scan import scan_windows
from fencepost.pipeline.audit.metadata_rows import FoundSegments, MetadataRow, ScanShare
from fencepost.pipeline.audit.scan_tasks import (
    SHARE_BYTES,
    found_segments,
    plan_scan,
    scan_share,
)
from fencepost.pipeline.audit.state.kept_segments import KEPT, keep_rows
from fencepost.pipeline.datasource.segment_scan import Checks
from fencepost.pipeline.datasource.segments import SegmentFiles, with_stamp
from tests.pipeline.audit.condensed.partitions import TOPIC
from tests.pipeline.audit.segment_files import segment
from tests.pipeline.datasource.segments import some_batches, write


def found() -> list[MetadataRow]:
    """Of two brokers and of the tier; the copies roll where they like."""
    return [
        *found_segments([segment(0), segment(300), segment(0, partition=1)]),
        *found_segments([segment(0, 2), segment(200, 2), segment(0, 2, partition=1)]),
        *found_segments([segment(0, None), segment(100, None)]),
    ]


def test_those_of_a_partition_have_one_key() -> None:
    rows = found()
    assert [row.key for row in rows] == [f"{TOPIC}-{index}" for index in (0, 1, 0, 1, 0)]
    for row in rows:
        assert isinstance(row.value, FoundSegments)
        assert {f"{each.topic}-{each.partition}" for each in row.value.segments} == {row.key}


def test_all_copies_are_cut_alike() -> None:
    (row,) = plan_scan(found())
    assert isinstance(row.value, ScanShare)
    plans = {files.log: plan for files, plan in row.value.segments}
    assert len(plans) == 8
    assert plans[segment(0).log].cuts == (0, 100, 200)
    assert plans[segment(300).log].cuts == (300,)
    assert plans[segment(0, 2).log].cuts == (0, 100)
    assert plans[segment(200, 2).log].cuts == (200, 300)
    assert plans[segment(0, partition=1).log].cuts == (0,)


@pytest.mark.parametrize("size", [100, SHARE_BYTES])
def test_shares_do_not_depend_on_the_order_in_which_rows_come(size: int) -> None:
    rows = found_segments(segment(base, partition=base % 3, size=size) for base in range(9))
    forward = list(rows)
    shares = list(plan_scan(forward))
    assert shares == list(plan_scan(forward[::-1]))
    assert len(shares) == (1 if size == 100 else 9)
    assert len({row.key for row in shares}) == len(shares)


@pytest.mark.parametrize(
    ("count", "size", "together"),
    [
        (3, SHARE_BYTES, 1),
        (5, 52 << 20, 2),
        (100, 1 << 20, 25),  # to open one takes longer than to scan it
        (5_000, 100, 2_044),
    ],
)
def test_a_share_is_as_much_as_takes_longer_than_a_task(
    count: int, size: int, together: int
) -> None:
    rows = plan_scan(found_segments(segment(base, size=size) for base in range(count)))
    shares = [row.value.segments for row in rows if isinstance(row.value, ScanShare)]
    assert {len(each) for each in shares[:-1]} == {together}
    assert sum(map(len, shares)) == count


def small_segments(folder: Path) -> list[PlannedSegment]:
    """Of two brokers and two partitions; some are empty or active, one is damaged, and two are of
    more rows than are kept as they are.
    """
    segments = []
    for number in range(24):
        base, count = 100 * (number // 4), (3, 0, 1, 40)[number % 7 % 4]
        made = write(
            folder / f"{number % 4}", some_batches(count, base_offset=base), base_offset=base
        )
        if number == 8:
            made.change(made.log, 80, b"damage")
        files = replace(made.files, broker=number % 2, partition=number // 2 % 2)
        segments.append(replace(with_stamp(files), closed=number < 20))
    return list(zip(segments, plan_windows(segments), strict=True))


ORDER = [(name, "ascending") for name in ("segment_key", "position", "problem", "message")]


def test_many_small_segments_are_kept_as_each_of_them_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments, checks = small_segments(tmp_path), Checks.RECORDS
    each = [
        rows
        for files, plan in segments
        for rows in keep_rows(files, plan, checks, scan_windows(files, plan, checks=checks))
    ]
    alone: list[str] = []

    def scan(files: SegmentFiles, *more: object, **others: object) -> object:
        alone.append(files.log)
        return scan_windows(files, *more, **others)  # type: ignore[arg-type]  # as they were given

    monkeypatch.setattr(scan_tasks, "scan_windows", scan)
    made = pa.Table.from_batches(scan_share(tuple(segments), None, checks, keep=True), KEPT)
    assert made.sort_by(ORDER).equals(pa.Table.from_batches(each, KEPT).sort_by(ORDER))
    assert made["summary"].null_count == made.num_rows - 20
    assert len(alone) == 1 + sum((3, 0, 1, 40)[number % 7 % 4] == 40 for number in range(24))
