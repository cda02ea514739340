"""What a leader's log answers to a produced batch, by its header, its producer and its size.

Expected answers are Apache Kafka 4.3.1's.
"""

import struct
from functools import cache

import pytest
from msgspec.structs import replace

from fencepost.protocol import compression, record_reader
from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import Record, build_batch, crc_ok, read_header
from fencepost.storage.log.append_result import AppendOrigin, AppendRejected, AppendResult
from fencepost.storage.log.config import LogConfig
from tests.harness.logs import NOW, Kind, T, append, new_log, only, read_all, records_of
from tests.harness.records import batch
from tests.storage.log.refusals import (
    CHECKED,
    CODECS,
    COMPACTED,
    changed,
    refused,
    with_log_start,
)

# One whole batch.


def test_offsets_follow_on_each_other() -> None:
    log = new_log(start_offset=40)
    first = append(log, batch((T, None, b"a"), (T + 9, None, b"b")), epoch=3)
    assert first == AppendResult(40, 41, -1, 40, False, 2, T + 9)
    second = append(log, epoch=3)
    assert (second.first_offset, second.last_offset) == (42, 42)
    assert log.log_end_offset == 43
    assert [record.offset for record in records_of(log)] == [40, 41, 42]
    assert log.epoch_entries() == ((3, 40),)


@pytest.mark.parametrize("codec", CODECS)
@only(Kind.MEMORY, Kind.RECENT)
def test_the_very_buffer_is_kept_and_stamped(codec: Codec) -> None:
    log = new_log(start_offset=7)
    frame = bytearray(b"head") + batch((T, b"k", b"v" * 2_000), codec=codec)
    view = memoryview(frame)[4:]
    log.append_as_leader(view, leader_epoch=5, now_ms=NOW)
    (kept,) = read_all(log).buffers
    assert kept is view
    header = read_header(frame, 4)
    assert (header.base_offset, header.partition_leader_epoch) == (7, 5)
    assert crc_ok(frame, 4, header)


@pytest.mark.parametrize("freeze", [bytes, lambda data: memoryview(bytes(data))])
def test_a_read_only_buffer_is_copied(freeze: type[bytes]) -> None:
    log = new_log(start_offset=7)
    data = freeze(batch())
    log.append_as_leader(data, leader_epoch=5, now_ms=NOW)
    assert read_header(data).base_offset == 0
    assert read_header(read_all(log).buffers[0]).base_offset == 7


def test_leader_epoch_and_base_offset_of_the_client_are_overwritten() -> None:
    data = batch()
    struct.pack_into(">q", data, 0, 77)
    struct.pack_into(">i", data, 12, 9)
    log = new_log()
    append(log, data, epoch=2)
    assert read_header(read_all(log).buffers[0])[:3] == (0, len(data) - 12, 2)


@pytest.mark.parametrize("data", [b"", bytes(batch())[:-3], bytes(batch())[:11]])
def test_without_a_whole_batch(data: bytes) -> None:
    assert refused(data) == AppendRejected(error=ErrorCode.INVALID_RECORD)


def test_an_older_format() -> None:
    data = batch()
    data[16] = 1
    assert refused(data) == AppendRejected(error=ErrorCode.INVALID_RECORD)


@pytest.mark.parametrize(
    "data",
    [
        changed(16, ">b", 3),
        changed(8, ">i", 13),
        changed(8, ">i", -5),
        struct.pack(">qi", 0, 48) + bytes(batch())[12:60],
    ],
)
def test_what_is_no_batch_at_all(data: bytes) -> None:
    assert refused(data) == AppendRejected(error=ErrorCode.CORRUPT_MESSAGE)


def test_a_bad_checksum() -> None:
    data = batch()
    data[-2] ^= 1
    assert refused(data) == AppendRejected(error=ErrorCode.CORRUPT_MESSAGE)


def test_two_batches() -> None:
    assert refused(batch() + batch()) == AppendRejected(error=ErrorCode.INVALID_RECORD)


@pytest.mark.parametrize("tail", [b"12345", bytes(batch())[:-3]])
@only(Kind.MEMORY, Kind.RECENT)
def test_what_begins_no_further_batch_is_cut_off(tail: bytes) -> None:
    log = new_log()
    append(log, batch() + tail)
    append(log)
    assert log.size_bytes == 2 * len(batch())
    assert [record.offset for record in records_of(log)] == [0, 1]
    assert [len(buffer) for buffer in read_all(log).buffers] == [len(batch())] * 2


@pytest.mark.parametrize("tail", [bytes(20), bytes(batch())[:16] + b"\x09" + b"x" * 60])
def test_a_corrupt_second_batch(tail: bytes) -> None:
    assert refused(batch() + tail) == AppendRejected(error=ErrorCode.CORRUPT_MESSAGE)


# What the header says.


@pytest.mark.parametrize(
    "data",
    [
        changed(57, ">i", 2),
        changed(23, ">i", 1),
        changed(57, ">i", 0),
        changed(57, ">i", 0, changed(23, ">i", -1)),
        changed(57, ">i", -1),
        changed(21, ">h", 0x20),
        batch(producer=(5_000, 0, -1)),
    ],
    ids=["count", "last offset", "empty", "empty, -1", "negative count", "control", "no sequence"],
)
def test_headers_that_no_client_may_write(data: bytearray) -> None:
    assert refused(data) == with_log_start(ErrorCode.INVALID_RECORD)


def test_a_coordinator_may_write_markers() -> None:
    log = new_log()
    data = build_batch([Record(0, T, b"\0\0\0\1", b"\0\0\0\0\0\0")], control=True, producer_id=4)
    result = log.append_as_leader(data, leader_epoch=0, now_ms=NOW, origin=AppendOrigin.COORDINATOR)
    assert isinstance(result, AppendResult)


@only(Kind.MEMORY, Kind.RECENT)
def test_a_marker_stays_as_the_coordinator_wrote_it() -> None:
    log = new_log(LogConfig(compression_type="gzip"))
    marker = build_batch([Record(0, T, b"\0\0\0\1", b"\0\0\0\0\0\0")], control=True)
    log.append_as_leader(marker, leader_epoch=0, now_ms=NOW, origin=AppendOrigin.COORDINATOR)
    (kept,) = read_all(log).buffers
    assert kept is marker
    assert read_header(kept).is_control


def test_a_coordinator_never_repeats_itself() -> None:
    log = new_log()
    for offset in range(2):
        result = log.append_as_leader(
            batch(producer=(4, 0, 0)),
            leader_epoch=0,
            now_ms=NOW,
            origin=AppendOrigin.COORDINATOR,
        )
        assert isinstance(result, AppendResult)
        assert (result.first_offset, result.duplicate) == (offset, False)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec(codec: int) -> None:
    assert refused(changed(21, ">h", codec)) == with_log_start(ErrorCode.UNKNOWN_SERVER_ERROR)


def test_zstd_before_produce_v7() -> None:
    data = batch(codec=Codec.ZSTD)
    expected = AppendRejected(error=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    assert refused(data, allow_zstd=False) == expected
    assert refused(data + data, allow_zstd=False) == expected
    assert append(new_log(), data).first_offset == 0


def test_a_base_offset_is_refused_only_where_apache_kafka_is_imitated() -> None:
    data = batch()
    struct.pack_into(">q", data, 0, 77)
    config = LogConfig(require_zero_base_offset=True)
    assert refused(data, config) == with_log_start(ErrorCode.INVALID_RECORD)
    assert append(new_log(), data).first_offset == 0


def test_what_is_larger_than_max_message_bytes() -> None:
    data = batch((T, None, b"v" * 100))
    config = LogConfig(max_message_bytes=len(data) - 1)
    assert refused(data, config) == AppendRejected(error=ErrorCode.MESSAGE_TOO_LARGE)
    data[-1] ^= 1
    assert refused(data, config).error is ErrorCode.MESSAGE_TOO_LARGE
    assert append(new_log(replace(config, max_message_bytes=len(batch())))).first_offset == 0


def test_what_is_larger_than_a_segment() -> None:
    data = batch((T, None, b"v" * 100))
    expected = AppendRejected(error=ErrorCode.RECORD_LIST_TOO_LARGE)
    assert refused(data, LogConfig(segment_bytes=len(data) - 1)) == expected
    append(new_log(LogConfig(segment_bytes=len(data))), data)


# Idempotence.


def test_idempotent_producers() -> None:
    log = new_log(start_offset=16)

    def produce(seq: int, *, pid: int = 4, epoch: int = 0) -> AppendResult | AppendRejected:
        return log.append_as_leader(batch(producer=(pid, epoch, seq)), leader_epoch=0, now_ms=NOW)

    accepted = AppendResult(16, 16, -1, 16, False, 1, T)
    duplicate = AppendResult(16, 16, T, 16, True, 1, T)
    gap = AppendRejected(error=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, log_start_offset=16)
    assert produce(0) == accepted
    assert produce(0) == duplicate
    assert produce(1) == accepted._replace(first_offset=17, last_offset=17)
    assert produce(5) == gap
    assert produce(1) == duplicate._replace(first_offset=17, last_offset=17)
    assert produce(0) == duplicate
    assert produce(3, epoch=1) == gap
    assert produce(0, epoch=1) == accepted._replace(first_offset=18, last_offset=18)
    assert produce(2) == AppendRejected(error=ErrorCode.INVALID_PRODUCER_EPOCH, log_start_offset=16)
    assert produce(5, pid=999_999) == accepted._replace(first_offset=19, last_offset=19)
    assert [view.producer_id for view in log.producers()] == [4, 999_999]


def test_a_refused_batch_leaves_no_trace_of_its_producer() -> None:
    log = new_log(COMPACTED)
    refused(batch((T, None, b"v"), producer=(4, 0, 0)), log=log)
    assert log.producers() == ()


def test_silent_producers_expire() -> None:
    log = new_log(LogConfig(producer_id_expiration_ms=1_000))
    append(log, batch(producer=(4, 0, 0)))
    assert log.expire_producers(T + 999) == 0
    assert log.expire_producers(T + 1_000) == 1
    assert append(log, batch(producer=(4, 0, 9))).first_offset == 1


# What may be read.


def test_a_batch_of_too_many_records_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """10 kB of zstd with 15 million records, one of them in the future, took 71 s to refuse."""
    monkeypatch.setattr(compression, "decompress", None)
    data = batch(codec=Codec.ZSTD)
    for at, value in ((57, 1_000_001), (23, 1_000_000)):
        data = changed(at, ">i", value, data)
    data = changed(35, ">q", 2**62, data)
    answer = refused(data)
    assert answer.error is ErrorCode.MESSAGE_TOO_LARGE
    assert answer.message == "The batch has 1000001 records, of at most 1000000."


@cache
def hundred_mebibytes(codec: Codec) -> bytes:
    """A batch that unpacks to a little more; it takes long to make, and every log refuses it."""
    return bytes(batch((T, b"k", bytes(104_857_600)), codec=codec))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_batch_that_unpacks_to_too_much_is_split_by_its_producer(codec: Codec) -> None:
    data = bytearray(hundred_mebibytes(codec))
    answer = refused(data, replace(CHECKED, max_message_bytes=len(data)))
    assert answer.error is ErrorCode.MESSAGE_TOO_LARGE
    assert answer.message is not None
    assert "more bytes after decompression" in answer.message


def test_records_at_fault_are_named_up_to_a_limit() -> None:
    data = batch(*[(T, None, b"") for _ in range(10_001)])
    answer = refused(data, replace(COMPACTED, max_message_bytes=1 << 20))
    assert answer.error is ErrorCode.INVALID_RECORD
    assert [index for index, _ in answer.record_errors] == list(range(10_000))
    assert answer.message is not None
    assert "due to 10001 record errors in total" in answer.message


def test_records_are_checked_without_an_object_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(record_reader, "RecordOutline", lambda *fields: made.append(fields))
    data = batch(*[(T, b"k", b"v") for _ in range(1000)], codec=Codec.ZSTD)
    assert append(new_log(CHECKED), data).records_count == 1000
    assert not made
