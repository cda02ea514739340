"""Rows become the very bytes that the same records are when they are encoded one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.client import encode_records
from fencepost.client.append_attempts import _max_record_bytes
from fencepost.client.batches import NewRecord
from fencepost.pipeline.load.batch_encoding import (
    encode_batches,
    encode_varints,
    max_record_sizes,
    varint_sizes,
)
from fencepost.protocol.byte_utils import write_varint
from fencepost.protocol.compression import Codec
from fencepost.protocol.records import HEADER_SIZE, iter_headers
from tests.pipeline.load.rows import batch_of, records

INT64 = st.integers(-(2**63), 2**63 - 1)
RECORD = st.builds(
    NewRecord,
    key=st.none() | st.binary(max_size=80),
    value=st.none() | st.binary(max_size=300),
    timestamp=st.integers(-(2**40), 2**45),
    headers=st.lists(st.tuples(st.text(max_size=9), st.none() | st.binary(max_size=70))).map(tuple),
)


@settings(database=None, max_examples=50)
@given(st.lists(RECORD, min_size=1, max_size=30))
def test_one_batch(found: list[NewRecord]) -> None:
    rows = batch_of(found)
    (batch,) = encode_batches(rows, [0, len(found)])
    assert bytes(batch.header) + bytes(batch.packed) == encode_records(found)
    assert max_record_sizes(rows).tolist() == [_max_record_bytes(each) for each in found]


@settings(database=None, max_examples=50)
@given(st.lists(RECORD, min_size=4, max_size=30), st.data())
def test_many_batches_of_a_part_of_the_rows(found: list[NewRecord], data: st.DataObject) -> None:
    cuts = data.draw(st.sets(st.integers(1, len(found) - 1), min_size=2))
    start, *bounds = sorted(cuts)
    rows = batch_of(found).slice(start)
    batches = encode_batches(rows, [0, *(each - start for each in bounds), len(found) - start])
    ends = [*bounds, len(found)]
    for batch, first, end in zip(batches, [start, *bounds], ends, strict=True):
        assert bytes(batch.header) + bytes(batch.packed) == encode_records(found[first:end])


@pytest.mark.parametrize("codec", list(Codec))
def test_compressed(codec: Codec) -> None:
    found = records(300)
    (batch,) = encode_batches(batch_of(found), [0, 300], codec)
    assert bytes(batch.header) + bytes(batch.packed) == encode_records(found, codec=codec)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_a_batch_is_known_in_a_log_by_its_bytes(codec: Codec) -> None:
    found = records(300)
    (batch,) = encode_batches(batch_of(found), [0, 300], codec)
    log = encode_records(found, codec=codec, base_offset=7)
    ((pos, header),) = iter_headers(log)
    assert batch.matches_at(memoryview(log), pos, header)
    log[-1] ^= 1
    assert not batch.matches_at(memoryview(log), pos, header)


def test_rows_without_a_column_of_headers() -> None:
    found = records(50, headers=False)
    rows = batch_of(found).drop_columns(["headers"])
    (batch,) = encode_batches(rows, [0, 50])
    assert bytes(batch.header) + bytes(batch.packed) == encode_records(found)


def test_offsets_begin_at_0_in_each_batch() -> None:
    """More than 64 records: their deltas take two bytes then."""
    found = records(20_000, longest=3, headers=False)
    first, second = encode_batches(batch_of(found), [0, 9_000, 20_000])
    assert bytes(first.packed) == encode_records(found[:9_000])[HEADER_SIZE:]
    assert bytes(second.packed) == encode_records(found[9_000:])[HEADER_SIZE:]


@settings(database=None, max_examples=50)
@given(st.lists(st.tuples(INT64, INT64), min_size=1))
def test_varints_side_by_side(pairs: list[tuple[int, int]]) -> None:
    written = []
    for pair in pairs:
        each = bytearray()
        for number in pair:
            write_varint(each, number)
        written.append(bytes(each))
    columns = [np.array(column, np.int64) for column in zip(*pairs, strict=True)]
    assert encode_varints(columns).to_pylist() == written
    sizes = sum(varint_sizes(column) for column in columns)
    assert np.array(sizes).tolist() == [len(each) for each in written]
