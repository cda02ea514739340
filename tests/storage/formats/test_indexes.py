"""The two indexes of a segment, with files that Kafka 4.3.1 wrote."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.storage.formats.indexes import (
    CorruptIndex,
    OffsetIndex,
    TimeIndex,
    decode_transactions,
    encode_transactions,
)
from fencepost.storage.log.transactions import AbortedTransaction

BASE = 12
"""Of a segment with four batches of three records, of 237 bytes each, a second apart."""
T = 1_795_287_833_772
KAFKA_INDEX = bytes.fromhex("00000005000000ed00000008000001da0000000b000002c7")
KAFKA_TIME_INDEX = bytes.fromhex(
    "000001a1ff7e5cac00000005000001a1ff7e686400000008000001a1ff7e741c0000000b"
)
PADDED = 65_536
"""What Kafka allotted for the first; for the other one it was 65,532."""

OFFSETS = [(17, 237), (20, 474), (23, 711)]
TIMES = [(T, 17), (T + 3000, 20), (T + 6000, 23)]


def offset_index(*entries: tuple[int, int], base: int = BASE) -> OffsetIndex:
    index = OffsetIndex(base)
    for entry in entries:
        index.append(*entry)
    return index


def time_index(*entries: tuple[int, int], base: int = BASE) -> TimeIndex:
    index = TimeIndex(base)
    for entry in entries:
        assert index.append(*entry)
    return index


# -- Kafka's files -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [len(KAFKA_INDEX), PADDED])
def test_kafkas_offset_index_is_read(size: int) -> None:
    index = OffsetIndex.decode(KAFKA_INDEX.ljust(size, b"\0"), BASE)
    assert index.entries() == OFFSETS
    assert (len(index), index.last) == (3, (23, 711))


@pytest.mark.parametrize("size", [len(KAFKA_TIME_INDEX), PADDED - PADDED % 12])
def test_kafkas_time_index_is_read(size: int) -> None:
    index = TimeIndex.decode(KAFKA_TIME_INDEX.ljust(size, b"\0"), BASE)
    assert index.entries() == TIMES
    assert (len(index), index.last) == (3, (T + 6000, 23))


def test_what_kafka_wrote_is_written() -> None:
    assert offset_index(*OFFSETS).encode() == KAFKA_INDEX
    assert time_index(*TIMES).encode() == KAFKA_TIME_INDEX


@pytest.mark.parametrize("start", range(4))
def test_only_the_newest_entries_are_written(start: int) -> None:
    assert offset_index(*OFFSETS).encode(start) == KAFKA_INDEX[8 * start :]
    assert time_index(*TIMES).encode(start) == KAFKA_TIME_INDEX[12 * start :]


# -- what an index says --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offset", "position", "after"),
    [
        (12, 0, 237),
        (16, 0, 237),
        (17, 237, 474),
        (18, 237, 474),
        (22, 474, 711),
        (23, 711, None),
        (999, 711, None),
        (0, 0, 237),
    ],
)
def test_positions_are_looked_up(offset: int, position: int, after: int | None) -> None:
    index = offset_index(*OFFSETS)
    assert index.lookup(offset) == position
    assert index.position_after(offset) == after


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (0, (-1, BASE)),
        (T - 1, (-1, BASE)),
        (T, (T, 17)),
        (T + 2999, (T, 17)),
        (T + 6000, (T + 6000, 23)),
        (T + 10**9, (T + 6000, 23)),
    ],
)
def test_times_are_looked_up(timestamp: int, found: tuple[int, int]) -> None:
    assert time_index(*TIMES).lookup(timestamp) == found


def test_an_empty_index_says_as_much() -> None:
    for data in (b"", bytes(800), bytes(2400)):
        index = OffsetIndex.decode(data, BASE)
        assert (len(index), index.last, index.entries()) == (0, (BASE, 0), [])
        assert (index.lookup(99), index.position_after(0), index.encode()) == (0, None, b"")
    for data in (b"", bytes(1200), bytes(2400)):
        times = TimeIndex.decode(data, BASE)
        assert (len(times), times.last, times.entries()) == (0, (-1, BASE), [])
        assert (times.lookup(T), times.encode()) == ((-1, BASE), b"")


@pytest.mark.parametrize(
    ("offset", "kept"), [(0, 0), (12, 0), (17, 0), (18, 1), (20, 1), (23, 2), (24, 3), (99, 3)]
)
def test_what_holds_an_offset_or_lies_behind_is_dropped(offset: int, kept: int) -> None:
    index, times = offset_index(*OFFSETS), time_index(*TIMES)
    assert index.truncate(offset) == times.truncate(offset) == (kept < 3)
    assert index.entries() == OFFSETS[:kept]
    assert times.entries() == TIMES[:kept]


@pytest.mark.parametrize(
    "entry",
    [(23, 900), (22, 900), (24, 711), (24, 710), (11, 900), (24, 2**31), (BASE + 2**31, 900)],
)
def test_an_offset_entry_that_cannot_be_is_refused(entry: tuple[int, int]) -> None:
    index = offset_index(*OFFSETS)
    with pytest.raises(ValueError, match=r"offset|position"):
        index.append(*entry)
    assert index.entries() == OFFSETS


@pytest.mark.parametrize("entry", [(11, 1), (12, 0), (12, -1)])
def test_nor_a_first_one(entry: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="does not follow"):
        offset_index(entry)


def test_entries_reach_as_far_as_they_can() -> None:
    far = BASE + 2**31 - 1
    index = offset_index((far, 2**31 - 1))
    assert OffsetIndex.decode(index.encode(), BASE).entries() == [(far, 2**31 - 1)]
    times = time_index((2**63 - 1, far))
    assert TimeIndex.decode(times.encode(), BASE).entries() == [(2**63 - 1, far)]
    with pytest.raises(ValueError, match="too far"):
        time_index((1, far + 1))


def test_a_time_that_is_no_later_is_not_noted() -> None:
    index = time_index(*TIMES)
    assert not index.append(T + 6000, 26)
    assert index.entries() == TIMES
    assert not TimeIndex(BASE).append(-1, BASE)


@pytest.mark.parametrize("entry", [(T + 5999, 26), (T + 6001, 22), (-2, 26)])
def test_a_time_entry_that_cannot_be_is_refused(entry: tuple[int, int]) -> None:
    index = time_index(*TIMES)
    with pytest.raises(ValueError, match="does not follow"):
        index.append(*entry)
    assert index.entries() == TIMES


def test_the_first_record_may_be_of_1970() -> None:
    """Which is an entry of zeros."""
    data = time_index((0, BASE)).encode()
    assert data == bytes(12)
    assert TimeIndex.decode(data, BASE).entries() == [(0, BASE)]
    data = time_index((0, BASE), (256, 13)).encode()
    assert TimeIndex.decode(data + bytes(24), BASE).entries() == [(0, BASE), (256, 13)]


# -- what is no index ----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 23, 25])
def test_a_part_of_an_entry_is_corrupt(size: int) -> None:
    with pytest.raises(CorruptIndex, match="no entries"):
        OffsetIndex.decode((KAFKA_INDEX * 2)[:size], BASE)
    with pytest.raises(CorruptIndex, match="no entries"):
        TimeIndex.decode((KAFKA_TIME_INDEX * 2)[:size], BASE)


@pytest.mark.parametrize(
    "data",
    [
        KAFKA_INDEX[8:16] + KAFKA_INDEX[:8],
        KAFKA_INDEX[:8] * 2,
        bytes(8) + KAFKA_INDEX,
        KAFKA_INDEX + bytes(8) + KAFKA_INDEX,
        b"\xff" * 8,
        b"\0\0\0\1" + bytes(4),
        struct.pack(">4i", 5, 100, 5, 200),
        struct.pack(">4i", 5, 200, 8, 200),
    ],
    ids=["falls", "stays", "from 0", "a hole", "negative", "at 0", "offset", "position"],
)
def test_offsets_that_do_not_rise_are_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptIndex, match="do not rise"):
        OffsetIndex.decode(data, BASE)


@pytest.mark.parametrize(
    "data",
    [
        KAFKA_TIME_INDEX[12:24] + KAFKA_TIME_INDEX[:12],
        KAFKA_TIME_INDEX[:12] * 2,
        KAFKA_TIME_INDEX + bytes(12) + KAFKA_TIME_INDEX,
        b"\xff" * 12,
        struct.pack(">qiqi", T, 5, T + 1, 5),
        struct.pack(">qiqi", T, 5, T, 8),
    ],
    ids=["falls", "stays", "a hole", "negative", "offset", "time"],
)
def test_times_that_do_not_rise_are_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptIndex, match="do not rise"):
        TimeIndex.decode(data, BASE)


rising = st.lists(st.integers(1, 2**31 - 1), unique=True, max_size=30).map(sorted)


@given(offsets=rising, positions=rising, padding=st.integers(0, 5))
def test_what_is_written_is_read(offsets: list[int], positions: list[int], padding: int) -> None:
    entries = list(zip((BASE + each for each in offsets), positions, strict=False))
    data = offset_index(*entries).encode()
    assert OffsetIndex.decode(data + bytes(8 * padding), BASE).entries() == entries
    times = [(position << 20, offset) for offset, position in entries]
    data = time_index(*times).encode()
    assert TimeIndex.decode(memoryview(data + bytes(24 * padding)), BASE).entries() == times


# The transaction index.

ABORTED = [AbortedTransaction(1, 2, 9, 5), AbortedTransaction(7, 5, 10, 11)]
ABORTED_BYTES = bytes.fromhex(
    "0000 0000000000000001 0000000000000002 0000000000000009 0000000000000005"
    "0000 0000000000000007 0000000000000005 000000000000000a 000000000000000b"
)


def test_aborted_transactions_are_written_as_kafka_does() -> None:
    assert encode_transactions(ABORTED) == ABORTED_BYTES
    assert decode_transactions(ABORTED_BYTES, 9) == ABORTED
    assert decode_transactions(b"", 0) == []


@pytest.mark.parametrize(
    "data",
    [
        ABORTED_BYTES[:-1],
        b"\0\1" + ABORTED_BYTES[2:],
        ABORTED_BYTES[34:] + ABORTED_BYTES[:34],
        encode_transactions([AbortedTransaction(1, 2, 8, 5)]),
    ],
    ids=["cut short", "another version", "markers do not rise", "marker before the segment"],
)
def test_what_is_no_transaction_index(data: bytes) -> None:
    with pytest.raises(CorruptIndex):
        decode_transactions(data, 9)
