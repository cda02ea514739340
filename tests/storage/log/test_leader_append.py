"""What a leader's log answers to a produced batch. Expected answers are Apache Kafka 4.3.1's."""

import struct
from dataclasses import replace
from functools import cache

import pytest
from crc32c import crc32c

from fencepost.protocol import compression, record_scan
from fencepost.protocol.byte_utils import Buffer
from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import (
    Record,
    build_batch,
    crc_ok,
    iter_records,
    read_header,
)
from fencepost.storage.log.append_result import AppendOrigin, AppendRejected, AppendResult
from fencepost.storage.log.config import MAX_LONG, LogConfig, TimestampType
from fencepost.storage.log.interface import Log
from tests.harness.logs import NOW, Kind, T, append, new_log, only, read_all, records_of
from tests.harness.records import batch

CODECS = list(Codec)
LOG_APPEND_TIME = LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME)
COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}))
CHECKED = LogConfig(validate_records=True)


def changed(at: int, form: str, value: int, data: bytes | bytearray | None = None) -> bytearray:
    """A batch with one field of its header changed and the checksum made good."""
    result = bytearray(data or batch())
    struct.pack_into(form, result, at, value)
    struct.pack_into(">I", result, 17, crc32c(bytes(result[21:])))
    return result


def refused(
    data: Buffer,
    config: LogConfig | None = None,
    *,
    log: Log | None = None,
    allow_zstd: bool = True,
) -> AppendRejected:
    log = log or new_log(config)
    end = log.log_end_offset
    result = log.append_as_leader(data, leader_epoch=0, now_ms=NOW, allow_zstd=allow_zstd)
    assert isinstance(result, AppendRejected)
    assert log.log_end_offset == end
    return result


def with_log_start(error: ErrorCode) -> AppendRejected:
    return AppendRejected(error=error, log_start_offset=0)


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
    ("data", "message"),
    [
        (changed(16, ">b", 3), "Invalid magic found in record: 3"),
        (
            changed(8, ">i", 13),
            "Record size 13 is less than the minimum record overhead (14)",
        ),
        (
            changed(8, ">i", -5),
            "Record size -5 is less than the minimum record overhead (14)",
        ),
        (struct.pack(">qi", 0, 48) + bytes(batch())[12:60], None),
    ],
)
def test_what_is_no_batch_at_all(data: bytes, message: str | None) -> None:
    assert refused(data) == AppendRejected(error=ErrorCode.CORRUPT_MESSAGE, message=message)


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


# Timestamps.


def test_a_timestamp_too_far_ahead() -> None:
    late = NOW + 3_600_001
    config = LogConfig(message_timestamp_after_max_ms=3_600_000)
    assert refused(batch((T, b"k", b"v"), (late, b"k", b"v")), config) == AppendRejected(
        error=ErrorCode.INVALID_TIMESTAMP,
        message="One or more records have been rejected due to invalid timestamp",
        record_errors=(
            (
                1,
                (
                    f"Timestamp {late} of message with offset 1 is out of range. "
                    f"The timestamp should be within [{NOW - MAX_LONG}, {NOW + 3_600_000}]"
                ),
            ),
        ),
        log_start_offset=0,
    )
    for allowed in (config, replace(config, validate_records=True)):
        append(new_log(allowed), batch((late - 1, b"k", b"v")))


def test_a_timestamp_too_old() -> None:
    config = LogConfig(message_timestamp_before_max_ms=1_000)
    rows = [(NOW, None, b"v"), (NOW - 1_001, None, b"v"), (NOW - 1_000, None, b"v")]
    rejected = refused(batch(*rows), config)
    assert rejected.error is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in rejected.record_errors] == [1]
    append(new_log(config), batch((-1, None, b"v")))


@pytest.mark.parametrize("codec", CODECS)
def test_log_append_time(codec: Codec) -> None:
    log = new_log(LOG_APPEND_TIME)
    data = batch((T, b"k", b"v"), (T + 5, b"k", b"v"), codec=codec)
    assert append(log, data) == AppendResult(0, 1, NOW, 0, False, 2, NOW)
    header = read_header(data)
    assert header.is_log_append_time
    assert (header.base_timestamp, header.max_timestamp) == (T, NOW)
    assert crc_ok(data, 0, header)
    assert [record.timestamp for record in records_of(log)] == [NOW, NOW]


def test_a_producer_does_not_set_log_append_time() -> None:
    data = build_batch(
        [Record(0, T, b"k", b"v"), Record(1, T, b"k", b"v")], log_append_time_ms=T + 5
    )
    rejected = refused(data, LOG_APPEND_TIME)
    assert rejected.error is ErrorCode.INVALID_TIMESTAMP
    assert rejected.message == "One or more records have been rejected due to invalid timestamp"
    assert rejected.record_errors[1] == (
        1,
        (
            f"Invalid timestamp type in message DefaultRecord(offset=1, timestamp={T + 5}, "
            "key=1 bytes, value=1 bytes). Producer should not set timestamp type to LogAppendTime."
        ),
    )
    # On a CreateTime topic its flag is taken off, as Kafka does.
    log = new_log()
    append(log, data)
    header = read_header(read_all(log).buffers[0])
    assert not header.is_log_append_time
    assert crc_ok(data, 0, header)


# Records.

NO_KEY = "Compacted topic cannot accept message without key in topic partition t-0"


@pytest.mark.parametrize("codec", CODECS)
def test_a_compacted_topic_wants_keys(codec: Codec) -> None:
    rejected = refused(batch((T, None, b"v"), (T, b"k", b"v"), codec=codec), COMPACTED)
    assert rejected == AppendRejected(
        error=ErrorCode.INVALID_RECORD,
        message="One or more records have been rejected due to 1 record errors in total, and only "
        "showing the first three errors at most: "
        f"[RecordError(batchIndex=0, message='{NO_KEY}')]",
        record_errors=((0, NO_KEY),),
        log_start_offset=0,
    )
    append(new_log(COMPACTED), batch(codec=codec))


def test_three_record_errors_are_shown_and_all_are_listed() -> None:
    rejected = refused(batch(*[(T, None, b"v")] * 5, (T, b"k", b"v")), COMPACTED)
    shown = ", ".join(f"RecordError(batchIndex={i}, message='{NO_KEY}')" for i in range(3))
    assert rejected.message is not None
    assert "due to 5 record errors in total" in rejected.message
    assert rejected.message.endswith(f": [{shown}]")
    assert rejected.record_errors == tuple((index, NO_KEY) for index in range(5))


def test_one_bad_timestamp_names_the_whole_refusal() -> None:
    rejected = refused(batch((T, None, b"v"), (NOW + 7_200_000, b"k", b"v")), COMPACTED)
    assert rejected.error is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in rejected.record_errors] == [0, 1]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (changed(57, ">i", 2, changed(23, ">i", 1)), ErrorCode.INVALID_RECORD),
        (
            changed(57, ">i", 1, changed(23, ">i", 0, batch((T, None, b""), (T, None, b"")))),
            ErrorCode.INVALID_RECORD,
        ),
        (changed(61, ">b", 2), ErrorCode.INVALID_RECORD),
        *((changed(21, ">h", codec), ErrorCode.UNKNOWN_SERVER_ERROR) for codec in (1, 2, 3, 4)),
    ],
)
def test_records_that_do_not_parse(data: bytearray, error: ErrorCode) -> None:
    assert refused(data, CHECKED) == with_log_start(error)
    # Unchecked it is believed, unless it has to be read for another reason.
    append(new_log(), bytearray(data))
    target = "uncompressed" if read_header(data).codec else "gzip"
    assert refused(data, LogConfig(compression_type=target)) == with_log_start(error)


def test_a_max_timestamp_that_lies_is_put_right() -> None:
    log = new_log(CHECKED)
    data = changed(35, ">q", T + 99)
    assert append(log, data).max_timestamp == T
    header = read_header(data)
    assert header.max_timestamp == T
    assert crc_ok(data, 0, header)


# compression.type


@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("source", CODECS)
@only(Kind.MEMORY, Kind.RECENT)
def test_compression_type(target: str, source: Codec) -> None:
    log = new_log(LogConfig(compression_type=target), start_offset=4)
    rows = [(T + index, b"k", b"v" * 1_000) for index in range(3)]
    data = batch(*rows, codec=source, producer=(77, 2, 5))
    append(log, data, epoch=6)
    (kept,) = read_all(log).buffers
    header = read_header(kept)
    assert header.codec == ["uncompressed", "gzip", "snappy", "lz4", "zstd"].index(target)
    assert (kept is data) == (header.codec == source)
    assert crc_ok(kept, 0, header)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 2, 5)
    assert (header.partition_leader_epoch, header.last_offset_delta) == (6, 2)
    assert (header.base_timestamp, header.max_timestamp) == (T, T + 2)
    assert [record[:4] for record in iter_records(kept)] == [
        (4 + index, *row) for index, row in enumerate(rows)
    ]


def test_recompressed_records_count_from_zero() -> None:
    log = new_log(LogConfig(compression_type="gzip"), start_offset=10)
    made_up = [Record(3, T, b"a", b""), Record(8, T, b"b", b"")]
    append(log, build_batch(made_up, last_offset=1))
    assert [(record.offset, record.key) for record in records_of(log)] == [(10, b"a"), (11, b"b")]


def test_recompression_with_log_append_time() -> None:
    log = new_log(replace(LOG_APPEND_TIME, compression_type="gzip"))
    assert append(log, batch((T, b"k", b"v"))).log_append_time_ms == NOW
    header = read_header(read_all(log).buffers[0])
    assert (header.base_timestamp, header.max_timestamp) == (T, NOW)
    assert header.is_log_append_time


def test_what_is_too_large_only_when_unpacked() -> None:
    config = LogConfig(max_message_bytes=200, compression_type="uncompressed")
    rejected = refused(batch((T, b"k", b"v" * 1_000), codec=Codec.GZIP), config)
    assert rejected == AppendRejected(error=ErrorCode.MESSAGE_TOO_LARGE)


def test_levels_are_heeded() -> None:
    rows = [(T, b"%d" % (index * 7919 % 1_000), b"fence post rail" * 3) for index in range(500)]
    sizes = []
    for level in (1, 9):
        log = new_log(LogConfig(compression_type="gzip", compression_gzip_level=level))
        append(log, batch(*rows))
        sizes.append(log.size_bytes)
    assert sizes[1] < sizes[0]


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


def test_an_open_transaction_makes_offsets_unstable() -> None:
    log = new_log()
    append(log)
    append(log, batch(producer=(4, 0, 0), transactional=True))
    assert log.first_unstable_offset == 1
    marker = build_batch(
        [Record(0, T, b"\0\0\0\1", b"\0\0\0\0\0\0")],
        control=True,
        transactional=True,
        producer_id=4,
        producer_epoch=0,
    )
    log.append_as_leader(marker, leader_epoch=0, now_ms=NOW, origin=AppendOrigin.COORDINATOR)
    assert log.first_unstable_offset is None


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
    monkeypatch.setattr(record_scan, "RecordOutline", lambda *fields: made.append(fields))
    data = batch(*[(T, b"k", b"v") for _ in range(1000)], codec=Codec.ZSTD)
    assert append(new_log(CHECKED), data).records_count == 1000
    assert not made
