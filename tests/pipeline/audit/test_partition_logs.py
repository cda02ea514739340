"""Logs as arrays: what they hold, and where two of them differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fencepost.pipeline.audit.batch_arrays import (
    NOT_FOUND,
    Batches,
    batch_differences,
    covers,
    gaps,
)

_END = 40


@dataclass(frozen=True)
class Batch:
    base: int
    last: int
    epoch: int = 0
    crc: int = 0
    count: int | None = None

    def overlaps(self, other: Batch) -> bool:
        return self.base <= other.last and other.base <= self.last


def arrays(batches: Sequence[Batch]) -> Batches:
    def column(values: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array(values, np.int64)

    zeros = column([0] * len(batches))
    return Batches(
        segment=zeros,
        position=zeros,
        size=zeros,
        base=column([each.base for each in batches]),
        last=column([each.last for each in batches]),
        count=column(
            [each.last - each.base + 1 if each.count is None else each.count for each in batches]
        ),
        epoch=column([each.epoch for each in batches]),
        crc=column([each.crc for each in batches]),
        attributes=zeros,
        batches=zeros + 1,
    )


@st.composite
def logs(draw: st.DrawFn) -> list[Batch]:
    """Batches in order, perhaps with gaps."""
    cuts = sorted(draw(st.sets(st.integers(0, _END), min_size=2, max_size=12)))
    epochs = sorted(draw(st.lists(st.integers(0, 2), min_size=len(cuts), max_size=len(cuts))))
    whole = [
        Batch(start, end - 1, epoch, draw(st.integers(0, 1)))
        for start, end, epoch in zip(cuts, cuts[1:], epochs, strict=False)
    ]
    return [each for each in whole if draw(st.integers(0, 5))]


@given(logs(), logs(), st.integers(0, _END), st.integers(0, _END))
def test_differences_are_those_of_any_two_batches(
    one: list[Batch], other: list[Batch], start: int, end: int
) -> None:
    found = batch_differences(arrays(one), arrays(other), start, end, compacted=False)
    inside = [[b for b in log if start <= b.base and b.last < end] for log in (one, other)]
    wrong = {a for a in inside[0] for b in inside[1] if a.overlaps(b) and a != b}
    told = {a for a in inside[0] for each in found if each.start <= a.base < each.end}
    compared = {a for a in inside[0] if any(a.overlaps(b) for b in inside[1])}
    assert told & compared == wrong
    again = {each.converges_at for each in found} - {None}
    assert again <= {a.base for a in compared - wrong}
    assert all((each.converges_at or each.end) >= each.end for each in found)


@given(logs(), st.integers(0, 1))
def test_a_log_agrees_with_itself(log: list[Batch], compacted: int) -> None:
    assert batch_differences(arrays(log), arrays(log), 0, _END, compacted=bool(compacted)) == []


def test_what_cleaners_wrote_is_not_compared_byte_by_byte() -> None:
    one = arrays([Batch(0, 4, crc=1), Batch(5, 9, crc=1), Batch(10, 14, epoch=1)])
    other = arrays([Batch(0, 4, crc=2, count=3), Batch(5, 9, crc=2), Batch(10, 14, epoch=2)])
    found = batch_differences(one, other, 0, 20, compacted=True)
    assert [(each.start, each.end, each.epoch, each.other_epoch) for each in found] == [
        (5, 15, 0, 0)
    ]
    found = batch_differences(one, other, 0, 20, compacted=False)
    assert [(each.start, each.end) for each in found] == [(0, 15)]


@given(logs(), st.lists(st.integers(0, _END), max_size=20))
def test_who_holds_an_offset(log: list[Batch], offsets: list[int]) -> None:
    numbers = arrays(log).index_of(np.array(offsets, np.int64)).tolist()
    for offset, number in zip(offsets, numbers, strict=True):
        holders = [n for n, each in enumerate(log) if each.base <= offset <= each.last]
        assert [number] == (holders or [NOT_FOUND])


@given(logs())
def test_spans(log: list[Batch]) -> None:
    spans = arrays(log).spans
    held = {offset for each in log for offset in range(each.base, each.last + 1)}
    assert {offset for start, end in spans for offset in range(start, end)} == held
    assert all(before[1] < after[0] for before, after in pairwise(spans))


@given(
    st.lists(st.tuples(st.integers(0, _END), st.integers(0, _END))),
    st.integers(0, _END),
    st.integers(0, _END),
)
def test_gaps(spans: list[tuple[int, int]], start: int, end: int) -> None:
    held = {offset for first, behind in spans for offset in range(first, behind)}
    missing = gaps(spans, start, end)
    assert {o for first, behind in missing for o in range(first, behind)} == (
        set(range(start, end)) - held
    )
    assert covers(spans, start, end) is (not missing)
