"""What a segment says of producers: read in any parts, it is what the whole segment says."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fencepost.pipeline.audit import snapshot_fold, transaction_index_fold
from fencepost.pipeline.audit.condensed.segment_folds import (
    FoldBuilder,
    SegmentFolds,
    folds_of,
    from_json,
    to_json,
)
from fencepost.pipeline.audit.transaction_index_fold import IndexFault, IndexFinding
from fencepost.pipeline.datasource.schemas import BATCHES
from fencepost.storage.formats.checkpoints import encode_snapshot
from fencepost.storage.formats.indexes import encode_transactions
from fencepost.storage.log.producer_state import BatchMetadata, ProducerStateEntry
from fencepost.storage.log.transactions import AbortedTransaction
from tests.pipeline.audit.condensed.partitions import number
from tests.pipeline.audit.log_rows import Row
from tests.pipeline.audit.producer_rows import logs, splits
from tests.pipeline.audit.summaries import START_MS

CORRUPT = b"neither a snapshot nor an index"


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), BATCHES)


@st.composite
def snapshots(draw: st.DrawFn) -> dict[int, bytes]:
    """Some, of which one may be none."""
    found = {}
    for offset in draw(st.sets(st.integers(0, 30), max_size=4)):
        last = draw(st.integers(0, 20))
        entry = ProducerStateEntry(
            producer_id=draw(st.integers(1, 3)),
            producer_epoch=0,
            last_timestamp=START_MS,
            coordinator_epoch=-1,
            txn_first_offset=draw(st.sampled_from([None, 3])),
            batches=(BatchMetadata(last, last, 0, START_MS),),
        )
        found[offset] = draw(st.sampled_from([encode_snapshot([entry])] * 4 + [CORRUPT]))
    return found


@st.composite
def indexes(draw: st.DrawFn, rows: Sequence[Row]) -> bytes:
    """Entries of some markers, and of what is none."""
    if draw(st.integers(0, 5)) == 0:
        return CORRUPT
    markers = {number(row, "base_offset"): row for row in rows if row.get("marker") == "abort"}
    named = draw(st.sets(st.sampled_from([*markers, 1, 5])))
    entries = []
    for offset in sorted(named):
        producer = markers.get(offset, {}).get("producer_id", 1)
        first = draw(st.integers(0, offset))
        entries.append(AbortedTransaction(int(str(producer)), first, offset, first))
    return encode_transactions(entries)


def index_findings(folds: SegmentFolds) -> list[IndexFinding | IndexFault]:
    """Which last stable offset is told of, of many that are wrong, is a matter of the parts."""
    assert folds.index is not None
    found = transaction_index_fold.verdict(folds.index)
    stable = IndexFault.LAST_STABLE_OFFSET
    return [each.fault if each.fault is stable else each for each in found]


@given(st.data())
def test_any_parts_give_what_the_whole_gives(data: st.DataObject) -> None:
    rows = data.draw(logs())
    beside, index = data.draw(snapshots()), data.draw(indexes(rows))
    whole = folds_of(table(rows), 0, beside, index)
    builder = FoldBuilder(0, beside, index)
    for start, end in data.draw(splits(len(rows))):
        builder.add(table(rows[start:end]))
    found = from_json(to_json(builder.finished()))
    assert found.sequences == whole.sequences
    assert found.transactions == whole.transactions
    assert snapshot_fold.verdict(found.snapshots) == snapshot_fold.verdict(whole.snapshots)
    assert sorted(map(str, index_findings(found))) == sorted(map(str, index_findings(whole)))


def test_a_segment_without_a_batch_has_its_snapshot_alone() -> None:
    folds = folds_of(table([]), 7, {7: encode_snapshot([])}, b"")
    assert (folds.sequences, folds.transactions, folds.index) == (None, None, None)
    assert folds.snapshots.first is not None
    assert from_json(to_json(folds)) == folds
