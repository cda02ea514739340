"""The leader epochs of a log as runs: any split of the log gives the runs of the whole."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.pipeline.audit.batch_arrays import Batches, batches_of
from fencepost.pipeline.audit.lineage.epoch_runs import (
    EpochRun,
    EpochRuns,
    deleted_runs,
    epoch_runs,
    first_conflict,
    known_epochs,
    merge_runs,
)
from fencepost.pipeline.datasource.schemas import BATCHES
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from tests.pipeline.audit.log_rows import Row, batch


def arrays(rows: list[Row]) -> Batches:
    return batches_of(pa.Table.from_pylist(rows, schema=BATCHES))


def runs_of(*epochs: tuple[int, int, int]) -> tuple[EpochRun, ...]:
    return epoch_runs(arrays([batch(start, end - 1, epoch) for epoch, start, end in epochs]))


def entries(*epochs: tuple[int, int]) -> tuple[EpochEntry, ...]:
    return tuple(EpochEntry(*each) for each in epochs)


@st.composite
def damaged_logs(draw: st.DrawFn) -> list[Row]:
    """Batches in the order of a log, whose offsets and epochs may be anything."""
    rows = []
    for position in range(draw(st.integers(4, 12))):
        base = draw(st.integers(0, 30))
        last = base + draw(st.integers(0, 5))
        epoch = draw(st.sampled_from([0, 0, 0, 1, 2, -1]))
        rows.append(batch(base, last, epoch, position=position, count=last - base + 1))
    return rows


@given(damaged_logs())
def test_any_split_gives_the_runs_of_the_whole(rows: list[Row]) -> None:
    whole = epoch_runs(arrays(rows))
    for cut in range(len(rows) + 1):
        assert merge_runs(epoch_runs(arrays(rows[:cut])), epoch_runs(arrays(rows[cut:]))) == whole
    # In whatever order parts are merged, as long as neighbours are.
    parts = [epoch_runs(arrays([row])) for row in rows]
    none: EpochRuns = ()
    assert reduce(merge_runs, parts, none) == whole
    backwards = none
    for part in reversed(parts):
        backwards = merge_runs(part, backwards)
    assert backwards == whole


@given(damaged_logs())
def test_runs_have_all_batches_and_neighbours_differ(rows: list[Row]) -> None:
    runs = epoch_runs(arrays(rows))
    assert sum(run.batches for run in runs) == len(rows)
    assert sum(run.records for run in runs) == sum(int(str(row["count"])) for row in rows)
    assert all(before.epoch != behind.epoch for before, behind in pairwise(runs))
    for row in rows:
        assert any(
            run.epoch == row["epoch"] and run.start <= row["base_offset"] < run.end  # type: ignore[operator]  # rows say numbers
            for run in runs
        )


@pytest.mark.parametrize(
    ("checkpoint", "known"),
    [
        ((), [(1, 5), (3, 20)]),
        (((1, 0), (3, 12)), [(1, 0), (3, 12)]),
        # Epochs that wrote nothing, or whose records are in the tier.
        (((0, 0), (1, 5), (2, 12), (3, 15), (4, 30)), [(0, 0), (1, 5), (2, 12), (3, 15), (4, 30)]),
        # What the batches contradict: too late, too early, and beyond the end.
        (((1, 6), (3, 11), (4, 31)), [(1, 5), (3, 20)]),
        (((2, 25), (0, 7), (-1, 0)), [(1, 5), (3, 20)]),
    ],
)
def test_a_checkpoint_counts_where_no_batch_contradicts_it(
    checkpoint: tuple[tuple[int, int], ...], known: list[tuple[int, int]]
) -> None:
    runs = runs_of((1, 5, 12), (3, 20, 30))
    assert known_epochs(runs, checkpoint, 30) == tuple(known)


def test_epochs_of_a_damaged_log_are_known_as_far_as_they_rise() -> None:
    assert known_epochs(runs_of((2, 0, 10), (1, 10, 20)), (), 20) == ((2, 0),)
    assert known_epochs(runs_of((-1, 0, 10), (1, 10, 20)), (), 20) == ((1, 10),)
    assert known_epochs((), ((0, 0), (5, 7)), 7) == ((0, 0), (5, 7))
    negative = epoch_runs(arrays([batch(-5, -1, 1), batch(0, 4, 2)]))
    assert known_epochs(negative, (), 5) == ((2, 0),)


def test_what_is_deleted_is_known_from_the_epochs() -> None:
    known = [(run.epoch, run.start, run.end) for run in deleted_runs(entries((0, 3), (2, 8)), 10)]
    assert known == [(0, 3, 8), (2, 8, 10)]
    assert deleted_runs(entries((0, 3)), 3) == ()
    assert deleted_runs((), 3) == ()


@pytest.mark.parametrize(
    ("runs", "lineage", "offset"),
    [
        # It may be behind, or ahead.
        (((0, 0, 9),), ((0, 0), (1, 9)), None),
        (((0, 0, 9), (1, 9, 12)), ((0, 0),), None),
        (((0, 0, 9),), (), None),
        # Never truncated: the newer epoch begins within it.
        (((0, 0, 10),), ((0, 0), (1, 9)), 9),
        # An epoch that the lineage does not know, between two that it does.
        (((0, 0, 5), (1, 5, 9)), ((0, 0), (2, 5)), 5),
        (((0, 0, 5), (1, 5, 9)), ((0, 0), (2, 9)), None),
        # All of it, from before its first offset.
        (((1, 50, 60),), ((1, 0), (2, 40)), 40),
    ],
)
def test_a_record_conflicts_where_a_newer_epoch_has_begun(
    runs: tuple[tuple[int, int, int], ...],
    lineage: tuple[tuple[int, int], ...],
    offset: int | None,
) -> None:
    assert first_conflict(runs_of(*runs), entries(*lineage)) == offset


def test_no_run_of_no_batch() -> None:
    assert epoch_runs(arrays([])) == ()
