"""The fold of transactions: any split into stretches gives what the whole gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fencepost.pipeline.audit.transaction_fold import (
    TransactionCounts,
    TransactionFault,
    merge,
    summarize,
    total,
)
from tests.pipeline.audit.log_rows import Row
from tests.pipeline.audit.producer_rows import logs, marker, merged, sent, splits, stretch


def faults(*rows: Row) -> list[tuple[TransactionFault, int]]:
    return [(each.fault, each.batch.offset) for each in summarize(stretch(rows)).findings]


@given(st.data())
def test_any_split_gives_what_the_whole_gives(data: st.DataObject) -> None:
    rows = data.draw(logs())
    whole = summarize(stretch(rows))
    parts = [summarize(stretch(rows[start:end])) for start, end in data.draw(splits(len(rows)))]
    found = merged(data, parts, merge)
    assert found == whole
    assert total(found) == total(whole)


def test_what_has_ended_is_counted() -> None:
    rows = [
        sent(0, 2, 0, transactional=True),
        marker(3, "commit"),
        sent(4, 5, 3, transactional=True),
        sent(6, 8, 0, producer=8, transactional=True),
        sent(9, 9, 5, transactional=True),
        marker(10, "abort"),
        marker(11, "abort"),
    ]
    summary = summarize(stretch(rows))
    assert total(summary) == TransactionCounts(
        committed=1, aborted=1, aborted_records=3, markers_without_batch=1
    )
    still_open = summary.producers[8].open
    assert still_open is not None
    assert (still_open.begin.offset, still_open.records) == (6, 3)
    assert summary.producers[7].open is None


def test_a_producer_that_leaves_its_transaction_without_a_marker() -> None:
    begun = sent(0, 2, 0, transactional=True)
    assert faults(begun, sent(3, 3, 3)) == [(TransactionFault.PLAIN, 3)]
    assert faults(begun, marker(3, "commit"), sent(4, 4, 3)) == []
    assert faults(begun, sent(3, 3, 0, producer=8)) == []
    assert faults(begun, sent(4, 4, 3)) == []  # the marker may have been at offset 3


def test_a_coordinator_that_goes_back() -> None:
    first = marker(0, "commit", coordinator=2)
    assert faults(first, marker(1, "commit", coordinator=1)) == [
        (TransactionFault.COORDINATOR_EPOCH, 1)
    ]
    assert faults(first, marker(1, "commit", coordinator=2)) == []
    assert faults(first, marker(1, "commit", producer=8, coordinator=1)) == []
