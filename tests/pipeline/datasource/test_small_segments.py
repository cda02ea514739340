"""Many small segments are read at once into the rows that each gives by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.pipeline.datasource.schemas import BATCHES, Place
from fencepost.pipeline.datasource.segment_scan import Checks, scan_batches
from fencepost.pipeline.datasource.segments import SegmentFiles
from fencepost.pipeline.datasource.small_segments import MAX_BYTES, scan_small_segments
from tests.pipeline.datasource.segments import Written, batch, some_batches, write

MAX_ROWS = 16
ORDER = [(name, "ascending") for name in ("segment", "file", "position", "problem", "message")]


def written(folder: Path, counts: Sequence[int], *, active: bool = True) -> list[Written]:
    """Segments of so many batches that follow one another; the last one may be active."""
    found, base = [], 0
    for number, count in enumerate(counts):
        closed = number < len(counts) - 1 or not active
        made = write(folder, some_batches(count, base_offset=base), base_offset=base, closed=closed)
        snapshot = folder / f"{base:020d}.snapshot"
        snapshot.write_bytes(b"producers")
        names = {"snapshots": (str(snapshot),), "transaction_index": str(folder / "none.txnindex")}
        found.append(replace(made, files=replace(made.files, **names)))  # type: ignore[arg-type]
        base += 100
    return found


def small(files: Sequence[SegmentFiles], checks: Checks) -> tuple[pa.Table, list[SegmentFiles]]:
    made, others = scan_small_segments(files, checks=checks, max_rows=MAX_ROWS)
    return pa.Table.from_batches(made, BATCHES), others


def scanned(files: Sequence[SegmentFiles], checks: Checks) -> pa.Table:
    made = [each for one in files for each in scan_batches(one, checks=checks, beside=True)]
    return pa.Table.from_batches(made, BATCHES)


@pytest.mark.parametrize("checks", Checks)
@pytest.mark.parametrize("active", [True, False])
def test_sound_segments_have_the_rows_that_each_has(
    tmp_path: Path, checks: Checks, active: bool
) -> None:
    files = [each.files for each in written(tmp_path, [3, 1, 0, 15, 2], active=active)]
    rows, others = small(files, checks)
    assert others == []
    assert rows.num_rows == 21 + 5
    assert rows.sort_by(ORDER).equals(scanned(files, checks).sort_by(ORDER))


def test_what_is_large_or_has_many_rows_is_left(tmp_path: Path) -> None:
    some = written(tmp_path, [3, 16, 2, 2])
    large = replace(some[0].files, size=MAX_BYTES + 1)
    in_tier = replace(some[2].files, place=Place.TIER, broker=None, segment_id="a")
    files = [large, some[1].files, in_tier, some[3].files]
    rows, others = small(files, Checks.BATCHES)
    assert others == files[:3]
    assert set(rows["segment"].to_pylist()) == {300}


def test_a_segment_that_has_grown_is_left(tmp_path: Path) -> None:
    (one,) = written(tmp_path, [1])
    one.log.write_bytes(batch(0, 1, size=MAX_BYTES))
    assert small([one.files], Checks.BATCHES)[1] == [one.files]


@pytest.mark.parametrize("kind", ["log", "offset_index", "time_index"])
def test_a_segment_of_which_a_file_is_gone_is_left(tmp_path: Path, kind: str) -> None:
    files = [each.files for each in written(tmp_path, [3, 3])]
    Path(getattr(files[0], kind)).unlink()
    rows, others = small(files, Checks.BATCHES)
    assert others == files[:1]
    assert set(rows["segment"].to_pylist()) == {100}


@settings(deadline=None)
@given(st.data())
def test_whatever_is_wrong_the_rows_are_those_that_each_has(data: st.DataObject) -> None:
    checks = data.draw(st.sampled_from(list(Checks)))
    with TemporaryDirectory() as folder:
        counts = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))
        some = written(Path(folder), counts, active=data.draw(st.booleans()))
        for _ in range(data.draw(st.integers(0, 3))):
            one = data.draw(st.sampled_from(some))
            path = data.draw(st.sampled_from([one.log, one.offset_index, one.time_index]))
            content = bytearray(path.read_bytes())
            harm = data.draw(st.sampled_from(["flip", "cut", "zeros", "twice"]))
            at = data.draw(st.integers(0, max(len(content) - 1, 0)))
            if harm == "flip" and content:
                content[at] ^= 1 << data.draw(st.integers(0, 7))
            elif harm == "cut":
                del content[at:]
            elif harm == "zeros":
                content += bytes(data.draw(st.sampled_from([8, 12, 24])))
            else:
                content += bytes(content)
            path.write_bytes(content)
        files = [each.files for each in some]
        rows, others = small(files, checks)
        whole = pa.concat_tables([rows, scanned(others, checks)])
        assert whole.sort_by(ORDER).equals(scanned(files, checks).sort_by(ORDER))
