import struct
from contextlib import suppress

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from fencepost.protocol.compression import Codec
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import (
    HEADER_SIZE,
    MAX_SEQUENCE,
    CorruptBatch,
    InvalidRecords,
    Record,
    batch_size,
    build_batch,
    crc_ok,
    decrement_sequence,
    in_writable,
    increment_sequence,
    iter_headers,
    read_header,
    stamp,
    stamp_timestamps,
)

T = 1_700_000_000_000

# One record (T, "k", "v") as Apache Kafka 4.3.1 stored it: base offset 4, leader epoch 0.
STORED = bytes.fromhex(
    "00000000000000040000003a0000000002e99b8dd800000000000000000"
    "18bcfe568000000018bcfe56800ffffffffffffffffffffffffffff00000001"
    "10000000026b027600"
)

fields = st.none() | st.binary(max_size=300)
names = st.text(max_size=20)
headers = st.lists(st.tuples(names, fields), max_size=3).map(tuple)
timestamps = st.integers(-1, 2**62)
contents = st.lists(st.tuples(timestamps, fields, fields, headers), min_size=1, max_size=8)


def resealed(batch: bytes | bytearray) -> bytearray:
    sealed = bytearray(batch)
    struct.pack_into(">I", sealed, 17, crc32c(bytes(sealed[21:])))
    return sealed


def one(*, base_offset: int = 0) -> bytearray:
    return build_batch([Record(base_offset, T, b"k", b"v")], base_offset=base_offset)


@given(contents=contents, codec=st.sampled_from(list(Codec)), base=st.integers(0, 2**62))
def test_what_is_built_reads_back(
    contents: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
    codec: Codec,
    base: int,
) -> None:
    records = [Record(base + 2 * index, *content) for index, content in enumerate(contents)]
    batch = build_batch(records, base_offset=base, codec=codec)
    header = read_header(batch)
    assert list(iter_records(batch)) == records
    assert header.size == len(batch)
    assert header.codec == codec
    assert (header.base_offset, header.last_offset) == (base, records[-1].offset)
    assert header.next_offset == records[-1].offset + 1
    assert header.max_timestamp == max(record.timestamp for record in records)
    assert header.record_count == len(records)
    assert crc_ok(batch, 0, header)


def test_a_batch_is_built_as_kafka_stores_it() -> None:
    batch = build_batch([Record(4, T, b"k", b"v")], base_offset=4, leader_epoch=0)
    assert batch == STORED
    assert crc_ok(STORED, 0, read_header(STORED))


def test_header_fields_and_flags() -> None:
    batch = build_batch(
        [Record(0, T, b"k", b"v")],
        producer_id=7,
        producer_epoch=3,
        base_sequence=MAX_SEQUENCE,
        transactional=True,
        control=True,
    )
    header = read_header(batch)
    assert (header.producer_id, header.producer_epoch) == (7, 3)
    assert header.has_producer_id
    assert header.base_sequence == header.last_sequence == MAX_SEQUENCE
    assert header.is_transactional
    assert header.is_control
    assert not header.is_log_append_time
    assert header.delete_horizon_ms is None
    plain = read_header(one())
    assert (plain.producer_id, plain.last_sequence) == (-1, -1)
    assert not plain.has_producer_id
    assert not plain.is_transactional
    assert not plain.is_control


def test_sequences_wrap() -> None:
    assert increment_sequence(MAX_SEQUENCE - 1, 2) == 0
    assert increment_sequence(MAX_SEQUENCE, 5) == 4
    assert decrement_sequence(0, 2) == MAX_SEQUENCE - 1
    three = [Record(index, T, None, None) for index in range(3)]
    assert read_header(build_batch(three, base_sequence=MAX_SEQUENCE - 1)).last_sequence == 0


@given(sequence=st.integers(0, MAX_SEQUENCE), by=st.integers(0, 10_000))
def test_decrementing_undoes_incrementing(sequence: int, by: int) -> None:
    assert decrement_sequence(increment_sequence(sequence, by), by) == sequence


def test_stamping_changes_offset_and_epoch_and_not_the_checksum() -> None:
    batch = bytearray(b"before") + one() + b"after"
    header = read_header(batch, 6)
    stamp(batch, 6, header, base_offset=2**40, leader_epoch=9)
    stamped = read_header(batch, 6)
    assert stamped == header._replace(base_offset=2**40, partition_leader_epoch=9)
    assert crc_ok(batch, 6, stamped)
    assert batch[:6] == b"before"
    assert batch[-5:] == b"after"


def test_stamping_goes_through_a_view_of_a_frame() -> None:
    frame = bytearray(b"head") + one()
    view = memoryview(frame)[4:]
    stamp(view, 0, read_header(view), base_offset=5, leader_epoch=1)
    assert read_header(frame, 4).base_offset == 5


def test_stamping_timestamps_renews_the_checksum() -> None:
    batch = one()
    stamp_timestamps(batch, 0, read_header(batch), log_append_time=True, max_timestamp=T + 9)
    header = read_header(batch)
    assert header.is_log_append_time
    assert header.max_timestamp == T + 9
    assert header.base_timestamp == T
    assert crc_ok(batch, 0, header)
    assert [record.timestamp for record in iter_records(batch)] == [T + 9]
    stamp_timestamps(batch, 0, header, log_append_time=False, max_timestamp=T)
    assert batch == one()


def test_a_changed_byte_fails_the_checksum() -> None:
    batch = one()
    for position in range(21, len(batch)):
        broken = bytearray(batch)
        broken[position] ^= 1
        assert not crc_ok(broken, 0, read_header(batch))


def test_log_append_time_batches_keep_the_records_own_timestamps_beneath() -> None:
    records = [Record(0, T, b"k", b"v"), Record(1, T + 5, b"k", b"v")]
    batch = build_batch(records, log_append_time_ms=T + 99)
    header = read_header(batch)
    assert (header.base_timestamp, header.max_timestamp) == (T, T + 99)
    assert [record.timestamp for record in iter_records(batch)] == [T + 99, T + 99]


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    records = [Record(0, T, b"k", None), Record(1, T + 5, b"k", b"v")]
    batch = build_batch(records, delete_horizon_ms=T + 1_000)
    assert read_header(batch).delete_horizon_ms == T + 1_000
    assert list(iter_records(batch)) == records


def test_a_batch_without_records_keeps_its_offsets() -> None:
    batch = build_batch([], base_offset=5, last_offset=9, codec=Codec.GZIP, max_timestamp=T)
    header = read_header(batch)
    assert (len(batch), header.base_offset, header.last_offset) == (HEADER_SIZE, 5, 9)
    assert header.max_timestamp == T
    assert list(iter_records(batch)) == []


def test_header_names_that_are_no_utf8_survive() -> None:
    batch = build_batch([Record(0, T, None, None, (("\udcff", b"x"),))])
    assert b"\xff" in bytes(batch)[HEADER_SIZE:]
    assert next(iter_records(batch)).headers == (("\udcff", b"x"),)


def test_headers_of_a_buffer_end_before_a_partial_batch() -> None:
    data = one() + one(base_offset=1) + one()[:-1]
    assert [position for position, _ in iter_headers(data)] == [0, len(one())]
    assert list(iter_headers(b"")) == []
    assert list(iter_headers(one()[:11])) == []


@pytest.mark.parametrize("length", [0, 8, 16, 17, 60, 61])
def test_a_batch_cut_short_has_no_header_and_no_size(length: int) -> None:
    cut = one()[:length]
    with pytest.raises(CorruptBatch):
        read_header(cut)
    assert batch_size(cut) == 0


@pytest.mark.parametrize(
    ("at", "data", "message"),
    [
        (8, b"\0\0\0\x0d", "Record size 13 is less than the minimum record overhead"),
        (8, b"\xff\xff\xff\xfb", "Record size -5 is less than"),
        (16, b"\x03", "Invalid magic found in record: 3"),
        (16, b"\xff", "Invalid magic found in record: -1"),
    ],
)
def test_an_impossible_batch_is_corrupt(at: int, data: bytes, message: str) -> None:
    batch = one()
    batch[at : at + len(data)] = data
    with pytest.raises(CorruptBatch, match=message):
        batch_size(batch)
    with pytest.raises(CorruptBatch):
        list(iter_headers(batch))


def test_older_formats_are_measured_and_not_read() -> None:
    batch = one()
    batch[16] = 1
    assert batch_size(batch) == len(batch)
    with pytest.raises(CorruptBatch, match="magic"):
        read_header(batch)


def test_a_size_too_small_for_the_header_is_corrupt() -> None:
    batch = one()
    batch[8:12] = struct.pack(">i", 20)
    with pytest.raises(CorruptBatch, match="smaller than its header"):
        read_header(batch)


def body(*parts: bytes, count: int = 1) -> bytearray:
    batch = one()[:HEADER_SIZE] + b"".join(parts)
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">i", batch, 57, count)
    return resealed(batch)


@pytest.mark.parametrize(
    "broken",
    [
        body(b""),
        body(b"\x10"),
        body(bytes.fromhex("10000000026b0276")),
        body(bytes.fromhex("10000000026b027600"), count=2),
        body(bytes.fromhex("10000000026b027600"), b"\x00"),
        body(bytes.fromhex("12000000026b02760000")),
        body(bytes.fromhex("0e000000086b027600")),
        body(bytes.fromhex("10000000026b027602")),
        body(bytes.fromhex("10000000026b027601")),
        body(bytes.fromhex("12000000026b02760201")),
        body(b"\x01"),
        body(b"\xff" * 30),
        body(b"\x1c\0", b"\xff" * 9 + b"\x01", b"\x00\x01\x01\x00"),
    ],
    ids=[
        "no record",
        "no fields",
        "cut short",
        "one missing",
        "one byte more",
        "size too large",
        "key too long",
        "headers missing",
        "negative number of headers",
        "header without a name",
        "negative size",
        "endless varint",
        "timestamp beyond 64 bits",
    ],
)
def test_records_that_do_not_parse(broken: bytearray) -> None:
    with pytest.raises(InvalidRecords):
        list(iter_records(broken))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD, 5])
def test_records_that_do_not_decompress(codec: int) -> None:
    batch = one()
    struct.pack_into(">h", batch, 21, codec)
    with pytest.raises(InvalidRecords):
        list(iter_records(resealed(batch)))


def test_records_are_read_up_to_a_limit_of_plain_bytes() -> None:
    batch = build_batch([Record(0, T, None, bytes(10_000))], codec=Codec.ZSTD)
    assert next(iter_records(batch, limit=20_000)).value == bytes(10_000)
    with pytest.raises(InvalidRecords):
        next(iter_records(batch, limit=5_000))


@given(data=st.binary(max_size=200))
def test_no_bytes_do_worse_than_invalid_records(data: bytes) -> None:
    with suppress(InvalidRecords):
        list(iter_records(body(data, count=3)))


def test_offset_deltas_that_a_client_made_up_are_read_as_they_are() -> None:
    # Kafka appends such a batch: nothing but the header is offset arithmetic.
    batch = build_batch([Record(-1, T, b"k", b"v")], last_offset=0)
    assert next(iter_records(batch)).offset == -1


def test_only_what_is_read_only_is_copied() -> None:
    batch = one()
    view = memoryview(batch)
    assert in_writable(batch) is batch
    assert in_writable(view) is view
    for frozen in (bytes(batch), memoryview(bytes(batch))):
        copy = in_writable(frozen)
        assert isinstance(copy, bytearray)
        assert copy == batch
