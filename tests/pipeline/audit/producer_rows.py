"""Batches of producers as rows, for tests of the rules about them; and any log of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import pyarrow as pa
from hypothesis import strategies as st

from fencepost.pipeline.audit.producer_batches import Stretch, stretch_of
from fencepost.pipeline.datasource.schemas import BATCHES
from fencepost.protocol.records import CONTROL_FLAG, MAX_SEQUENCE, TRANSACTIONAL_FLAG
from tests.pipeline.audit.log_rows import Row, batch
from tests.pipeline.audit.summaries import START_MS

T = TypeVar("T")

TRANSACTIONAL: Final = TRANSACTIONAL_FLAG
_WORDS: Final = ("abort", "commit")


def sent(
    base: int, last: int, sequence: int, producer: int = 7, epoch: int = 0, **other: object
) -> Row:
    """A batch of a producer; ``transactional=True`` within a transaction."""
    is_transactional = other.pop("transactional", False)
    row = batch(base, last, attributes=TRANSACTIONAL if is_transactional else 0)
    return {**row, **_of(base, producer, epoch, sequence), **other}


def marker(
    base: int, word: str, producer: int = 7, epoch: int = 0, coordinator: int = 0, **other: object
) -> Row:
    """A transaction marker: ``commit`` or ``abort``."""
    row = batch(base, base, attributes=TRANSACTIONAL | CONTROL_FLAG)
    what: Row = {"marker": word, "coordinator_epoch": coordinator}
    return {**row, **_of(base, producer, epoch, -1), **what, **other}


def _of(base: int, producer: int, epoch: int, sequence: int) -> Row:
    return {
        "producer_id": producer,
        "producer_epoch": epoch,
        "base_sequence": sequence,
        "max_timestamp": START_MS + base,
    }


def stretch(rows: Sequence[Row]) -> Stretch:
    """The stretch that rows are."""
    found = stretch_of(pa.Table.from_pylist(list(rows), BATCHES))
    assert found is not None
    return found


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    """Any log of three producers: much follows, much does not; now and then there is a hole."""
    rows: list[Row] = []
    offset = 0
    following: dict[int, int] = {}
    epochs: dict[int, int] = {}
    for _ in range(draw(st.integers(1, 14))):
        producer = draw(st.integers(1, 3))
        offset += draw(st.sampled_from([0, 0, 0, 2]))
        epoch = epochs.get(producer, 0) + draw(st.sampled_from([0, 0, 0, 1, -1]))
        epochs[producer] = max(epoch, 0)
        other = {"producer": producer, "epoch": epochs[producer]}
        time = START_MS + offset + draw(st.sampled_from([0, 0, 0, 90_000_000]))
        if draw(st.integers(0, 3)) == 0:
            word, coordinator = draw(st.sampled_from(_WORDS)), draw(st.integers(0, 1))
            rows.append(marker(offset, word, coordinator=coordinator, max_timestamp=time, **other))
            offset += 1
            continue
        last = offset + draw(st.integers(0, 2))
        sequence = draw(st.sampled_from([following.get(producer, 0)] * 3 + [0, MAX_SEQUENCE, -1]))
        is_transactional = draw(st.booleans())
        rows.append(
            sent(
                offset, last, sequence, transactional=is_transactional, max_timestamp=time, **other
            )
        )
        following[producer] = (sequence + last - offset + 1) & MAX_SEQUENCE
        offset = last + 1
    return rows


@st.composite
def splits(draw: st.DrawFn, count: int) -> list[tuple[int, int]]:
    """Any way to divide so many into stretches that follow one another."""
    cuts = sorted(draw(st.sets(st.integers(1, count - 1)))) if count > 1 else []
    return list(zip([0, *cuts], [*cuts, count], strict=True))


def merged(data: st.DataObject, parts: Sequence[T], merge: Callable[[T, T], T]) -> T:
    """Neighbours merged in any order until one is left."""
    left = list(parts)
    while len(left) > 1:
        at = data.draw(st.integers(0, len(left) - 2))
        left[at : at + 2] = [merge(left[at], left[at + 1])]
    return left[0]
