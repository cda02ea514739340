from __future__ import annotations

import pytest

from fencepost.client.append_attempts import BatchLimits, encode_set, split_batches
from fencepost.client.append_outcomes import ExpectedRecords
from fencepost.client.batches import NOT_SEQUENCED, NewRecord, Sequenced
from fencepost.protocol.compression import Codec
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import iter_headers


def sized(*sizes: int) -> list[NewRecord]:
    return [NewRecord(value=b"v" * size, timestamp=1) for size in sizes]


def own(count: int, first: int, sequenced: Sequenced = NOT_SEQUENCED) -> ExpectedRecords:
    return ExpectedRecords(
        records=tuple(sized(*range(count))), first_offset=first, sequenced=sequenced
    )


@pytest.mark.parametrize(
    ("count", "limit", "lengths"),
    [(0, 3, []), (1, 3, [1]), (3, 3, [3]), (4, 3, [3, 1]), (6, 3, [3, 3]), (3, 1, [1, 1, 1])],
)
def test_batches_of_so_many_records(count: int, limit: int, lengths: list[int]) -> None:
    batches = list(split_batches(sized(*[1] * count), BatchLimits(max_records=limit)))
    assert [len(each) for each in batches] == lengths


@pytest.mark.parametrize(
    ("sizes", "lengths"),
    [
        ((100, 100, 100), [2, 1]),
        ((900, 10, 10), [1, 2]),
        ((10, 900), [1, 1]),
        ((400,), [1]),
    ],
)
def test_batches_of_so_many_bytes(sizes: tuple[int, ...], lengths: list[int]) -> None:
    limits = BatchLimits(max_bytes=400)
    assert [len(each) for each in split_batches(sized(*sizes), limits)] == lengths


def test_no_batch_is_larger_than_it_may_be() -> None:
    wide = NewRecord(
        key=b"k" * 9, value=b"v" * 70, timestamp=2**60, headers=(("é" * 9, b"h" * 80), ("n", None))
    )
    far = NewRecord(value=None, timestamp=0)
    records = tuple([wide, far] * 50)
    mine = ExpectedRecords(records=records, first_offset=0, sequenced=NOT_SEQUENCED)
    encoded = encode_set(mine, 0, BatchLimits(max_bytes=1000))
    headers = [header for _, header in iter_headers(encoded)]
    assert sum(each.record_count for each in headers) == 100
    assert 500 < max(each.size for each in headers) <= 1000


def test_every_batch_states_what_it_expects() -> None:
    producer = Sequenced(producer_id=7, producer_epoch=2, base_sequence=2**31 - 2)
    encoded = encode_set(own(5, 10, producer), 11, BatchLimits(max_records=2, codec=Codec.LZ4))
    found = [
        (each.base_offset, each.record_count, each.codec, each.producer_id, each.base_sequence)
        for _, each in iter_headers(encoded)
    ]
    assert found == [(11, 2, Codec.LZ4, 7, 2**31 - 1), (13, 2, Codec.LZ4, 7, 1)]
    at = [pos for pos, _ in iter_headers(encoded)][1]
    assert [(each.offset, len(each.value or b"")) for each in iter_records(encoded, at)] == [
        (13, 3),
        (14, 4),
    ]
