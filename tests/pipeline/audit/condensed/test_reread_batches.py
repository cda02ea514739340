"""Rows of windows that are read again: they go by how copies part, and not by their batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fencepost.pipeline.audit.batch_arrays import (
    Batches,
    BoolArray,
    batches_of,
    traced_batches_of,
)
from fencepost.pipeline.audit.condensed import refinement
from fencepost.pipeline.audit.condensed.compacted_copies import EVERYWHERE, NOWHERE
from fencepost.pipeline.audit.condensed.refinement import refine
from fencepost.pipeline.audit.condensed.reread_batches import Interest, Runs, Stretches, runs_of
from fencepost.pipeline.audit.condensed.window_rows import WindowCondenser, plan_windows, widened
from fencepost.pipeline.audit.rule import PartitionEvidence, PartitionMetadata
from fencepost.pipeline.datasource.schemas import BATCHES, TRACED_BATCH
from fencepost.protocol.errors import ErrorCode
from tests.pipeline.audit.condensed.partitions import number, segment_files
from tests.pipeline.audit.log_rows import Row, batch, replica
from tests.pipeline.audit.summaries import NOW_MS, traces

FEW, MANY = 400, 1600
WHERE: Row = {"topic": "orders", "partition": 0, "max_timestamp": NOW_MS}


def log(count: int, records: int = 2, broker: int = 1, **other: object) -> list[Row]:
    """Batches that follow on one another, of so many offsets together."""
    edges = [*range(0, count, records), count]
    own: Row = {**WHERE, "broker": broker, **other}
    return [{**batch(start, end - 1), **own} for start, end in pairwise(edges)]


class Rereading:
    """Reads windows of copies again, and counts."""

    def __init__(self, *copies: Sequence[Row]) -> None:
        self.batches = 0
        self._tables = {number(own[0], "broker"): self._table(own) for own in copies}
        files = [replace(segment_files(broker, 0), size=1) for broker in self._tables]
        plans = [replace(plan, width=64) for plan in plan_windows(files)]
        condensers = [WindowCondenser("log", plan) for plan in plans]
        self.windows = pa.concat_tables(
            part
            for condenser, table in zip(condensers, self._tables.values(), strict=True)
            for part in (*condenser.add(table), *condenser.finish())
        )

    @staticmethod
    def _table(rows: Sequence[Row]) -> pa.Table:
        return pa.Table.from_pylist(list(rows), BATCHES)

    def read(self, window: Row) -> pa.Table:
        """The batches of a window."""
        table = self._tables[number(window, "broker")]
        rows = [
            each
            for each in table.to_pylist()
            if 0 <= each["position"] - number(window, "position") < number(window, "size")
        ]
        self.batches += len(rows)
        return widened(self._table(rows))

    def evidence(
        self, traced: pa.Table | None = None, metadata: PartitionMetadata | None = None
    ) -> PartitionEvidence:
        """All copies."""
        return PartitionEvidence(
            topic="orders",
            partition=0,
            now_ms=NOW_MS,
            metadata=metadata or PartitionMetadata(),
            batches=self.windows,
            traces=traced,
        )

    def rows(
        self, traced: pa.Table | None = None, metadata: PartitionMetadata | None = None
    ) -> int:
        """How many there are when windows were read again."""
        (refined,) = refine([self.evidence(traced, metadata)], self.read)
        assert pc.sum(refined["count"]) == pc.sum(self.windows["count"])
        return int(refined.num_rows)


def test_copies_that_differ_everywhere_are_few_rows() -> None:
    def rows(count: int) -> int:
        copies = Rereading(log(count), log(count, 3, 2, crc=5))
        found = copies.rows()
        assert copies.batches > count / 2
        return found

    assert rows(MANY) == rows(FEW) < 10


def test_copies_that_part_are_few_rows() -> None:
    def rows(count: int) -> int:
        other = [
            row if number(row, "base_offset") < 100 else {**row, "crc": 5} for row in log(count)
        ]
        return Rereading(log(count), [{**row, "broker": 2} for row in other]).rows()

    assert rows(MANY) == rows(FEW) < 20


def test_copies_of_which_one_is_shorter_and_an_offset_that_is_asked_for_are_few_rows() -> None:
    def rows(count: int) -> int:
        known = PartitionMetadata(replicas=(replica(1, high_watermark=count // 2 + 1),))
        return Rereading(log(count), log(count - 33, 2, 2)).rows(metadata=known)

    assert rows(MANY) - rows(FEW) <= 2 * (MANY - FEW) / 64 + 1


COMPACTED = PartitionMetadata(compacted=True, replicas=(replica(1), replica(2)))


def cleaned(rows: Sequence[Row], every: int, broker: int = 1) -> list[Row]:
    """What is left where a cleaner has taken all but some of the first three quarters."""
    found: list[Row] = []
    position = 0
    for index, row in enumerate(rows):
        if index < 3 * len(rows) // 4 and index % every:
            continue
        found.append({**row, "broker": broker, "position": position})
        position += number(row, "size")
    return found


def test_compacted_copies_are_few_rows_wherever_their_cleaners_have_been() -> None:
    def rows(count: int) -> int:
        rewritten = [
            {**row, "count": 1, "crc": number(row, "crc") + 5} if index % 5 == 0 else row
            for index, row in enumerate(log(count))
        ]
        copies = Rereading(cleaned(log(count), 2), cleaned(rewritten, 3, 2))
        found = copies.rows(metadata=COMPACTED)
        assert copies.batches > count / 4
        return found

    assert rows(MANY) == rows(FEW) < 12


def test_compacted_copies_are_put_to_each_other_from_where_they_part_on() -> None:
    other = [row if number(row, "base_offset") < 360 else {**row, "crc": 7} for row in log(FEW)]
    copies = Rereading(cleaned(log(FEW), 2), cleaned(other, 3, 2))
    (refined,) = refine([copies.evidence(metadata=COMPACTED)], copies.read)
    batches = batches_of(refined)
    assert 360 in batches.base
    assert batches.is_cleaned_window[batches.base < 300].any()
    assert not batches.is_cleaned_window[batches.last >= 360].any()


def test_gaps_that_no_cleaner_has_left_are_seen() -> None:
    copies = Rereading(cleaned(log(FEW), 2))
    (refined,) = refine([copies.evidence()], copies.read)
    batches = batches_of(refined).by_offset()
    assert batches.spans[:2] == [(0, 2), (4, 6)]
    assert len(batches.spans) == 76


def produced(rows: Sequence[Row], error: ErrorCode = ErrorCode.NONE) -> pa.Table:
    """A trace of how batches were produced."""
    names = [field.name for field in TRACED_BATCH]
    exchanges: list[Row] = [
        {
            "api": "Produce",
            "acks": -1,
            "error": int(error),
            "batches": [{name: row.get(name) for name in names}],
            "offset": row["base_offset"],
            "broker": 1,
        }
        for row in rows
    ]
    return traces(*exchanges)


def test_a_refused_batch_is_looked_for_in_few_rows() -> None:
    def rows(count: int) -> int:
        copies = Rereading(log(count))
        refused = [{**log(20)[5], "crc": 7}]
        return copies.rows(produced(refused, ErrorCode.EXPECTED_OFFSET_MISMATCH))

    assert rows(MANY) == rows(FEW) < 10


def test_a_partly_acknowledged_log_is_few_rows() -> None:
    def rows(count: int) -> int:
        copies = Rereading(log(count))
        found = copies.rows(produced(log(count)[:21]))
        assert copies.batches < 64
        return found

    assert rows(MANY) - rows(FEW) <= (MANY - FEW) / 64 + 1


@pytest.mark.parametrize("count", [FEW, MANY])
def test_few_batches_are_in_memory_at_a_time(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refinement, "MAX_REREAD", 64)
    together: list[int] = []

    def counted(
        batches: Batches,
        stretches: Stretches,
        keeps_row: BoolArray,
        interest: Interest,
        parts_at: int,
    ) -> Runs:
        together.append(len(batches))
        return runs_of(batches, stretches, keeps_row, interest, parts_at)

    monkeypatch.setattr(refinement, "runs_of", counted)
    Rereading(log(count), log(count, 3, 2, crc=5)).rows()
    assert len(together) > count / 100
    assert max(together) < 64 + 2 * 64


# -- which batches begin a row ------------------------------------------------------------------


def starts(
    *copies: Sequence[Row],
    offsets: Sequence[int] = (),
    acknowledged: Sequence[Row] = (),
    compacted: bool = False,
    parts_at: int = EVERYWHERE,
) -> list[list[int]]:
    """The base offsets of the batches of each copy that begin a row."""
    batches = batches_of(pa.Table.from_pylist([row for own in copies for row in own], BATCHES))
    copy = np.repeat(np.arange(len(copies)), [len(own) for own in copies])
    traced = traced_batches_of(produced(acknowledged)) if acknowledged else NONE
    interest = Interest(
        offsets=np.array(offsets, np.int64),
        acknowledged=traced,
        refused=np.zeros(0, np.int64),
        compacted=compacted,
    )
    stretches = Stretches.of(batches, copy)
    batches, copy = batches.select(stretches.order), stretches.copy
    runs = runs_of(batches, stretches, np.zeros(len(batches), bool), interest, parts_at)
    return [batches.base[runs.begins & (copy == each)].tolist() for each in range(len(copies))]


NONE = traced_batches_of(traces().slice(0, 0))


def test_the_same_batches_are_one_row_in_each_copy() -> None:
    assert starts(log(20), log(20)) == [[0], [0]]


@pytest.mark.parametrize("column", ["crc", "epoch"])
def test_a_row_begins_where_copies_part_and_where_they_agree_again(column: str) -> None:
    other = [*log(8), *log(16, **{column: 5})[4:], *log(20)[8:]]
    assert starts(log(20), other) == [[0, 8, 16], [0, 8, 16]]


def test_copies_whose_batches_never_begin_together_are_cut_where_they_part_alone() -> None:
    other = [{**row, "crc": 5} for row in (batch(8, 10), batch(11, 13))]
    assert starts(log(16), [*log(8), *other]) == [[0, 8, 14], [0, 8]]


def test_what_lies_across_a_cut_is_a_row() -> None:
    assert starts(log(20), offsets=[9]) == [[0, 8, 10]]
    assert starts(log(20), offsets=[8]) == [[0, 8]]


def test_a_segment_of_one_copy_cuts_all() -> None:
    rolled = [{**row, "segment": 10 if number(row, "base_offset") >= 10 else 0} for row in log(20)]
    assert starts(log(20), rolled, log(20, 5)) == [[0, 10], [0, 10], [0, 10]]


def test_acknowledged_batches_and_others_are_rows_of_their_own() -> None:
    assert starts(log(20), acknowledged=log(20)[3:6]) == [[0, 6, 12]]
    assert starts(log(20), acknowledged=log(8, crc=1)[3:]) == [[0, 6, 8]]


def test_of_compacted_copies_what_begins_together_stands_apart() -> None:
    apart = [batch(0, 3), batch(4, 6), batch(7, 9)]
    assert starts(log(10), apart) == [[0], [0]]
    assert starts(log(10), apart, compacted=True) == [[0, 2, 4, 6, 8], [0, 4, 7]]


def test_compacted_copies_that_agree_are_cut_where_they_part_or_are_asked_for() -> None:
    one = [batch(0, 3), batch(8, 9), batch(10, 14), batch(18, 19)]
    other = [batch(0, 3, count=1, crc=7), batch(4, 7), batch(10, 14), batch(18, 19)]
    spaced = [
        [{**row, "position": at * 100, "size": 100} for at, row in enumerate(own)]
        for own in (one, other)
    ]
    assert starts(*spaced, compacted=True, parts_at=NOWHERE) == [[0], [0]]
    assert starts(*spaced, compacted=True, parts_at=NOWHERE, offsets=[9]) == [[0, 8, 10], [0, 10]]
    assert starts(*spaced, compacted=True, parts_at=10) == [[0, 10, 18], [0, 10, 18]]
    spaced[1][3]["crc"] = 5
    assert starts(*spaced, compacted=True, parts_at=NOWHERE) == [[0, 18], [0, 18]]


def again(rows: Sequence[Row], start: int, end: int, **other: object) -> list[Row]:
    """A log with a stretch of it once more at its end."""
    behind = max(number(row, "position") + number(row, "size") for row in rows)
    return [
        *rows,
        *(
            {**row, "position": behind + 200 * at, **other}
            for at, row in enumerate(rows[start:end])
        ),
    ]


def test_a_stretch_that_a_copy_has_twice_is_a_row_each_time() -> None:
    assert starts(log(20), again(log(20), 2, 5)) == [[0, 4, 10], [0, 4, 10, 4]]


def test_where_a_copy_has_another_batch_at_the_same_offset_each_is_a_row() -> None:
    found = starts(log(20), again(log(20), 2, 5, crc=3))
    assert found == [[0, 4, 6, 8, 10], [0, 4, 6, 8, 10, 4, 6, 8]]


def test_where_a_copy_goes_back_again_and_again_each_batch_is_a_row() -> None:
    back = log(80)
    for _ in range(20):
        back = again(back, 2, 3)
    assert starts(back, log(80))[1] == [*range(0, 80, 2)]


def test_a_stretch_that_a_copy_has_twice_is_few_rows() -> None:
    def rows(count: int) -> int:
        twice = [{**row, "broker": 2} for row in again(log(count), 0, count // 2)]
        return Rereading(log(count), twice).rows()

    assert rows(MANY) - rows(FEW) <= 3 * (MANY - FEW) / 64 + 1
