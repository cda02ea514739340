"""What a leader's log answers to a produced batch, by its records and their timestamps.

Expected answers are Apache Kafka 4.3.1's.
"""

import pytest
from msgspec.structs import replace

from fencepost.protocol.compression import Codec
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.record_reader import iter_records
from fencepost.protocol.records import Record, build_batch, crc_ok, read_header
from fencepost.storage.log.append_result import AppendRejected, AppendResult
from fencepost.storage.log.config import MAX_LONG, LogConfig
from tests.harness.logs import NOW, Kind, T, append, new_log, only, read_all, records_of
from tests.harness.records import batch
from tests.storage.log.refusals import (
    CHECKED,
    CODECS,
    COMPACTED,
    LOG_APPEND_TIME,
    changed,
    refused,
    with_log_start,
)

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
