"""Records as columns are what `fencepost.protocol.records` makes of the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.pipeline.datasource import batch_bodies, segments
from fencepost.pipeline.datasource.segment_scan import Checks
from fencepost.protocol.byte_utils import write_varint
from fencepost.protocol.compression import Codec, compress
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import HEADER_SIZE, InvalidRecords, Record, build_batch, read_header
from tests.pipeline.datasource.segments import T, Written, batch, rebuilt, some_batches, write

FIELD: Final = st.none() | st.binary(max_size=200)
NAME: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
HEADERS: Final = st.lists(st.tuples(NAME, FIELD), max_size=3).map(tuple)
TIMES: Final = st.integers(-1, 2**62)

quick = settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@st.composite
def batches(draw: st.DrawFn) -> list[bytes]:
    """Batches that follow one another, of any codec, some with gaps as compaction leaves them."""
    found, offset = [], draw(st.integers(0, 2**30))
    for _ in range(draw(st.integers(1, 4))):
        base, records = offset, []
        for _ in range(draw(st.integers(1, 6))):
            offset += draw(st.sampled_from([0, 0, 0, 3]))
            records.append(Record(offset, draw(TIMES), draw(FIELD), draw(FIELD), draw(HEADERS)))
            offset += 1
        sequence = draw(st.sampled_from([-1, 0, 2**31 - 2]))
        found.append(
            bytes(
                build_batch(
                    records,
                    base_offset=base,
                    codec=draw(st.sampled_from(Codec)),
                    leader_epoch=draw(st.integers(0, 9)),
                    log_append_time_ms=draw(st.none() | st.just(T)),
                    producer_id=draw(st.integers(-1, 9)),
                    producer_epoch=3,
                    base_sequence=sequence,
                    transactional=draw(st.booleans()),
                    control=draw(st.booleans()),
                )
            )
        )
    return found


def expected(data: bytes) -> list[dict[str, object]]:
    """The rows of a batch, made one record after the other."""
    header = read_header(data)
    return [
        {
            "topic": "t",
            "partition": 0,
            "place": "log",
            "broker": 1,
            "segment": 0,
            "segment_id": None,
            "base_offset": header.base_offset,
            "offset": record.offset,
            "epoch": header.partition_leader_epoch,
            "timestamp": record.timestamp,
            "key": record.key,
            "value": record.value,
            "headers": [{"key": shown(key), "value": value} for key, value in record.headers],
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "sequence": -1
            if header.base_sequence == -1
            else (header.base_sequence + record.offset - header.base_offset) % 2**31,
            "control": header.is_control,
            "transactional": header.is_transactional,
        }
        for record in iter_records(data)
    ]


def shown(name: str) -> str:
    """A header's name; what is no UTF-8 in it is replaced."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def rows_of(table: pa.Table) -> list[dict[str, object]]:
    found: list[dict[str, object]] = table.to_pylist()
    return found


@quick
@given(found=batches())
def test_they_are_what_is_written(found: list[bytes], tmp_path: Path) -> None:
    written = write(tmp_path, found)
    assert rows_of(written.records()) == [row for each in found for row in expected(each)]
    assert written.problems() == []


def test_many_batches_are_walked_in_step(tmp_path: Path) -> None:
    found = some_batches(300)
    written = write(tmp_path, found)
    assert rows_of(written.records()) == [row for each in found for row in expected(each)]
    assert written.problems() == []


@pytest.mark.parametrize("codec", Codec)
def test_one_batch_of_many_records(tmp_path: Path, codec: Codec) -> None:
    written = write(tmp_path, [batch(0, 5000, codec=codec)])
    assert rows_of(written.records()) == expected(written.batches[0])


def test_windows_end_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = some_batches(50)
    written = write(tmp_path, found)
    whole, records = rows_of(written.rows()), rows_of(written.records())
    for window in (61, 62, 150, 1001):
        monkeypatch.setattr(segments.FileBlob, "window", window)
        assert rows_of(written.rows()) == whole
        assert rows_of(written.records()) == records


def test_unpacked_records_come_a_few_batches_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_bodies, "MAX_DECOMPRESSED_BYTES", 500)
    found = some_batches(50)
    written = write(tmp_path, found)
    assert rows_of(written.records()) == [row for each in found for row in expected(each)]


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    name = b"\xff\xfe".decode("utf-8", "surrogateescape")
    data = build_batch([Record(0, T, b"k", b"v", (("fine", b"1"), (name, None)))])
    (row,) = rows_of(write(tmp_path, [bytes(data)]).records())
    assert row["headers"] == [
        {"key": "fine", "value": b"1"},
        {"key": "\ufffd\ufffd", "value": None},
    ]


# -- what is wrong with records -------------------------------------------------------------------


def changed(data: bytes, body: bytes, **fields: int) -> bytes:
    """The batch with other records behind its header, and the checksum of these."""
    header = read_header(data)._replace(**fields)
    packed = bytes(compress(header.codec, body))
    header = header._replace(batch_length=HEADER_SIZE - 12 + len(packed))
    return rebuilt(header, packed)


def body_of(data: bytes) -> bytes:
    return data[HEADER_SIZE:]


def record(body: bytes) -> bytes:
    out = bytearray()
    write_varint(out, len(body))
    return bytes(out) + body


def alone(fields: bytes) -> bytes:
    """`PLAIN` with one record, of these fields."""
    return changed(PLAIN, record(fields), record_count=1, max_timestamp=FIRST)


def at_deltas(*deltas: int) -> bytes:
    """`PLAIN` with records at other offsets.

    :param deltas: As varints say them: twice as large, and odd where they are negative.
    """
    bodies = (record(b"\0\0" + bytes([delta]) + b"\x01\x01\0") for delta in deltas)
    return changed(PLAIN, b"".join(bodies), max_timestamp=FIRST)


PLAIN: Final = batch(100, 4)
FIRST: Final = T + 100_000
"""The timestamp of its first record, and of those that say none of their own."""
WRONG: Final = {
    "cut short": changed(PLAIN, body_of(PLAIN)[:-1]),
    "bytes behind": changed(PLAIN, body_of(PLAIN) + b"\0"),
    "fewer than counted": changed(PLAIN, body_of(PLAIN), record_count=3),
    "more than there is room for": changed(PLAIN, b"\0" * 30, record_count=4),
    "no size": changed(PLAIN, b"\x01" * 60),
    "the largest size": changed(PLAIN, b"\xfe" + b"\xff" * 8 + b"\x01" + bytes(40)),
    "a varint without end": changed(PLAIN, b"\xff" * 200),
    "another size than its fields": alone(b"\0\0\0\x01\x01\0\0\0\0\0\0\0"),
    "a key beyond the record": alone(b"\0\0\0\x7e\x01\0\0"),
    "a value beyond the record": alone(b"\0\0\0\x01\x7e\0\0"),
    "too many headers": alone(b"\0\0\0\x01\x01\x10\0\0"),
    "a negative number of headers": alone(b"\0\0\0\x01\x01\x01\0"),
    "a header without name": alone(b"\0\0\0\x01\x01\x02\x01\x01"),
    "headers beyond the record": alone(b"\0\0\0\x01\x01\x02\x7e\x01"),
    "bytes behind the headers": alone(b"\0\0\0\x01\x01\x02\x02a\x01\0"),
    "packed otherwise": rebuilt(read_header(PLAIN)._replace(attributes=1), body_of(PLAIN)),
}


@pytest.mark.parametrize("data", WRONG.values(), ids=WRONG)
def test_records_that_do_not_parse(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(InvalidRecords):
        list(iter_records(data))
    assert_only_wrong(tmp_path, data)


UNTRUE: Final = {
    "offsets that do not rise": at_deltas(0, 2, 2, 4),
    "an offset behind the last": at_deltas(0, 2, 4, 8),
    "an offset before the first": at_deltas(1, 0, 2, 4),
    "another largest timestamp": changed(PLAIN, body_of(PLAIN), max_timestamp=T),
}


@pytest.mark.parametrize("data", UNTRUE.values(), ids=UNTRUE)
def test_records_that_are_not_what_the_header_says(tmp_path: Path, data: bytes) -> None:
    list(iter_records(data))  # they do parse
    assert_only_wrong(tmp_path, data)


def assert_only_wrong(folder: Path, data: bytes) -> None:
    """It is found among others, in step with them and alone, and they are read."""
    for others in (0, 40):
        before = [batch(2 * at, 2) for at in range(others)]
        written = write(folder, [*before, data, batch(200)])
        position = written.position(others)
        assert written.problems(Checks.BATCHES) == []
        assert written.problems() == [("records", position, len(data))], others
        offsets = written.records()["base_offset"].to_pylist()
        assert offsets == [*(at // 2 * 2 for at in range(2 * others)), 200, 200, 200]


@quick
@given(data=st.data(), codec=st.sampled_from(Codec))
def test_changed_bytes_are_judged_alike(data: st.DataObject, codec: Codec, tmp_path: Path) -> None:
    """As by who reads one record after the other; besides, by what the header says."""
    good = batch(3, 4, codec=codec)
    body = bytearray(body_of(good))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    bad = rebuilt(read_header(good), bytes(body))
    try:
        rows = expected(bad)
    except InvalidRecords:
        rows = None
    written: Written = write(tmp_path, [bad])
    if written.problems():
        assert rows is None or not is_true(bad)
        assert written.records().num_rows == 0
    else:
        assert rows_of(written.records()) == rows


def is_true(data: bytes) -> bool:
    """Whether records are what the header says."""
    header, records = read_header(data), list(iter_records(data))
    offsets = [record.offset for record in records]
    return (
        offsets == sorted(set(offsets))
        and header.base_offset <= offsets[0]
        and offsets[-1] <= header.last_offset
        and max(record.timestamp for record in records) == header.max_timestamp
    )
