"""The fold of producers' states: any split into stretches gives what the whole gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.pipeline.audit.snapshot_fold import (
    Entries,
    SnapshotSummary,
    merge,
    summarize,
    verdict,
)
from fencepost.protocol.records import Record, build_batch, iter_headers
from fencepost.protocol.transaction_markers import EndTransactionMarker
from fencepost.storage.log.producer_state import BatchMetadata, ProducerStateEntry
from fencepost.storage.log.producer_state import ProducerStateManager as States
from tests.pipeline.audit.log_rows import Row
from tests.pipeline.audit.producer_rows import logs, marker, merged, sent, stretch
from tests.pipeline.audit.summaries import START_MS


def parts(
    rows: Sequence[Row], snapshots: Mapping[int, Entries], cuts: Sequence[int] = ()
) -> Iterator[SnapshotSummary]:
    """The log in parts that begin at its snapshots and at cuts, which are offsets of batches."""
    starts = sorted({0, *snapshots, *cuts})
    for start, end in zip(starts, [*starts[1:], 1 << 40], strict=True):
        own = [row for row in rows if start <= int(str(row["base_offset"])) < end]
        yield summarize(stretch(own) if own else None, start, snapshots.get(start))


def told(rows: Sequence[Row], snapshots: Mapping[int, Entries]) -> list[str]:
    first, *rest = parts(rows, snapshots)
    for each in rest:
        first = merge(first, each)
    return [f"{each.offset} {each.message}" for each in verdict(first)]


def entry(
    producer: int = 7, epoch: int = 0, last: int = -1, **how: int | None
) -> ProducerStateEntry:
    batch = BatchMetadata(how.get("sequence", last) or 0, last, 0, START_MS)
    return ProducerStateEntry(
        producer_id=producer,
        producer_epoch=epoch,
        last_timestamp=START_MS,
        coordinator_epoch=how.get("coordinator") or -1,
        txn_first_offset=how.get("begun"),
        batches=(batch,) if last >= 0 else (),
    )


@st.composite
def entries(draw: st.DrawFn) -> Entries:
    offsets = st.integers(-1, 12)
    return tuple(
        entry(
            producer,
            draw(st.integers(0, 1)),
            draw(offsets),
            begun=draw(st.none() | st.integers(0, 12)),
            coordinator=draw(st.integers(-1, 1)),
        )
        for producer in draw(st.sets(st.integers(1, 3)))
    )


@given(st.data())
def test_any_split_gives_what_the_whole_gives(data: st.DataObject) -> None:
    rows = data.draw(logs())
    offsets = [int(str(row["base_offset"])) for row in rows]
    snapshots = data.draw(st.dictionaries(st.sampled_from(offsets), entries()))
    cuts = data.draw(st.sets(st.sampled_from(offsets)))
    whole = merged(data, list(parts(rows, snapshots)), merge)
    split = merged(data, list(parts(rows, snapshots, sorted(cuts))), merge)
    assert verdict(split) == verdict(whole)


@given(st.data())
def test_what_a_broker_writes_is_right(data: st.DataObject) -> None:
    broker, rows, snapshots, offset = States(), [], {}, 0
    for _ in range(data.draw(st.integers(1, 12))):
        producer, epoch = data.draw(st.integers(1, 2)), data.draw(st.integers(0, 1))
        is_transactional = data.draw(st.booleans())
        sequence, count = data.draw(st.integers(0, 3)), data.draw(st.integers(1, 2))
        raw = build_batch(
            [Record(offset + at, START_MS, None, b"") for at in range(count)],
            base_offset=offset,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=is_transactional,
        )
        ((_, header),) = iter_headers(bytes(raw))
        if data.draw(st.integers(0, 3)) == 0:
            broker.end_transaction(header, EndTransactionMarker(True, 3))
            rows.append(marker(offset, "commit", producer, epoch, 3))
            offset += 1
        else:
            broker.update(header)
            last = offset + count - 1
            rows.append(
                sent(offset, last, sequence, producer, epoch, transactional=is_transactional)
            )
            offset += count
        if data.draw(st.booleans()):
            snapshots[offset] = broker.snapshot()
    assert told(rows, snapshots) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (entry(last=2, sequence=9), "last sequence number 9, and by the log 2"),
        (entry(last=1, sequence=2), "last offset 1, and by the log 2"),
        (entry(epoch=1, last=2), "epoch 1, and by the log 0"),
        (entry(last=2), "no transaction is open, and by the log one from offset 0 on is"),
    ],
)
def test_a_snapshot_that_is_wrong(wrong: ProducerStateEntry, said: str) -> None:
    rows = [sent(0, 2, 0, transactional=True)]
    assert told(rows, {3: (entry(last=2, begun=0),)}) == []
    assert f"3 producer 7: {said}" in told(rows, {3: (wrong,)})


def test_producers_that_only_one_of_them_knows() -> None:
    rows = [sent(0, 2, 0), sent(3, 3, 0, producer=8, transactional=True)]
    assert told(rows, {4: (entry(8, last=3, sequence=0, begun=3),)}) == []  # 7 may have expired
    assert told(rows, {4: (entry(last=2),)}) == [
        "4 producer 8, with a transaction from offset 3 on, is missing"
    ]
    known = (entry(last=2), entry(8, last=3, sequence=0, begun=3), entry(9, last=1))
    assert told(rows, {4: known}) == ["4 producer 9: nothing of it is in the log before"]


def test_behind_a_hole_a_snapshot_may_know_more() -> None:
    rows = [sent(0, 2, 0), sent(5, 5, 3)]
    more = entry(last=9, sequence=7)
    assert told(rows, {6: (more, entry(8, last=3))}) == []
    assert told(rows, {6: (entry(last=2),)}) == [
        "6 producer 7: epoch 0 and last offset 2, and the log has epoch 0 and 5"
    ]
