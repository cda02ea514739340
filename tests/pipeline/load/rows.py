"""Rows as Spark hands them over, the records that they are to become, and what a topic has."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from fencepost.client import Client, FetchedRecord, NewRecord, OffsetSpec, Partition
from fencepost.client.partitions import fetch, list_offsets

HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_MAX_BYTES: Final = 4 << 20


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


async def log_of(client: Client, topic: str, index: int = 0) -> list[FetchedRecord]:
    """All records of a partition, without a gap from its first offset, which is 0."""
    partition = Partition(topic=topic, index=index)
    client.forget()
    leader = await client.leader(topic, index)
    end = await list_offsets(leader, partition, OffsetSpec.LATEST)
    assert end.error == 0
    found: list[FetchedRecord] = []
    while len(found) < end.offset:
        answer = await fetch(leader, partition, len(found), max_bytes=_MAX_BYTES)
        assert answer.error == 0
        assert answer.content.records, f"nothing at {len(found)} of {end.offset}"
        found += answer.content.records
    assert [each.offset for each in found] == list(range(len(found)))
    return found


def content(found: Sequence[FetchedRecord | NewRecord]) -> list[tuple[object, ...]]:
    """What a record says, wherever it is."""
    return [(each.key, each.value, each.timestamp, each.headers) for each in found]
