"""Faults in the files of a segment are told with their place, and nothing else is."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.pipeline.datasource import segments
from fencepost.pipeline.datasource.segment_scan import Checks
from fencepost.protocol.records import HEADER_SIZE, iter_headers, read_header
from tests.pipeline.datasource.segments import Written, batch, rebuilt, some_batches, write


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return write(tmp_path, some_batches())


@pytest.fixture(params=[400, 1 << 20], autouse=True)
def window(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of less than a batch, and of all of them."""
    monkeypatch.setattr(segments.FileBlob, "window", request.param)


def size(written: Written, number: int) -> int:
    return len(written.batches[number])


def test_nothing_is_wrong(written: Written) -> None:
    rows = written.rows().to_pylist()
    assert [row["problem"] for row in rows] == [None] * len(written.batches)
    assert [(row["position"], row["size"]) for row in rows] == [
        (written.position(number), size(written, number)) for number in range(len(rows))
    ]


def test_the_columns_are_the_headers(written: Written) -> None:
    found = [header for _, header in iter_headers(written.log.read_bytes())]
    for row, header in zip(written.rows().to_pylist(), found, strict=True):
        assert row["base_offset"] == header.base_offset
        assert row["last_offset"] == header.last_offset
        assert row["count"] == header.record_count
        assert row["epoch"] == header.partition_leader_epoch
        assert (row["crc"], row["attributes"]) == (header.crc, header.attributes)
        assert row["base_timestamp"] == header.base_timestamp
        assert row["max_timestamp"] == header.max_timestamp
        assert row["producer_id"] == header.producer_id
        assert row["producer_epoch"] == header.producer_epoch
        assert row["base_sequence"] == header.base_sequence


def test_an_empty_segment(tmp_path: Path) -> None:
    assert write(tmp_path, []).rows().num_rows == 0


# -- batches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 7, 19])
def test_a_bit_of_a_record(written: Written, number: int) -> None:
    at = written.position(number)
    written.change(written.log, at + size(written, number) - 1, b"\xff")
    assert written.problems() == [("crc", at, size(written, number))]
    base = read_header(written.batches[number]).base_offset
    assert base not in written.records()["base_offset"].to_pylist()


def test_a_damaged_length(written: Written) -> None:
    at = written.position(5)
    written.change(written.log, at + 8, struct.pack(">i", size(written, 5) - 12 + 2))
    problems = written.problems(Checks.BATCHES)
    assert ("crc", at, size(written, 5) + 2) in problems
    assert ("structure", at + size(written, 5) + 2, size(written, 6) - 2) in problems
    rows = written.rows()
    assert written.position(7) in rows["position"].to_pylist()


@pytest.mark.parametrize("length", [-1, 0, 48, 2**31 - 1])
def test_an_impossible_length(written: Written, length: int) -> None:
    at = written.position(5)
    written.change(written.log, at + 8, struct.pack(">i", length))
    assert ("structure", at, size(written, 5)) in written.problems()
    assert written.rows()["base_offset"].drop_null().to_pylist() == [
        read_header(each).base_offset for each in [*written.batches[:5], *written.batches[6:]]
    ]


def test_another_magic(written: Written) -> None:
    at = written.position(5)
    written.change(written.log, at + 16, b"\x01")
    assert ("structure", at, size(written, 5)) in written.problems()


def test_zeros_in_the_midst(written: Written) -> None:
    at, end = written.position(5) + 20, written.position(8) + 10
    written.change(written.log, at, bytes(end - at))
    problems = written.problems()
    assert ("crc", written.position(5), size(written, 5)) in problems
    begin = written.position(6)
    assert ("structure", begin, written.position(9) - begin) in problems


@pytest.mark.parametrize("kept", [1, 16, HEADER_SIZE - 1, HEADER_SIZE, HEADER_SIZE + 30])
def test_a_torn_tail(written: Written, kept: int) -> None:
    last = written.position(19)
    written.log.write_bytes(written.log.read_bytes()[: last + kept])
    for index in (written.offset_index, written.time_index):
        index.unlink()
    assert [each for each in written.problems() if each[0] != "missing"] == [
        ("trailing", last, kept)
    ]
    assert written.rows().num_rows == 19 + 3


def test_zeros_behind_the_end(written: Written) -> None:
    end = written.position(20)
    written.change(written.log, end, bytes(1000))
    assert written.problems() == [("trailing", end, 1000)]


def test_batches_in_a_value_are_none(tmp_path: Path) -> None:
    """What looks like a batch behind a torn one, but is before it by its offsets."""
    inner = batch(2, 1)
    written = write(tmp_path, [batch(0, 5), batch(5, 5)])
    torn = batch(10, 1, size=500)[:200] + inner
    written.change(written.log, written.position(2), torn)
    assert written.problems() == [("trailing", written.position(2), len(torn))]


def lying(data: bytes, **fields: int) -> bytes:
    """A batch whose header says something else, with a right checksum."""
    return rebuilt(read_header(data)._replace(**fields), data[HEADER_SIZE:])


@pytest.mark.parametrize(
    "fields",
    [
        {"last_offset_delta": -1},
        {"record_count": -1},
        {"record_count": 4},
        {"record_count": 0},
        {"attributes": 5},
        {"base_offset": -3},
    ],
    ids=str,
)
def test_a_header_that_contradicts_itself(tmp_path: Path, fields: dict[str, int]) -> None:
    written = write(tmp_path, some_batches(), closed=False)
    data = lying(batch(300, 3), **fields)
    end = written.position(20)
    written.change(written.log, end, data + batch(400))
    assert written.problems(Checks.BATCHES) == [("structure", end, len(data))]
    assert written.rows(Checks.BATCHES)["base_offset"].to_pylist()[-1] == 400


@settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(at=st.floats(0, 1, exclude_max=True), data=st.binary(min_size=1, max_size=100))
def test_no_damage_goes_unseen(written: Written, at: float, data: bytes) -> None:
    """Nor raises; but the base offset and the epoch are outside of the checksum."""
    content = b"".join(written.batches)
    start = int(at * len(content))
    data = data[: len(content) - start]
    written.log.write_bytes(content)
    written.change(written.log, start, data)
    seen = written.problems()
    written.records()
    unchecked = {
        written.position(number) + byte
        for number in range(20)
        for byte in (*range(8), *range(12, 16))
    }
    changed = {start + i for i, byte in enumerate(data) if content[start + i] != byte}
    assert seen or changed <= unchecked


# -- files ----------------------------------------------------------------------------------------


def test_files_that_are_not_there(written: Written) -> None:
    written.offset_index.unlink()
    written.time_index.unlink()
    assert written.problems() == [("missing", None, None)] * 2
    told = written.rows()["message"].drop_null().to_pylist()
    assert [message.split()[0] for message in told] == [
        written.offset_index.name,
        written.time_index.name,
    ]


def test_a_log_that_is_not_there(written: Written) -> None:
    written.log.unlink()
    assert written.problems() == [("missing", None, None)]


def test_a_log_that_is_a_directory(written: Written) -> None:
    written.log.unlink()
    written.log.mkdir()
    assert [problem for problem, _, _ in written.problems()] == ["missing"]


def test_a_disk_that_fails(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read before is told."""
    read_into = segments.FileBlob.read_into

    def fail(blob: segments.FileBlob, target: memoryview, position: int) -> int:
        if position > 1000:
            raise OSError(5, "Input/output error")
        return read_into(blob, target, position)

    monkeypatch.setattr(segments.FileBlob, "read_into", fail)
    monkeypatch.setattr(segments.FileBlob, "window", 800)
    *rows, wrong = written.rows().to_pylist()
    assert [row["position"] for row in rows] == [written.position(at) for at in range(len(rows))]
    assert len(rows) > 3
    assert (wrong["problem"], wrong["message"]) == (
        "missing",
        f"{written.log.name} can't be read: Input/output error",
    )


def test_the_active_segment_needs_no_indexes(tmp_path: Path) -> None:
    written = write(tmp_path, some_batches(), closed=False)
    written.offset_index.unlink()
    written.time_index.unlink()
    assert written.problems() == []
