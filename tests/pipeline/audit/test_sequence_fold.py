"""The fold of sequence numbers: any split into stretches gives what the whole gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fencepost.pipeline.audit.sequence_fold import merge, verdict
from fencepost.pipeline.audit.sequence_stretch import Fault, summarize
from fencepost.protocol.records import (
    MAX_SEQUENCE,
    Record,
    build_batch,
    iter_headers,
)
from fencepost.storage.log.producer_state import ProducerStateManager
from tests.pipeline.audit.log_rows import Row
from tests.pipeline.audit.producer_rows import (
    logs,
    marker,
    merged,
    sent,
    splits,
    stretch,
)
from tests.pipeline.audit.summaries import START_MS


def faults(*rows: Row, log_start: int = 0) -> list[tuple[Fault, int]]:
    found = verdict(summarize(stretch(rows)), log_start)
    return [(each.fault, each.offset) for each in found]


@given(st.data())
def test_any_split_gives_what_the_whole_gives(data: st.DataObject) -> None:
    rows = data.draw(logs())
    parts = [summarize(stretch(rows[start:end])) for start, end in data.draw(splits(len(rows)))]
    assert merged(data, parts, merge) == summarize(stretch(rows))


@given(st.lists(st.tuples(*(st.integers(0, 2) for _ in range(3)), st.integers(0, 6))))
def test_what_a_broker_accepts_is_right(wanted: list[tuple[int, int, int, int]]) -> None:
    broker, rows, offset = ProducerStateManager(), [], 0
    for producer, epoch, extra, sequence in wanted:
        data = build_batch(
            [Record(offset + at, START_MS, None, b"") for at in range(1 + extra)],
            base_offset=offset,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        ((_, header),) = iter_headers(bytes(data))
        if broker.duplicate_of(header) or broker.refusal(header, check_sequence=True):
            continue
        broker.update(header)
        rows.append(sent(offset, offset + extra, sequence, producer, epoch))
        offset += 1 + extra
    if rows:
        assert faults(*rows) == []


def test_a_gap_and_a_repetition() -> None:
    assert faults(sent(0, 2, 0), sent(3, 4, 3), sent(5, 5, 7)) == [(Fault.GAP, 5)]
    assert faults(sent(0, 2, 0), sent(3, 5, 0), sent(6, 6, 3)) == [(Fault.REPEATED, 3)]
    assert faults(sent(0, 2, 0), sent(3, 5, 0, producer=8), sent(6, 6, 3)) == []


def test_numbers_wrap() -> None:
    assert faults(sent(0, 2, MAX_SEQUENCE - 1), sent(3, 3, 1)) == []
    assert faults(sent(0, 1, MAX_SEQUENCE - 1), sent(2, 2, 0)) == []
    assert faults(sent(0, 0, MAX_SEQUENCE), sent(1, 1, 2)) == [(Fault.GAP, 1)]


def test_epochs() -> None:
    assert faults(sent(0, 2, 0), sent(3, 4, 0, epoch=1), sent(5, 5, 2, epoch=1)) == []
    assert faults(sent(0, 2, 0), sent(3, 4, 3, epoch=1)) == [(Fault.NEW_EPOCH, 3)]
    assert faults(sent(0, 2, 0, epoch=1), sent(3, 4, 3)) == [(Fault.EPOCH, 3)]
    assert faults(sent(0, 2, 0), marker(3, "abort", epoch=1), sent(4, 4, 0, epoch=1)) == []
    assert faults(sent(0, 2, 0), marker(3, "abort", epoch=1), sent(4, 4, 3, epoch=1)) == [
        (Fault.NEW_EPOCH, 4)
    ]
    assert faults(sent(0, 2, 0), marker(3, "commit"), sent(4, 4, 3)) == []
    assert faults(sent(0, 2, 0, epoch=1), marker(3, "commit")) == [(Fault.EPOCH, 3)]


def test_what_a_broker_may_have_forgotten_or_the_log_has_lost_is_not_judged() -> None:
    day = 24 * 3_600_000
    assert faults(sent(0, 2, 5), sent(3, 3, 9, max_timestamp=START_MS + day + 2)) == []
    assert faults(sent(0, 2, 5), sent(4, 4, 9)) == []
    assert faults(sent(0, 2, 5), sent(3, 3, 0), log_start=3) == []
    assert faults(sent(0, 2, 5), sent(3, 3, 0), log_start=2) == [(Fault.REPEATED, 3)]
    assert faults(sent(0, 2, -1), sent(3, 3, -1), sent(4, 4, 9)) == []
