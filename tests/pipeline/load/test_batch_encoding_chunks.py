"""Chunks are the same however their rows come."""

from __future__ import annotations

import random
from itertools import chain, repeat

import pytest

from fencepost.client.batches import EncodedRecords
from fencepost.pipeline.load.batch_encoding import BatchLimits, ChunkBuilder
from fencepost.protocol.records import HEADER_SIZE
from tests.pipeline.load.rows import batch_of, content, parts, records

LIMITS = BatchLimits(batch_records=40, batch_bytes=3_000, chunk_bytes=9_000)
ROWS = records(3_000)


def cut(sizes: list[int], limits: BatchLimits = LIMITS) -> list[EncodedRecords]:
    """The chunks of all rows, which come in parts of so many, and then one at a time."""
    chunks = ChunkBuilder(limits)
    found = [
        chunk
        for part in parts(batch_of(ROWS), chain(sizes, repeat(1)))
        for chunk in chunks.add(part)
    ]
    return [*found, *chunks.finish()]


@pytest.mark.parametrize("seed", range(5))
def test_however_they_come(seed: int) -> None:
    drawn = random.Random(seed)
    whole = cut([len(ROWS)])
    assert len(whole) > 20
    assert cut([drawn.randrange(1, 700) for _ in range(200)]) == whole


def test_one_at_a_time() -> None:
    few = BatchLimits(batch_records=7, batch_bytes=3_000, chunk_bytes=1)
    assert cut([], few) == cut([len(ROWS)], few)


def test_no_row_is_lost_or_moved() -> None:
    assert content(list(chain.from_iterable(cut([1_000])))) == content(ROWS)


def test_limits() -> None:
    chunks = cut([len(ROWS)])
    for chunk in chunks[:-1]:
        for batch in chunk.batches:
            assert batch.read_header.record_count <= 40
            assert HEADER_SIZE + len(batch.packed) <= 3_000
        *before, _ = chunk.batches
        assert sum(len(batch.packed) for batch in before) < 9_000


def test_a_record_that_is_too_large_is_a_batch_by_itself() -> None:
    small, large = records(5, longest=9), records(1, longest=50_000, seed=4)
    assert len(large[0].value or b"") > 5_000
    chunks = ChunkBuilder(BatchLimits(batch_bytes=2_000))
    found = [*chunks.add(batch_of([*small, *large, *small])), *chunks.finish()]
    counts = [batch.read_header.record_count for chunk in found for batch in chunk.batches]
    assert counts == [5, 1, 5]


def test_nothing_comes_of_nothing() -> None:
    assert list(ChunkBuilder(LIMITS).finish()) == []


def test_impossible_limits() -> None:
    with pytest.raises(ValueError, match="one record at least"):
        BatchLimits(batch_bytes=0)
