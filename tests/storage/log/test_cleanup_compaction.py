import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fencepost.protocol.compression import Codec
from fencepost.protocol.records import BatchHeader, Record, build_batch, iter_headers
from fencepost.storage.log.append_result import AppendOrigin
from fencepost.storage.log.config import LogConfig, TimestampType
from fencepost.storage.log.interface import Log
from tests.harness.logs import (
    NOW,
    Kind,
    T,
    append,
    keys_and_values,
    new_log,
    only,
    read_all,
    records_of,
)
from tests.harness.records import batch

CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    delete_retention_ms=1_000,
    min_cleanable_dirty_ratio=0.0,
    message_timestamp_after_max_ms=1 << 40,
)


def rolled(log: Log, *datas: bytearray, now_ms: int = NOW) -> None:
    """Each batch in a closed segment of its own."""
    for data in datas:
        append(log, data, now_ms=now_ms)
        log.roll(now_ms)


def compact(log: Log, now_ms: int = NOW) -> int:
    return log.compact(now_ms, log.log_end_offset)


def contents(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    return keys_and_values(records_of(log))


def headers(log: Log) -> list[BatchHeader]:
    found: list[BatchHeader] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset and (buffers := read_all(log, offset).buffers):
        found += [header for buffer in buffers for _, header in iter_headers(buffer)]
        offset = found[-1].next_offset
    return found


def test_of_each_key_the_last_record_stays() -> None:
    log = new_log(CONFIG)
    rolled(
        log,
        batch((T, b"a", b"1"), (T, b"b", b"1")),
        batch((T, b"a", b"2"), (T, b"c", b"1")),
        batch((T, b"b", b"2")),
    )
    append(log, batch((T, b"c", b"open")))
    assert compact(log) == 2
    # The active segment is not looked at.
    assert contents(log) == [(2, b"a", b"2"), (3, b"c", b"1"), (4, b"b", b"2"), (5, b"c", b"open")]
    assert log.log_end_offset == 6
    assert log.log_start_offset == 0


def test_offsets_between_records_can_still_be_read_from() -> None:
    log = new_log(CONFIG)
    rolled(log, batch((T, b"a", b"1")), batch((T, b"a", b"2")), batch((T, b"a", b"3")))
    compact(log)
    assert read_all(log, 0).first_offset == 2
    assert log.offset_for_timestamp(0) == (T, 2, 0)


def test_a_batch_keeps_its_offsets_and_codec_when_records_leave_it() -> None:
    log = new_log(CONFIG)
    first = batch((T, b"a", b"1"), (T + 1, b"b", b"1"), (T + 2, b"a", b"2"), codec=Codec.LZ4)
    rolled(log, first, batch((T, b"a", b"3")))
    assert compact(log) == 2
    header = headers(log)[0]
    assert (header.base_offset, header.last_offset, header.record_count) == (0, 2, 1)
    assert header.codec == Codec.LZ4
    assert header.max_timestamp == T + 1
    assert contents(log) == [(1, b"b", b"1"), (3, b"a", b"3")]


@only(Kind.MEMORY)
def test_an_untouched_batch_is_the_very_buffer() -> None:
    log = new_log(CONFIG)
    data = batch((T, b"a", b"1" * 2_000))
    rolled(log, data, batch((T, b"b", b"1"), (T, b"b", b"2")))
    assert compact(log) == 1
    assert read_all(log, 0).buffers[0] is data


def test_log_append_time_stays() -> None:
    log = new_log(replace(CONFIG, message_timestamp_type=TimestampType.LOG_APPEND_TIME))
    rolled(log, batch((T, b"a", b"1"), (T, b"b", b"1")), batch((T, b"a", b"2")))
    compact(log)
    header = headers(log)[0]
    assert header.is_log_append_time
    assert header.max_timestamp == NOW
    assert {record.timestamp for record in records_of(log)} == {NOW}


def test_tombstones_stay_for_a_while() -> None:
    log = new_log(CONFIG)
    rolled(log, batch((T, b"a", b"1")), batch((T, b"a", None), (T + 3, b"b", b"1")))
    assert compact(log) == 1
    assert contents(log) == [(1, b"a", None), (2, b"b", b"1")]
    assert headers(log)[0].delete_horizon_ms == NOW + 1_000
    # A round needs something dirty; the horizon is not put off by it.
    rolled(log, batch((T, b"c", b"1")))
    assert compact(log, NOW + 999) == 0
    assert headers(log)[0].delete_horizon_ms == NOW + 1_000
    rolled(log, batch((T, b"d", b"1")))
    assert compact(log, NOW + 1_000) == 1
    assert contents(log)[0] == (2, b"b", b"1")
    assert records_of(log)[0].timestamp == T + 3


def test_the_end_of_a_round_stays_as_an_offset() -> None:
    log = new_log(replace(CONFIG, delete_retention_ms=0))
    rolled(log, batch((T, b"a", None)))
    assert compact(log) == 0
    rolled(log, batch((T, b"b", None)))
    assert compact(log) == 1
    rolled(log, batch((T, b"b", b"1"), (T, b"c", None)))
    compact(log)
    append(log, batch((T, b"c", b"1")))
    log.roll(NOW)
    compact(log)
    assert contents(log) == [(2, b"b", b"1"), (4, b"c", b"1")]
    last = headers(log)[-1]
    assert last.next_offset == 5


def test_the_last_batch_of_a_producer_stays_as_a_header() -> None:
    log = new_log(CONFIG)
    rolled(
        log,
        batch((T, b"a", b"1"), producer=(5, 0, 0)),
        batch((T, b"a", b"2"), producer=(5, 0, 1)),
        batch((T, b"a", b"3")),
    )
    assert compact(log) == 2
    assert [(h.base_offset, h.record_count, h.producer_id) for h in headers(log)] == [
        (1, 0, 5),
        (2, 1, -1),
    ]
    follower = new_log(CONFIG)
    follower.append_as_follower(read_all(log, 0).buffers, now_ms=NOW)
    duplicate = append(follower, batch((T, b"a", b"2"), producer=(5, 0, 1)))
    assert duplicate.duplicate
    assert duplicate.first_offset == 1


def test_a_bare_header_goes_with_its_producer() -> None:
    log = new_log(replace(CONFIG, producer_id_expiration_ms=1))
    rolled(log, batch((T, b"a", b"1"), producer=(5, 0, 0)), batch((T, b"a", b"2")))
    compact(log)
    assert len(headers(log)) == 2
    log.expire_producers(NOW)
    rolled(log, batch((T, b"b", b"2")))
    compact(log)
    assert [header.base_offset for header in headers(log)] == [1, 2]


def test_markers_stay() -> None:
    log = new_log(CONFIG)
    append(log, batch((T, b"a", b"1"), producer=(5, 0, 0), transactional=True))
    marker = build_batch(
        [Record(0, T, b"\0\0\0\1", b"\0\0\0\0\0\0")],
        control=True,
        transactional=True,
        producer_id=5,
        producer_epoch=0,
    )
    log.append_as_leader(marker, leader_epoch=0, now_ms=NOW, origin=AppendOrigin.COORDINATOR)
    log.roll(NOW)
    rolled(log, batch((T, b"a", b"2")))
    assert compact(log) == 1
    assert [header.is_control for header in headers(log)] == [False, True, False]


def test_markers_are_no_table() -> None:
    log = new_log(CONFIG)
    for producer in (5, 6):
        marker = build_batch(
            [Record(0, T, b"\0\0\0\1", b"\0\0\0\0\0\0")], control=True, producer_id=producer
        )
        log.append_as_leader(marker, leader_epoch=0, now_ms=NOW, origin=AppendOrigin.COORDINATOR)
        log.roll(NOW)
    # A client's key may look like a marker's.
    rolled(log, batch((T, b"\0\0\0\1", b"x")), batch((T, b"y", b"y")))
    assert compact(log) == 0
    assert len(records_of(log)) == 4
    rolled(log, batch((T, b"\0\0\0\1", b"z")))
    assert compact(log) == 1
    assert [header.is_control for header in headers(log)] == [True, True, False, False]


def test_a_marker_replaces_no_record_of_the_same_key() -> None:
    log = new_log(CONFIG)
    rolled(log, batch((T, b"\0\0\0\1", b"x")))
    marker = build_batch([Record(0, T, b"\0\0\0\1", b"\0\0\0\0\0\0")], control=True)
    log.append_as_leader(marker, leader_epoch=0, now_ms=NOW, origin=AppendOrigin.COORDINATOR)
    log.roll(NOW)
    assert compact(log) == 0


def test_an_open_transaction_bounds_the_round() -> None:
    log = new_log(CONFIG)
    rolled(log, batch((T, b"a", b"1")), batch((T, b"a", b"2")))
    rolled(log, batch((T, b"a", b"3"), producer=(5, 0, 0), transactional=True))
    rolled(log, batch((T, b"a", b"4")))
    assert compact(log) == 1
    assert contents(log)[0] == (1, b"a", b"2")


def test_keyless_records_from_before_go() -> None:
    log = new_log()
    rolled(log, batch((T, None, b"1"), (T, b"a", b"1")), batch((T, b"b", b"1")))
    log.config = CONFIG
    assert compact(log) == 1
    assert contents(log) == [(1, b"a", b"1"), (2, b"b", b"1")]


def test_the_last_batch_of_a_round_stays_as_a_header() -> None:
    log = new_log()
    rolled(log, batch((T, b"a", b"1")), batch((T, None, b"1"), (T + 7, None, b"2")))
    log.config = CONFIG
    assert compact(log) == 2
    last = headers(log)[-1]
    assert (last.base_offset, last.last_offset, last.record_count) == (1, 2, 0)
    assert last.max_timestamp == T + 7
    assert read_all(log, 1).first_offset == 1


def test_an_emptied_segment_is_as_old_as_it_was() -> None:
    log = new_log(replace(CONFIG, segment_bytes=len(batch((T, b"a", b"1")))))
    for n in range(2):
        rolled(log, batch((T, b"a", b"1")), now_ms=NOW + 100 * (n + 1))
    assert compact(log, NOW + 500) == 1
    first = log.segments()[0]
    assert (first.records, first.created_ms, first.last_modified_ms) == (0, NOW, NOW + 100)


@pytest.mark.parametrize("high_watermark", [0, 1, 2, 3])
def test_nothing_at_or_above_the_high_watermark(high_watermark: int) -> None:
    log = new_log(CONFIG)
    rolled(log, *(batch((T, b"a", b"%d" % n)) for n in range(3)))
    assert log.compact(NOW, high_watermark) == max(0, high_watermark - 1)


def test_the_dirty_part_must_be_large_enough() -> None:
    log = new_log(replace(CONFIG, min_cleanable_dirty_ratio=0.5))
    rolled(log, batch((T, b"a", b"1")), batch((T, b"b", b"1")))
    assert compact(log) == 0
    rolled(log, batch((T, b"a", b"2")))
    assert compact(log) == 0, "one dirty batch of three is less than half"
    rolled(log, batch((T, b"b", b"2" * 70)))
    assert compact(log) == 2


def test_a_second_round_finds_nothing_dirty() -> None:
    log = new_log(CONFIG)
    rolled(log, batch((T, b"a", b"1")), batch((T, b"a", b"2")))
    assert compact(log) == 1
    before = log.segments()
    assert compact(log) == 0
    assert log.segments() == before


def test_min_compaction_lag_ms() -> None:
    log = new_log(replace(CONFIG, min_compaction_lag_ms=1_000))
    rolled(log, batch((T, b"a", b"1")), batch((T + 500, b"a", b"2")), batch((T, b"a", b"3")))
    assert compact(log, T + 1_000) == 0
    assert compact(log, T + 1_500) == 2


def test_max_compaction_lag_ms_overrides_the_ratio_and_rolls() -> None:
    config = replace(CONFIG, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1_000)
    log = new_log(config)
    append(log, batch((T, b"a", b"1")))
    append(log, batch((T + 1_001, b"a", b"2")))
    assert len(log.segments()) == 2
    log.roll(NOW)
    assert compact(log, T + 1_000) == 0
    assert compact(log, T + 1_001) == 1


def test_segments_are_merged_up_to_segment_bytes() -> None:
    size = len(batch((T, b"0", b"1")))
    log = new_log(replace(CONFIG, segment_bytes=2 * size))
    rolled(log, *(batch((T + n, b"%d" % n, b"1")) for n in range(5)))
    before = log.segments()
    compact(log, NOW + 5)
    after = log.segments()
    assert [(view.base_offset, view.records) for view in after] == [(0, 2), (2, 2), (4, 1), (5, 0)]
    assert after[0].last_modified_ms == before[1].last_modified_ms
    assert after[1].max_timestamp == T + 3
    assert sum(view.size_bytes for view in after) == log.size_bytes == 5 * size


def test_only_compacted_topics_are_compacted() -> None:
    log = new_log(LogConfig(min_cleanable_dirty_ratio=0.0))
    rolled(log, batch((T, b"a", b"1")), batch((T, b"a", b"2")))
    assert compact(log) == 0


def test_compact_and_delete() -> None:
    both = replace(CONFIG, cleanup_policy=frozenset({"compact", "delete"}), retention_ms=1_000)
    log = new_log(both)
    rolled(log, batch((T, b"a", b"1")), batch((T, b"a", b"2")), batch((T + 10_000, b"b", b"1")))
    assert compact(log) == 1
    assert log.delete_expired(T + 5_000, 3) == 0, "merged with the youngest they stay"
    assert log.delete_expired(T + 11_001, 3) == 1
    assert log.log_start_offset == 3


def test_a_compacted_log_can_be_truncated_and_appended_to() -> None:
    log = new_log(CONFIG)
    rolled(log, *(batch((T, b"a", b"%d" % n)) for n in range(4)))
    compact(log)
    assert log.truncate_to(2)
    assert log.log_end_offset == 2
    assert append(log, batch((T, b"z", b"9"))).first_offset == 2
    assert contents(log) == [(2, b"z", b"9")]


def test_what_follows_a_truncation_is_dirty() -> None:
    log = new_log(CONFIG)
    rolled(log, *(batch((T, b"%d" % n, b"1" * 2_000)) for n in range(4)))
    log.config = replace(CONFIG, segment_bytes=3_000)
    compact(log)
    log.truncate_to(2)
    rolled(log, batch((T, b"0", b"2")), batch((T, b"1", b"2")))
    assert compact(log) == 2


rounds = st.lists(
    st.lists(
        st.tuples(st.sampled_from([b"a", b"b", b"c", b"d"]), st.none() | st.binary(max_size=3)),
        min_size=1,
        max_size=5,
    ),
    min_size=1,
    max_size=12,
)


@given(rounds=rounds, clean_at=st.sets(st.integers(0, 11)), segment_bytes=st.integers(300, 900))
def test_reading_everything_gives_the_same_table(
    rounds: list[list[tuple[bytes, bytes | None]]], clean_at: set[int], segment_bytes: int
) -> None:
    """A table built from the log is the same, however often it was cleaned."""
    log = new_log(replace(CONFIG, segment_bytes=segment_bytes, delete_retention_ms=3))
    table: dict[bytes, bytes] = {}
    for number, rows in enumerate(rounds):
        rolled(log, batch(*((T, key, value) for key, value in rows)))
        for key, value in rows:
            if value is None:
                table.pop(key, None)
            else:
                table[key] = value
        if number in clean_at:
            before = records_of(log)
            compact(log, NOW + number)
            after = records_of(log)
            assert set(after) <= set(before)
            assert after == sorted(after, key=lambda record: record.offset)
    read: dict[bytes, bytes] = {}
    for record in records_of(log):
        assert record.key is not None
        if record.value is None:
            read.pop(record.key, None)
        else:
            read[record.key] = record.value
    assert read == table
    assert log.log_end_offset == sum(map(len, rounds))
