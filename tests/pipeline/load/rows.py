"""Rows as Spark hands them over, and the records that they are to become."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from fencepost.client import FetchedRecord, NewRecord

HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def records(
    count: int, *, seed: int = 1, longest: int = 200, headers: bool = True
) -> list[NewRecord]:
    """Records of all kinds: nulls, empty ones, times that go back."""
    drawn = random.Random(seed)

    def some(most: int) -> bytes | None:
        return None if drawn.random() < 0.1 else drawn.randbytes(drawn.randrange(most))

    return [
        NewRecord(
            key=some(40),
            value=some(longest),
            timestamp=drawn.randrange(0, 1_700_000_000_000),
            headers=tuple(
                (f"h{number}", some(90)) for number in range(drawn.randrange(4) if headers else 0)
            ),
        )
        for _ in range(count)
    ]


def batch_of(found: Sequence[NewRecord], partition: int = 0) -> pa.RecordBatch:
    """The same as rows of one partition."""
    return pa.RecordBatch.from_pydict(
        {
            "partition": pa.array([partition] * len(found), pa.int32()),
            "key": pa.array([each.key for each in found], pa.binary()),
            "value": pa.array([each.value for each in found], pa.binary()),
            "timestamp": pa.array([each.timestamp for each in found], pa.int64()),
            "headers": pa.array(
                [
                    [{"key": name, "value": value} for name, value in each.headers] or None
                    for each in found
                ],
                HEADERS,
            ),
        }
    )


def parts(rows: pa.RecordBatch, sizes: Iterator[int]) -> Iterator[pa.RecordBatch]:
    """The same rows a few at a time."""
    start = 0
    while start < rows.num_rows:
        size = next(sizes)
        yield rows.slice(start, size)
        start += size


def content(found: Sequence[FetchedRecord | NewRecord]) -> list[tuple[object, ...]]:
    """What a record says, wherever it is."""
    return [(each.key, each.value, each.timestamp, each.headers) for each in found]
