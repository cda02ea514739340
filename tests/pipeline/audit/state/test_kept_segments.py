"""Kept rows are taken where a scan would make the same; findings are those of a full audit."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import accumulate

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.pipeline.audit.condensed.segment_folds import FoldBuilder, to_json
from fencepost.pipeline.audit.condensed.window_rows import (
    WINDOWS,
    PlannedSegment,
    WindowCondenser,
    plan_windows,
)
from fencepost.pipeline.audit.spark_task import check_partitions
from fencepost.pipeline.audit.state.kept_segments import (
    CIRCLE,
    KEPT,
    KeptSegment,
    ScanExtent,
    SegmentChoice,
    Trust,
    choose_segments,
    keep_rows,
    kept_segment,
    segment_key,
)
from fencepost.pipeline.datasource.schemas import BATCHES, Place, Problem
from fencepost.pipeline.datasource.segment_scan import Checks
from fencepost.pipeline.datasource.segments import SegmentFiles
from tests.pipeline.audit.condensed.partitions import TOPIC, Copy, Partition, partitions, reads
from tests.pipeline.audit.log_rows import Row
from tests.pipeline.audit.segment_files import segment, stamp
from tests.pipeline.audit.summaries import NOW_MS

TRUST = Trust(checks=Checks.RECORDS)


def planned(*segments: SegmentFiles, width: int | None = None) -> list[PlannedSegment]:
    plans = plan_windows(segments)
    if width is not None:
        plans = [replace(each, width=width) for each in plans]
    return list(zip(segments, plans, strict=True))


def kept(of: list[PlannedSegment], behind: int = 100) -> dict[str, KeptSegment]:
    """What an audit keeps of segments of so many offsets."""
    found: dict[str, KeptSegment] = {}
    for files, plan in of:
        rows = pa.RecordBatch.from_pylist([{"last_offset": files.segment + behind - 1}], WINDOWS)
        made = pa.Table.from_batches(keep_rows(files, plan, Checks.RECORDS, [rows]), KEPT)
        found |= {
            each.key: each for each in map(kept_segment, made["summary"].drop_null().to_pylist())
        }
    return found


def read(choice: SegmentChoice) -> list[tuple[int | None, int]]:
    return [(files.broker, files.segment) for files, _ in choice.read]


def grown() -> list[PlannedSegment]:
    """A log of three closed segments and the active one."""
    return planned(*(segment(base) for base in (0, 100, 200)), segment(300, closed=False))


def test_what_is_closed_and_has_not_changed_is_not_read() -> None:
    known = kept(grown())
    assert [*known] == [f"orders-0/log/1/{base}" for base in (0, 100, 200)]
    choice = choose_segments(grown(), known, TRUST)
    assert read(choice) == [(1, 300)]
    assert choice.trusted == {
        (TOPIC, 0): {key: f"1/orders-0/{kept.segment:020d}.log" for key, kept in known.items()}
    }
    assert choice.extent == ScanExtent(
        trusted=3, read=1, trusted_files=9, read_files=3, trusted_bytes=3000, read_bytes=1000
    )


def test_what_has_changed_is_read() -> None:
    known = kept(grown())
    now = planned(
        segment(0), segment(100, content="another"), segment(200), segment(300, closed=False)
    )
    assert read(choose_segments(now, known, TRUST)) == [(1, 100), (1, 300)]


def test_a_segment_that_is_the_last_one_by_now_is_read() -> None:
    now = planned(segment(0), segment(100), segment(200, closed=False))
    assert read(choose_segments(now, kept(grown()), TRUST)) == [(1, 200)]


def test_a_segment_is_read_where_another_one_follows_it_than_before() -> None:
    now = planned(segment(0), segment(200), segment(300, closed=False))
    assert read(choose_segments(now, kept(grown()), TRUST)) == [(1, 0), (1, 300)]


def test_a_segment_is_read_where_another_copy_begins_one_within_it() -> None:
    now = [*grown(), *planned(segment(150, 2), segment(250, 2, closed=False))]
    segments = [files for files, _ in now]
    choice = choose_segments(planned(*segments), kept(grown()), TRUST)
    assert read(choice) == [(1, 100), (1, 200), (1, 300), (2, 150), (2, 250)]
    again = choose_segments(planned(*segments), kept(planned(*segments)), TRUST)
    assert read(again) == [(1, 300), (2, 250)]
    # What was cut there stays so, also where it is not the beginning of a segment any more.
    gone = choose_segments(grown(), kept(planned(*segments)), TRUST)
    assert read(gone) == [(1, 300)]


def test_segments_of_the_tier_do_not_change_with_what_comes_behind_them() -> None:
    known = kept(planned(segment(0, None), segment(100, None), segment(200, closed=False)))
    now = planned(*(segment(base, None) for base in (0, 100, 200)), segment(300, closed=False))
    assert read(choose_segments(now, known, TRUST)) == [(None, 200), (1, 300)]


def test_the_width_of_windows_is_that_of_other_copies() -> None:
    before = planned(segment(0), segment(100), segment(200, closed=False), width=64)
    new = (segment(0, 2), segment(100, 2), segment(200, 2), segment(300, 2, closed=False))
    now = planned(*(files for files, _ in before), *new, width=128)
    choice = choose_segments(now, kept(before), TRUST)
    widths = {(files.broker, files.segment): plan.width for files, plan in choice.read}
    assert widths == {(1, 200): 128, (2, 0): 64, (2, 100): 64, (2, 200): 128, (2, 300): 128}


def test_a_closer_look_and_a_full_one_read_all() -> None:
    known = kept(grown())
    for trust in (Trust(checks=Checks.BATCHES), replace(TRUST, full=True)):
        choice = choose_segments(grown(), known, trust)
        assert len(choice.read) == choice.extent.read == 4


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 1.0])
def test_shares_that_are_1_in_sum_read_each_segment(share: float) -> None:
    now = [each for number in range(50) for each in _grown(number)]
    known = kept(now)
    turns: Counter[str] = Counter()
    start = 7
    for _ in range(10):
        trust = Trust.rereading(share, start, checks=Checks.RECORDS, full=False)
        choice = choose_segments(now, known, trust)
        again = [files for files, _ in choice.read if files.closed]
        assert choice.extent.reread == len(again)
        assert choice.extent.reread + choice.extent.trusted == 150
        assert choice.extent.read == 50
        assert abs(len(again) - share * 150) < 30
        turns.update(map(segment_key, again))
        start = trust.next_start
    assert len(turns) == (150 if share else 0)
    assert start < CIRCLE


def _grown(number: int) -> list[PlannedSegment]:
    return [(replace(files, partition=number), plan) for files, plan in grown()]


def test_what_could_not_be_read_is_read_again() -> None:
    (first, *_) = grown()
    rows = pa.RecordBatch.from_pylist([{"problem": Problem.MISSING.value}], WINDOWS)
    (made,) = keep_rows(*first, Checks.RECORDS, [rows])
    assert made["summary"].null_count == made.num_rows == 1
    rows = pa.RecordBatch.from_pylist([{"problem": Problem.CRC.value}], WINDOWS)
    *_, made = keep_rows(*first, Checks.RECORDS, [rows])
    assert made["summary"].null_count == 0


# -- any partition -------------------------------------------------------------------------------


def _content(rows: list[Row]) -> str:
    return str(hash(repr(rows)))


def _files(partition: Partition) -> list[tuple[SegmentFiles, list[Row]]]:
    return [
        (
            replace(
                segment(base, copy.broker, closed=base != [*copy.segments][-1]),
                place=Place.TIER if copy.broker is None else Place.LOG,
                segment_id=copy.segment_id,
                stamp=stamp(_content(rows)),
            ),
            rows,
        )
        for copy in partition.copies
        for base, rows in copy.segments.items()
    ]


def _scan(files: SegmentFiles, plan: PlannedSegment, rows: list[Row]) -> pa.Table:
    condenser = WindowCondenser(files.log, plan[1], min_rows=3)
    builder = FoldBuilder(files.segment, {}, b"")
    table = pa.Table.from_pylist(rows, BATCHES)
    builder.add(table)
    first: Row = {name: rows[0].get(name) for name in WINDOWS.names[:6]}
    fold = pa.Table.from_pylist([{**first, "folds": to_json(builder.finished())}], WINDOWS)
    made = pa.concat_tables([*condenser.add(table), *condenser.finish(), fold])
    kept_rows = keep_rows(files, plan[1], Checks.RECORDS, made.combine_chunks().to_batches())
    return pa.Table.from_batches(kept_rows, KEPT)


@st.composite
def earlier(draw: st.DrawFn, partition: Partition) -> Partition:
    """The same before some was appended, and before something happened to some of the rest."""
    copies = []
    for copy in partition.copies:
        count = draw(st.integers(0, len(copy.rows))) if copy.broker is not None else len(copy.rows)
        segments: dict[int, list[Row]] = {}
        ends = accumulate(len(rows) for rows in copy.segments.values())
        for (base, rows), end in zip(copy.segments.items(), ends, strict=True):
            left = rows[: max(count - (end - len(rows)), 0)]
            if left and draw(st.integers(0, 4)) == 0:
                left = [*left[:-1], {**left[-1], "crc": 12345, "problem": "crc"}]
            if left:
                segments[base] = left
        copies.append(Copy(broker=copy.broker, segment_id=copy.segment_id, segments=segments))
    return replace(partition, copies=[each for each in copies if each.segments])


@settings(deadline=None)
@given(st.data())
def test_whatever_was_kept_the_findings_are_those_of_a_full_audit(data: st.DataObject) -> None:
    made = data.draw(partitions())
    before = data.draw(earlier(made))
    then = _files(before)
    widths = data.draw(st.tuples(*[st.sampled_from([1, 3, 8, 64])] * 2))
    old = planned(*(files for files, _ in then), width=widths[0])
    rows = [_scan(files, each, own) for (files, own), each in zip(then, old, strict=True)]
    state = pa.concat_tables([KEPT.empty_table(), *rows])
    known = {each.key: each for each in map(kept_segment, state["summary"].drop_null().to_pylist())}
    now = _files(made)
    choice = choose_segments(planned(*(files for files, _ in now), width=widths[1]), known, TRUST)
    own = {segment_key(files): rows for files, rows in now}
    fresh = [_scan(each[0], each, own[segment_key(each[0])]) for each in choice.read]
    trusted = [key for logs in choice.trusted.values() for key in logs]
    taken = state.filter(pa.compute.is_in(state["segment_key"], pa.array(trusted, pa.string())))
    table = pa.concat_tables([taken, *fresh])
    table = table.filter(pa.compute.is_null(table["summary"])).select(WINDOWS.names)
    metadata = {(TOPIC, 0): made.metadata}
    (whole,) = check_partitions(made.rows, None, metadata, now_ms=NOW_MS)
    (found,) = check_partitions(table, None, metadata, now_ms=NOW_MS, read=partial(reads, made))
    assert found.violations == whole.violations
    assert found.summary == whole.summary
