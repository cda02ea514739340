"""Entries of indexes that tell what is not so."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from fencepost.protocol.records import iter_headers
from fencepost.storage.formats.indexes import OffsetIndex, TimeIndex
from tests.harness import records
from tests.pipeline.datasource.segments import T, Written, batch, some_batches, write

BASE = 1000


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return write(tmp_path, some_batches(base_offset=BASE), base_offset=BASE)


def change_offsets(written: Written, number: int, *, offset: int = 0, position: int = 0) -> None:
    """Let an entry say more than it did."""
    entries = OffsetIndex.decode(written.offset_index.read_bytes(), BASE).entries()
    entry = entries[number]
    data = struct.pack(">ii", entry.offset + offset - BASE, entry.position + position)
    written.change(written.offset_index, 8 * number, data)


def change_times(written: Written, number: int, *, timestamp: int = 0, offset: int = 0) -> None:
    entries = TimeIndex.decode(written.time_index.read_bytes(), BASE).entries()
    entry = entries[number]
    data = struct.pack(">qi", entry.timestamp + timestamp, entry.offset + offset - BASE)
    written.change(written.time_index, 12 * number, data)


def test_they_have_entries(written: Written) -> None:
    assert len(OffsetIndex.decode(written.offset_index.read_bytes(), BASE)) > 4
    assert len(TimeIndex.decode(written.time_index.read_bytes(), BASE)) > 4


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"position": 1}, "says that a batch begins where none does"),
        ({"offset": -1}, "says that the batch there ends at an offset at which it does not"),
        ({"position": 1 << 20}, "says that a batch begins where none does"),
        ({"offset": -500}, "does not follow on the one before it"),
    ],
)
def test_an_offset_entry(written: Written, change: dict[str, int], why: str) -> None:
    change_offsets(written, 2, **change)
    first, *_ = written.problems()
    assert first == ("offset-index", 16, 8)
    assert why in written.rows()["message"].drop_null()[0].as_py()


def test_an_offset_entry_of_another_batch(written: Written) -> None:
    """Its position is right, and its offset is the end of the batch before."""
    entry = OffsetIndex.decode(written.offset_index.read_bytes(), BASE).entries()[2]
    ends = [header.last_offset for _, header in iter_headers(written.log.read_bytes())]
    before = max(end for end in ends if end < entry.offset)
    change_offsets(written, 2, offset=before - entry.offset)
    assert written.problems() == [("offset-index", 16, 8)]


def test_an_offset_entry_of_several_batches(written: Written) -> None:
    """As older Kafkas wrote them: the last offset of all that was appended in one go."""
    entries = OffsetIndex.decode(written.offset_index.read_bytes(), BASE).entries()
    ends = [
        (position, header.last_offset)
        for position, header in iter_headers(written.log.read_bytes())
    ]
    number, entry = next(
        (number, entry)
        for number, entry in enumerate(entries[:-1])
        if entries[number + 1].position > next(p for p, _ in ends if p > entry.position)
    )
    later = next(end for position, end in ends if position > entry.position)
    change_offsets(written, number, offset=later - entry.offset)
    assert written.problems() == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"timestamp": 1}, "says a timestamp that is not the batch's"),
        ({"timestamp": -1}, "says a timestamp that is not the batch's"),
        ({"offset": 10_000}, "names an offset that no batch has"),
        ({"offset": -500}, "does not follow on the one before it"),
    ],
)
def test_a_time_entry(written: Written, change: dict[str, int], why: str) -> None:
    change_times(written, 2, **change)
    first, *_ = written.problems()
    assert first == ("time-index", 24, 12)
    assert why in written.rows()["message"].drop_null()[0].as_py()


def test_a_time_that_is_not_the_largest_so_far(tmp_path: Path) -> None:
    late, early = batch(90, 1), batch(1, 1)
    moved = bytearray(late)
    moved[:8] = struct.pack(">q", 0)
    written = write(tmp_path, [bytes(moved), early])
    written.time_index.write_bytes(struct.pack(">qi", T + 1000, 1))
    (row,) = written.rows().to_pylist()[2:3]
    assert row["message"] == (
        f"entry 0 (timestamp {T + 1000}, offset 1) says a timestamp that is not the largest so far"
    )


def test_a_time_index_that_ends_early(tmp_path: Path) -> None:
    for closed in (True, False):
        written = write(tmp_path, some_batches(), closed=closed)
        written.time_index.write_bytes(written.time_index.read_bytes()[:-12])
        assert written.problems() == [("time-index", None, None)] * closed


def test_parts_of_entries(written: Written) -> None:
    for path in (written.offset_index, written.time_index):
        path.write_bytes(path.read_bytes() + b"\1")
    assert written.problems() == [("offset-index", None, None), ("time-index", None, None)]


@pytest.mark.parametrize("closed", [True, False])
def test_zeros_are_no_entries(tmp_path: Path, closed: bool) -> None:
    """A broker cuts them from the offset index of a segment that it closes."""
    written = write(tmp_path, some_batches(), closed=closed)
    written.offset_index.write_bytes(written.offset_index.read_bytes() + bytes(80))
    written.time_index.write_bytes(written.time_index.read_bytes() + bytes(120))
    assert written.problems() == [("offset-index", None, None)] * closed


def test_an_index_without_entries(written: Written) -> None:
    """Of offsets it is only slow."""
    written.offset_index.write_bytes(b"")
    written.time_index.write_bytes(b"")
    assert written.problems() == [("time-index", None, None)]


def test_noise_is_told_shortly(written: Written) -> None:
    written.offset_index.write_bytes(b"\x7f\x01\x02\x03" * 2000)
    rows = [row for row in written.rows().to_pylist() if row["problem"]]
    assert len(rows) == 101
    assert rows[-1]["message"] == "900 more entries are false"


def test_a_record_of_1970(tmp_path: Path) -> None:
    written = write(tmp_path, [bytes(records.batch((0, None, b"v")))])
    assert written.time_index.read_bytes() == bytes(12)
    assert written.problems() == []
