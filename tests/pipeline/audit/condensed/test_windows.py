"""Rows of windows: whatever is split how, the audit finds what it finds in the batches."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.pipeline.audit.condensed import refinement
from fencepost.pipeline.audit.condensed.refinement import refine
from fencepost.pipeline.audit.condensed.window_rows import WindowCondenser, WindowPlan, widened
from fencepost.pipeline.audit.rule import PartitionEvidence, PartitionMetadata
from fencepost.pipeline.audit.spark_task import check_partitions
from fencepost.pipeline.datasource.schemas import BATCHES, TRACED_BATCH
from tests.pipeline.audit.condensed.partitions import partitions, produced, reads, windows
from tests.pipeline.audit.log_rows import batch
from tests.pipeline.audit.summaries import NOW_MS, traces

KEY = ("orders", 0)


@settings(deadline=None)
@given(st.data())
def test_any_split_into_segments_windows_and_parts_gives_what_the_whole_gives(
    data: st.DataObject,
) -> None:
    made = data.draw(partitions(compacted=data.draw(st.booleans())))
    known = {KEY: made.metadata}
    trace = data.draw(st.none() | produced(made))
    (whole,) = check_partitions(made.rows, trace, known, now_ms=NOW_MS)
    rows = data.draw(windows(made))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refinement, "MAX_REREAD", data.draw(st.sampled_from([1, 6, 1000])))
        (found,) = check_partitions(rows, trace, known, now_ms=NOW_MS, read=partial(reads, made))
    assert whole.summary.failures == ()
    assert found.violations == whole.violations
    assert found.summary == whole.summary


@pytest.mark.parametrize(("wrong", "rows_begin"), [(None, [0, 1]), (3, [0, 1, 3, 4])])
def test_a_batch_that_was_not_acknowledged_as_others_of_its_window_has_a_row(
    wrong: int | None, rows_begin: list[int]
) -> None:
    names = {field.name for field in TRACED_BATCH}
    rows = [
        {**batch(at, at), "topic": "orders", "partition": 0, "max_timestamp": NOW_MS}
        for at in range(6)
    ]
    sent = [{name: row[name] for name in names & row.keys()} for row in rows]
    if wrong is not None:
        sent[wrong]["crc"] = 99
    produces = [
        {"api": "Produce", "acks": -1, "error": 0, "batches": [each], "offset": at, "broker": 1}
        for at, each in enumerate(sent)
    ]
    table = pa.Table.from_pylist(rows, BATCHES)
    condenser = WindowCondenser("log", WindowPlan(width=64), min_rows=1)
    condensed = pa.concat_tables([*condenser.add(table), *condenser.finish()])
    evidence = PartitionEvidence(
        topic="orders",
        partition=0,
        now_ms=NOW_MS,
        metadata=PartitionMetadata(),
        batches=condensed,
        traces=traces(*produces),
    )
    (refined,) = refine([evidence], lambda _: widened(table.slice(1)))
    assert refined["base_offset"].to_pylist() == rows_begin
