"""The fold of aborted transactions: any split into stretches gives what the whole gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.pipeline.audit.transaction_index_fold import (
    ENTRY,
    Entries,
    IndexFault,
    IndexFinding,
    IndexSummary,
    merge,
    summarize,
    verdict,
)
from fencepost.protocol.records import CONTROL_FLAG, TRANSACTIONAL_FLAG, BatchHeader
from fencepost.protocol.transaction_markers import EndTransactionMarker
from fencepost.storage.log.producer_state import ProducerStateManager
from fencepost.storage.log.transactions import AbortedTransaction
from tests.pipeline.audit.log_rows import Row
from tests.pipeline.audit.producer_rows import logs, marker, merged, sent, splits, stretch


def number(row: Row, name: str) -> int:
    return int(str(row[name]))


def aborted(rows: Sequence[Row]) -> list[AbortedTransaction]:
    """What a broker puts into the indexes."""
    broker, found = ProducerStateManager(), []
    for row in rows:
        attributes = number(row, "attributes")
        header = BatchHeader(
            base_offset=number(row, "base_offset"),
            batch_length=0,
            partition_leader_epoch=0,
            magic=2,
            crc=0,
            attributes=attributes & TRANSACTIONAL_FLAG,
            last_offset_delta=number(row, "last_offset") - number(row, "base_offset"),
            base_timestamp=0,
            max_timestamp=0,
            producer_id=number(row, "producer_id"),
            producer_epoch=number(row, "producer_epoch"),
            base_sequence=number(row, "base_sequence"),
            record_count=number(row, "count"),
        )
        if not attributes & CONTROL_FLAG:
            broker.update(header)
            continue
        ended = broker.end_transaction(header, EndTransactionMarker(row["marker"] == "commit", 0))
        if ended is not None:
            found.append(ended)
    return found


def index(transactions: Sequence[AbortedTransaction]) -> Entries:
    return np.array([(0, *each) for each in transactions], ENTRY)


def parts(
    rows: Sequence[Row], transactions: Sequence[AbortedTransaction], cuts: Sequence[tuple[int, int]]
) -> list[IndexSummary]:
    found = []
    for start, end in cuts:
        first = number(rows[start], "base_offset") if start else -1
        behind = number(rows[end], "base_offset") if end < len(rows) else 1 << 40
        own = [each for each in transactions if first <= each.last_offset < behind]
        found.append(summarize(stretch(rows[start:end]), index(own)))
    return found


def told(rows: Sequence[Row], transactions: Sequence[AbortedTransaction]) -> list[IndexFinding]:
    return verdict(summarize(stretch(rows), index(transactions)))


def faults(
    rows: Sequence[Row], *transactions: AbortedTransaction
) -> list[tuple[IndexFault, int, int, int]]:
    return [
        (each.fault, each.marker, each.said, each.expected) for each in told(rows, transactions)
    ]


def without_position(found: Sequence[IndexFinding]) -> set[object]:
    """Of wrong last stable offsets that there is one: where is a matter of the split."""
    return {each.fault if each.fault is IndexFault.LAST_STABLE_OFFSET else each for each in found}


@st.composite
def indexes(draw: st.DrawFn, rows: Sequence[Row]) -> list[AbortedTransaction]:
    """Right ones, or wrong ones."""
    found = []
    for each in aborted(rows):
        change = draw(st.sampled_from(["", "", "", "first", "stable", "producer", "absent"]))
        wrong = draw(st.integers(0, 20))
        if change == "first":
            found.append(each._replace(first_offset=wrong))
        elif change == "stable":
            found.append(each._replace(last_stable_offset=wrong))
        elif change == "producer":
            found.append(each._replace(producer_id=9))
        elif not change:
            found.append(each)
    return found


@given(st.data())
def test_any_split_gives_what_the_whole_gives(data: st.DataObject) -> None:
    rows = data.draw(logs())
    transactions = data.draw(indexes(rows))
    whole = parts(rows, transactions, [(0, len(rows))])[0]
    cuts = data.draw(splits(len(rows)))
    found = merged(data, parts(rows, transactions, cuts), merge)
    assert without_position(verdict(found)) == without_position(verdict(whole))


@given(st.data())
def test_what_a_broker_writes_is_right(data: st.DataObject) -> None:
    rows = data.draw(logs())
    cuts = data.draw(splits(len(rows)))
    assert verdict(merged(data, parts(rows, aborted(rows), cuts), merge)) == []


ROWS = [
    sent(0, 2, 0, transactional=True),
    sent(3, 4, 0, producer=8, transactional=True),
    marker(5, "abort"),
    marker(6, "abort", producer=8),
]
FIRST, SECOND = AbortedTransaction(7, 0, 5, 3), AbortedTransaction(8, 3, 6, 7)


def test_entries_that_are_not_so() -> None:
    assert faults(ROWS, FIRST, SECOND) == []
    assert faults(ROWS, FIRST) == [(IndexFault.ABSENT, 6, -1, -1)]
    assert faults(ROWS, FIRST._replace(first_offset=1), SECOND) == [
        (IndexFault.FIRST_OFFSET, 5, 1, 0)
    ]
    assert faults(ROWS, FIRST._replace(last_stable_offset=6), SECOND) == [
        (IndexFault.LAST_STABLE_OFFSET, 5, 6, 3)
    ]
    assert faults(ROWS, FIRST, SECOND, AbortedTransaction(8, 7, 9, 10)) == [
        (IndexFault.WITHOUT_MARKER, 9, 7, -1)
    ]


@pytest.mark.parametrize("word", ["commit", "abort"])
def test_a_marker_that_aborts_nothing(word: str) -> None:
    rows = [marker(0, word)]
    assert faults(rows) == []
    assert faults(rows, AbortedTransaction(7, 0, 0, 1)) == [(IndexFault.WITHOUT_MARKER, 0, 0, -1)]


def test_where_offsets_are_missing_only_what_is_sure_is_told() -> None:
    rows = [*ROWS, sent(9, 9, 0, producer=9)]
    assert faults(rows, FIRST._replace(first_offset=1, last_stable_offset=6)) == [
        (IndexFault.ABSENT, 6, -1, -1)
    ]


def test_a_log_whose_beginning_is_deleted() -> None:
    rows = [sent(10, 11, 5, transactional=True), marker(12, "abort"), marker(13, "abort", 8)]
    assert faults(rows, AbortedTransaction(7, 4, 12, 5), AbortedTransaction(8, 5, 13, 14)) == []
    assert faults(rows, AbortedTransaction(7, 11, 12, 13)) == [
        (IndexFault.FIRST_OFFSET, 12, 11, 10)
    ]
