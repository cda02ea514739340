"""Segments in files as rows of windows, and windows read again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fencepost.pipeline.audit.batch_arrays import batches_of
from fencepost.pipeline.audit.condensed.refinement import refine
from fencepost.pipeline.audit.condensed.window_rows import (
    MAX_WIDTH,
    MIN_WIDTH,
    WINDOWS,
    WindowPlan,
    plan_windows,
    split_folds,
)
from fencepost.pipeline.audit.condensed.window_scan import WindowReader, scan_windows
from fencepost.pipeline.audit.rule import PartitionEvidence, PartitionMetadata, ReplicaMetadata
from fencepost.pipeline.datasource.schemas import BATCHES
from tests.pipeline.datasource.segments import Written, some_batches, write

PLAN = WindowPlan(width=16, cuts=(0,))


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return write(tmp_path, some_batches(40))


def scanned(written: Written, plan: WindowPlan = PLAN) -> pa.Table:
    rows, folds = split_folds(pa.Table.from_batches(scan_windows(written.files, plan), WINDOWS))
    assert len(folds) == 1
    return rows


def refined(rows: pa.Table, offset: int) -> pa.Table:
    """As a rule needs them that asks for an offset."""
    replica = ReplicaMetadata(
        broker=1, clean=True, segments=(0,), epochs=None, high_watermark=offset
    )
    evidence = PartitionEvidence(
        topic="t",
        partition=0,
        now_ms=0,
        metadata=PartitionMetadata(replicas=(replica,)),
        batches=rows,
        traces=None,
    )
    (refined,) = refine([evidence], WindowReader(None))
    return refined


def test_windows_hold_what_batches_hold(written: Written) -> None:
    found, whole = batches_of(scanned(written)), batches_of(written.rows())
    assert found.batches.sum() == len(whole) == 40
    assert len(found) < 15
    assert (found.batches[0], found.base[0], found.position[0]) == (1, 0, 0)
    assert (found.base[1:] == found.last[:-1] + 1).all()
    for name in ("size", "count"):
        assert getattr(found, name).sum() == getattr(whole, name).sum()
    assert set(found.base.tolist()) < set(whole.base.tolist())


def test_the_batch_that_an_offset_lies_in_has_a_row(written: Written) -> None:
    rows, whole = scanned(written), written.rows()
    window = next(row for row in rows.to_pylist() if (row["batches"] or 0) > 3)
    inside = [
        row
        for row in whole.to_pylist()
        if window["base_offset"] <= row["base_offset"] <= window["last_offset"]
    ]
    assert len(inside) == window["batches"]
    wanted = next(row for row in inside[1:-1] if row["count"] > 1)
    found = refined(rows, wanted["base_offset"] + 1)
    (batch,) = found.filter(pc.equal(found["base_offset"], wanted["base_offset"])).to_pylist()
    assert {name: batch[name] for name in BATCHES.names} == wanted
    assert batch["batches"] is None
    assert found.num_rows == rows.num_rows + 2
    assert batches_of(found).batches.sum() == 40
    assert refined(rows, window["base_offset"]) is rows


@pytest.mark.parametrize("harm", ["gone", "changed"])
def test_a_window_that_can_not_be_read_again_stays_and_it_is_told(
    written: Written, harm: str
) -> None:
    rows = scanned(written)
    window = next(row for row in rows.to_pylist() if row["batches"])
    if harm == "gone":
        written.log.unlink()
    else:
        written.change(written.log, window["position"], b"\xff" * 20)
    found = refined(rows, window["base_offset"] + 1)
    (problem,) = (row for row in found.to_pylist() if row["problem"] is not None)
    assert problem["problem"] == "missing"
    assert problem["message"].startswith(f"{written.log.name} ")
    assert window in found.to_pylist()


def test_damage_and_what_is_beside_it_are_no_window(written: Written) -> None:
    written.change(written.log, written.position(20) + 70, b"\xff\xff")
    rows = sorted(scanned(written).to_pylist(), key=lambda row: row["position"])
    near = [each for each in rows if written.position(19) <= each["position"]][:3]
    assert [each["position"] for each in near] == [written.position(at) for at in (19, 20, 21)]
    assert [each["batches"] for each in near] == [None] * 3
    assert near[1]["problem"] == "crc"


def plans(written: Written, *segments: tuple[int | None, int], size: int = 0) -> list[WindowPlan]:
    """Of segments of brokers, which are None in the tier."""
    return plan_windows(
        [
            replace(written.files, broker=broker, segment=base, size=size)
            for broker, base in segments
        ]
    )


def test_segments_of_all_copies_cut_windows(written: Written) -> None:
    first, last, other, tier = plans(written, (1, 0), (1, 100), (2, 40), (None, 0))
    assert (first.cuts, first.end) == ((0, 40), 100)
    assert (last.cuts, last.end) == ((100,), None)
    assert (other.cuts, other.end) == ((40, 100), None)
    assert (tier.cuts, tier.end) == ((0, 40, 100), None)


def test_the_width_goes_by_the_offsets_of_a_partition(written: Written) -> None:
    def width(end: int, size: int = 0) -> int:
        return plans(written, (1, 0), (1, end), size=size)[0].width

    assert width(1000) == MIN_WIDTH
    assert width(1 << 20) == 1 << 10
    assert width((1 << 20) + 5) == 1 << 10
    assert width(1 << 40) == MAX_WIDTH
    assert plans(written, (1, 0), size=1 << 30)[0].width == MAX_WIDTH


def test_a_small_segment_keeps_its_rows_and_is_not_folded(tmp_path: Path) -> None:
    small = write(tmp_path, some_batches(10))
    rows = pa.Table.from_batches(scan_windows(small.files, PLAN), WINDOWS)
    found, folds = split_folds(rows)
    assert folds == {}
    assert found["batches"].null_count == found.num_rows
    assert found.select(BATCHES.names).equals(small.rows())
