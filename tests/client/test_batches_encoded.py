"""Records that are encoded already."""

from __future__ import annotations

from itertools import pairwise

import pytest

from fencepost.client.append_attempts import BatchLimits, encode_set
from fencepost.client.append_outcomes import ExpectedRecords
from fencepost.client.batches import (
    NOT_SEQUENCED,
    EncodedBatch,
    EncodedRecords,
    NewRecord,
    encode_records,
)
from fencepost.protocol.records import HEADER_SIZE, build_header, iter_headers

RECORDS = [NewRecord(value=b"value %d" % number, timestamp=10 + number) for number in range(10)]


def encoded(*cuts: int) -> EncodedRecords:
    """All records, in batches that begin at the first, at the cuts, and nowhere else."""
    bounds = [0, *cuts, len(RECORDS)]
    batches = []
    for start, end in pairwise(bounds):
        whole = encode_records(RECORDS[start:end])
        batches.append(EncodedBatch(whole[:HEADER_SIZE], bytes(whole[HEADER_SIZE:])))
    return EncodedRecords(batches)


def test_they_are_a_sequence_of_records() -> None:
    found = encoded(3, 4)
    assert len(found) == 10
    assert list(found) == RECORDS
    assert found[4] == RECORDS[4]
    assert found[2:7] == tuple(RECORDS[2:7])
    assert found == encoded(3, 4)
    assert found != encoded(3, 5)


def test_a_header_is_that_of_records_that_are_encoded_one_by_one() -> None:
    whole = encode_records(RECORDS)
    packed = whole[HEADER_SIZE:]
    header = build_header(packed, count=10, base_timestamp=10, max_timestamp=19)
    assert header + packed == whole


@pytest.mark.parametrize("start", [0, 3, 7])
def test_batches_state_the_offsets_that_are_expected(start: int) -> None:
    own = ExpectedRecords(records=encoded(3, 7), first_offset=100, sequenced=NOT_SEQUENCED)
    sent = encode_set(own, 100 + start, BatchLimits())
    offsets = [header.base_offset for _, header in iter_headers(sent)]
    assert offsets == [each for each in (100, 103, 107) if each >= 100 + start]
    one_by_one = b"".join(
        encode_records(RECORDS[first:end], base_offset=100 + first)
        for first, end in ((0, 3), (3, 7), (7, 10))
        if first >= start
    )
    assert sent == one_by_one


def test_from_within_a_batch_on_they_are_encoded_anew() -> None:
    own = ExpectedRecords(records=encoded(3, 7), first_offset=100, sequenced=NOT_SEQUENCED)
    assert own.records[5:] == tuple(RECORDS[5:])
    sent = encode_set(own, 105, BatchLimits())
    assert sent == encode_records(RECORDS[5:], base_offset=105)


def test_a_batch_is_known_in_a_log_by_its_bytes() -> None:
    (batch,) = encoded().batches
    found = memoryview(encode_records(RECORDS, base_offset=55))
    stamped = bytearray(found)
    stamped[12:16] = b"\0\0\0\7"  # the leader's epoch
    ((pos, header),) = iter_headers(stamped)
    assert batch.matches_at(memoryview(stamped), pos, header)
    for at in (20, 43, 61, len(stamped) - 1):
        other = bytearray(stamped)
        other[at] ^= 1
        assert not batch.matches_at(memoryview(other), pos, header)
