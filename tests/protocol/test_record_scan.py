"""A scan finds in records what reading them does; the batches of a request share a budget."""

from __future__ import annotations

import random
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.protocol.byte_utils import crc32c
from fencepost.protocol.compression import Codec
from fencepost.protocol.record_reader import (
    ReadBudget,
    RecordOutline,
    RecordScan,
    iter_records,
    unpack_records,
)
from fencepost.protocol.records import (
    InvalidRecords,
    Record,
    TooLargeToRead,
    build_batch,
    read_header,
)

FIELD = st.none() | st.binary(max_size=200)
TIME = st.integers(-(2**40), 2**40)
RECORDS = st.lists(
    st.builds(
        Record,
        st.integers(-3, 2**20),
        TIME,
        FIELD,
        FIELD,
        st.lists(st.tuples(st.text(max_size=3), FIELD), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=6,
)


def outlines(batch: bytes | bytearray) -> tuple[list[RecordOutline], RecordScan]:
    scan = RecordScan()
    found = list(scan.suspects(*unpack_records(batch), earliest=1, latest=0, needs_key=False))
    assert [index for index, _ in found] == list(range(len(found)))
    return [outline for _, outline in found], scan


@given(records=RECORDS, log_append_time=st.booleans())
def test_a_scan_says_what_reading_does(records: list[Record], log_append_time: bool) -> None:
    batch = build_batch(records, log_append_time_ms=7 if log_append_time else None)
    found, scan = outlines(batch)
    read = list(iter_records(batch))
    assert found == [
        RecordOutline(
            each.offset,
            each.timestamp,
            -1 if each.key is None else len(each.key),
            -1 if each.value is None else len(each.value),
        )
        for each in read
    ]
    assert scan.latest_timestamp == max(each.timestamp for each in read)
    assert scan.is_sequential is ([each.offset for each in read] == [*range(len(read))])


@given(seed=st.integers(0, 2**32 - 1))
def test_a_scan_refuses_what_reading_refuses(seed: int) -> None:
    rng = random.Random(seed)
    records = [Record(index, 5, b"key", b"value", (("a", b"b"),)) for index in range(3)]
    batch = build_batch(records)
    for _ in range(rng.choice((1, 2))):
        batch[rng.randrange(61, len(batch))] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
    read: list[Record] | None = None
    with suppress(InvalidRecords):
        read = list(iter_records(batch))
    if read is None:
        with pytest.raises(InvalidRecords):
            outlines(batch)
    else:
        assert len(outlines(batch)[0]) == len(read)


def test_only_what_the_bounds_do_not_clear_is_told() -> None:
    records = [Record(0, 1, b"k", None), Record(1, 9, b"k", None), Record(2, 5, None, None)]
    header, data = unpack_records(build_batch(records))
    scan = RecordScan()
    found = scan.suspects(header, data, earliest=1, latest=8, needs_key=True)
    assert [index for index, _ in found] == [1, 2]
    found = scan.suspects(header, data, earliest=2, latest=9, needs_key=False)
    assert [index for index, _ in found] == [0]


def packed(size: int) -> bytearray:
    return build_batch([Record(0, 1, None, bytes(size))], codec=Codec.ZSTD)


def test_the_batches_of_a_request_share_what_they_unpack_to() -> None:
    budget = ReadBudget()
    budget.max_bytes = 100_000
    budget.unpack(packed(60_000))
    assert 39_000 < budget.max_bytes < 40_000
    with pytest.raises(TooLargeToRead):
        budget.unpack(packed(60_000))
    with pytest.raises(TooLargeToRead):  # how far the one before got is not known
        budget.unpack(packed(10))
    plain = build_batch([Record(0, 1, None, bytes(50))])
    assert budget.unpack(plain)[0] == read_header(plain)


def test_the_batches_of_a_request_share_how_many_records_are_read() -> None:
    budget = ReadBudget()
    budget.max_records = 5
    three = build_batch([Record(index, 1, None, None) for index in range(3)])
    assert len(list(budget.read(three))) == 3
    with pytest.raises(TooLargeToRead, match="3 records; 2 are allowed"):
        budget.read(three)


def test_no_batch_has_more_than_its_single_share() -> None:
    batch = packed(10)
    struct.pack_into(">i", batch, 57, 1_000_001)
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))
    with pytest.raises(TooLargeToRead, match="1000000 are allowed"):
        ReadBudget(times=2).unpack(batch)
