"""Rows of a trace without what no rule asks of: rules find the same."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.pipeline.audit.rule import PartitionMetadata
from fencepost.pipeline.audit.spark_task import check_partitions
from fencepost.pipeline.audit.trace_rows import rows_where, slimmed
from tests.pipeline.audit.summaries import NOW_MS, batches, traces

Row = dict[str, object]


def fetched(*epochs: int, **other: object) -> Row:
    """An answer with a batch of each of these epochs."""
    own = [
        {"base_offset": 2 * at, "last_offset": 2 * at + 1, "count": 2, "epoch": epoch, "crc": at}
        for at, epoch in enumerate(epochs)
    ]
    return {"api": "Fetch", "replica_id": -1, "batches": own, "client_id": "reader", **other}


def left(row: Row, *, all_of_followers: bool = False) -> list[int] | None:
    """The checksums of the batches that are left of an answer."""
    (batch,) = traces(row).combine_chunks().to_batches()
    made = slimmed(batch, all_of_followers=all_of_followers)
    assert made.schema == batch.schema
    (found,) = made["batches"].to_pylist()
    return None if found is None else [each["crc"] for each in found]


def test_of_what_was_fetched_the_last_batch_is_left_and_one_of_the_newest_epoch() -> None:
    assert left(fetched(0, 0, 0)) == [2]
    assert left(fetched(0, 3, 3, 1, 2)) == [2, 4]
    assert left(fetched()) == []
    assert left(fetched(0, 0, batches=None)) is None
    assert left(fetched(0, 0, api="Produce")) == [0, 1]


def test_what_followers_fetched_is_left_where_log_ends_are_drawn() -> None:
    assert left(fetched(0, 0, replica_id=2)) == [1]
    assert left(fetched(0, 0, replica_id=2), all_of_followers=True) == [0, 1]
    assert left(fetched(0, 0), all_of_followers=True) == [1]


EPOCHS = st.integers(-1, 3)


@st.composite
def exchanges(draw: st.DrawFn) -> list[Row]:
    """Fetches, requests of producers and questions for offsets, whatever they say."""
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        row = fetched(
            *draw(st.lists(EPOCHS, max_size=4)),
            api=draw(st.sampled_from(["Fetch", "Fetch", "Produce", "ListOffsets"])),
            replica_id=draw(st.sampled_from([-1, -1, 2])),
            broker=draw(st.integers(1, 2)),
            error=draw(st.sampled_from([0, 0, 0, 6])),
            current_leader_epoch=draw(EPOCHS),
            session_id=draw(st.sampled_from([None, 5, 6])),
            fetch_offset=draw(st.sampled_from([None, 0, 4])),
            timestamp=-1,
            isolation_level=0,
            offset=draw(st.integers(0, 9)),
            epoch=draw(EPOCHS),
            acks=-1,
        )
        if row["api"] == "ListOffsets":
            row["batches"] = None
        rows.append(row)
    return rows


@settings(deadline=None)
@given(exchanges())
def test_rules_find_in_few_batches_what_they_find_in_all(rows: Sequence[Row]) -> None:
    whole = traces(*rows).combine_chunks()
    slim = pa.Table.from_batches(
        [slimmed(each, all_of_followers=False) for each in whole.to_batches(max_chunksize=5)]
    )
    known = {("orders", 0): PartitionMetadata()}
    logs = batches({"base_offset": 0})
    assert list(check_partitions(logs, slim, known, now_ms=NOW_MS)) == list(
        check_partitions(logs, whole, known, now_ms=NOW_MS)
    )


@given(st.lists(st.sampled_from([True, False, None]), max_size=8))
def test_rows_where_flags_are_true(flags: list[bool | None]) -> None:
    table = pa.table({"number": pa.array(range(len(flags)), pa.int64())})
    wanted = pa.array(flags, pa.bool_())
    assert rows_where(table, wanted).equals(table.filter(wanted))


@pytest.mark.parametrize(("first", "count"), [(0, 100), (0, 60), (30, 40), (50, 0)])
def test_rows_that_follow_on_one_another_are_not_copied(first: int, count: int) -> None:
    table = pa.table({"number": pa.array(range(100))})
    wanted = pa.array([first <= at < first + count for at in range(100)])
    before = pa.total_allocated_bytes()
    found = rows_where(table, wanted)
    assert found["number"].to_pylist() == [*range(first, first + count)]
    assert pc.sum(found["number"]).as_py() == (sum(range(first, first + count)) or None)
    assert pa.total_allocated_bytes() - before < 100 * 8
