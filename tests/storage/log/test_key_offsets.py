"""The last offset of each key, as the log tells it when it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import pytest
from msgspec.structs import replace

from fencepost.protocol.byte_utils import Buffer, crc32c
from fencepost.protocol.compression import Codec
from fencepost.protocol.records import BatchHeader, Record, build_batch
from fencepost.storage.log.append_result import AppendOrigin, AppendRejected
from fencepost.storage.log.config import ExpectedOffsetsScope, LogConfig
from fencepost.storage.log.interface import Log
from fencepost.storage.log.key_offsets import LatestKeyOffsets
from tests.harness.logs import NOW, T, append, new_log, segmented
from tests.harness.records import batch

CONFIG = LogConfig(
    check_expected_offsets=True,
    check_expected_offsets_scope=ExpectedOffsetsScope.KEY,
    cleanup_policy=frozenset({"compact", "delete"}),
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=1_000,
    retention_ms=-1,
)
Batches: TypeAlias = Iterator[tuple[Buffer, BatchHeader]]


def known(log: Log) -> dict[bytes, int]:
    return dict(segmented(log).key_offsets().offsets)


def keyed(*keys: bytes | None, codec: Codec = Codec.NONE, value: bytes | None = b"v") -> bytearray:
    return batch(*((T, key, value) for key in keys), codec=codec)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The base offsets of the batches that are read for their keys."""
    bases: list[int] = []
    whole = LatestKeyOffsets.catch_up

    def noted(batches: Batches) -> Batches:
        for buffer, header in batches:
            bases.append(header.base_offset)
            yield buffer, header

    def catch_up(self: LatestKeyOffsets, batches: Batches, until: int) -> None:
        whole(self, noted(batches), until)

    monkeypatch.setattr(LatestKeyOffsets, "catch_up", catch_up)
    return bases


def test_an_empty_log_has_none() -> None:
    log = new_log(CONFIG, start_offset=7)
    keys = segmented(log).key_offsets()
    assert (len(keys), keys.until, keys.last_offset(b"a")) == (0, 7, None)


def test_the_last_one_counts() -> None:
    log = new_log(CONFIG)
    append(log, keyed(b"a", b"b", b"a"))
    append(log, keyed(b"c", b"b", codec=Codec.LZ4))
    assert known(log) == {b"a": 2, b"c": 3, b"b": 4}
    assert segmented(log).key_offsets().last_offset(b"b") == 4
    assert segmented(log).key_offsets().last_offset(b"") is None


def test_a_tombstone_counts_and_so_does_an_empty_key() -> None:
    log = new_log(CONFIG)
    append(log, keyed(b"", b"a"))
    append(log, keyed(b"a", value=None))
    assert known(log) == {b"": 0, b"a": 2}


def test_what_has_no_key_does_not_count() -> None:
    log = new_log(replace(CONFIG, cleanup_policy=frozenset({"delete"})))
    append(log, keyed(None, b"a", None))
    append(log, batch((T, b"t", b"v"), producer=(1, 0, 0), transactional=True))
    marker = [Record(0, T, b"\0\0\0\1", b"\0\0\0\0\0\0")]
    log.append_as_leader(
        build_batch(marker, control=True, transactional=True, producer_id=1, producer_epoch=0),
        leader_epoch=0,
        now_ms=NOW,
        origin=AppendOrigin.COORDINATOR,
    )
    assert known(log) == {b"a": 1, b"t": 3}
    assert segmented(log).key_offsets().until == log.log_end_offset == 5


def test_records_that_do_not_parse_have_no_keys() -> None:
    log = new_log(CONFIG)
    append(log, keyed(b"a"))
    good = build_batch([Record(1, T, b"b", b"v"), Record(2, T, b"c", b"v")], base_offset=1)
    append_as_is(log, broken(good))
    append(log, keyed(b"d"))
    assert known(log) == {b"a": 0, b"d": 3}


def broken(data: bytearray) -> bytearray:
    """The same with a CRC that is right over a last record that goes beyond the end."""
    data[-1] = 0x7F
    data[17:21] = crc32c(memoryview(data)[21:]).to_bytes(4, "big")
    return data


def add_appended(log: Log, offsets: dict[bytes, int], *, first: int) -> None:
    """Hand over the keys of an append, as `append_staged` does."""
    segmented(log)._state.keys.add_appended(offsets, first, log.log_end_offset)


def append_as_is(log: Log, data: bytearray) -> None:
    log.append_as_follower([data], now_ms=NOW)


def test_a_follower_knows_them_too_over_gaps_and_segments() -> None:
    log = new_log(replace(CONFIG, segment_bytes=200))
    for base in (0, 4, 9, 30):
        rows = [Record(base, T, b"%d" % base, b"v"), Record(base + 2, T, b"all", b"v")]
        append_as_is(log, build_batch(rows, base_offset=base, leader_epoch=3))
    assert len(log.segments()) > 1
    assert known(log) == {b"0": 0, b"4": 4, b"9": 9, b"30": 30, b"all": 32}


def test_only_what_is_new_is_read(read: list[int]) -> None:
    log = new_log(CONFIG)
    append(log, keyed(b"a", b"b"))
    append(log, keyed(b"a"))
    assert not read
    known(log)
    log.roll(NOW)
    append(log, keyed(b"c"))
    append(log, keyed(b"a"))
    assert known(log) == {b"b": 1, b"c": 3, b"a": 4}
    known(log)
    assert read == [0, 2, 3, 4]


def test_what_was_checked_is_not_read_again(read: list[int]) -> None:
    log = new_log(CONFIG)
    append(log, keyed(b"a"))
    known(log)
    append(log, keyed(b"b", b"a", b"c", b"b"))
    add_appended(log, {b"b": 4, b"a": 2, b"c": 3}, first=1)
    assert list(segmented(log).key_offsets().offsets.items()) == [(b"a", 2), (b"c", 3), (b"b", 4)]
    assert read == [0]


def test_nothing_is_learnt_over_a_gap_or_without_keys(read: list[int]) -> None:
    log = new_log(CONFIG)
    append(log, keyed(b"a"))
    add_appended(log, {b"a": 0}, first=0)  # it knows nothing, and does not begin to
    assert segmented(log)._state.keys.loaded is None
    known(log)
    append(log, keyed(b"b"))
    append(log, keyed(b"c"))
    add_appended(log, {b"c": 2}, first=2)
    assert known(log) == {b"a": 0, b"b": 1, b"c": 2}
    append(log, keyed(b"d"))
    add_appended(log, {}, first=3)
    assert known(log) == {b"a": 0, b"b": 1, b"c": 2, b"d": 3}


# -- what goes ------------------------------------------------------------------------------------


def test_keys_before_the_log_start_go() -> None:
    log = new_log(CONFIG)
    append(log, keyed(b"a", b"b", b"a", b"c"))
    append(log, keyed(b"b"))
    known(log)
    log.advance_log_start(3)  # within a batch
    assert known(log) == {b"c": 3, b"b": 4}
    log.advance_log_start(5)
    assert known(log) == {}


def test_keys_before_the_log_start_are_never_known() -> None:
    log = new_log(CONFIG)
    append(log, keyed(b"a", b"b", b"a", b"c"))
    log.advance_log_start(2)
    assert known(log) == {b"a": 2, b"c": 3}


def test_the_log_start_passes_what_is_known() -> None:
    log = new_log(CONFIG)
    append(log, keyed(b"a"))
    known(log)
    append(log, keyed(b"b", b"c", b"b"))
    log.advance_log_start(3)
    assert known(log) == {b"b": 3}


def test_retention_takes_keys_as_well() -> None:
    log = new_log(replace(CONFIG, retention_ms=100))
    append(log, keyed(b"a", b"b"))
    log.roll(NOW)
    append(log, batch((NOW, b"a", b"v")))
    known(log)
    assert log.delete_expired(NOW + 10, 3) == 1
    assert len(segmented(log).key_offsets()) == 1
    assert known(log) == {b"a": 2}


@pytest.mark.parametrize("asked", [True, False])
def test_truncating_brings_back_what_was_before(asked: bool) -> None:
    log = new_log(CONFIG)
    append(log, keyed(b"a", b"b"))
    append(log, keyed(b"a"))
    append(log, keyed(b"b", b"c"))
    if asked:
        known(log)
    log.truncate_to(2)
    assert known(log) == {b"a": 0, b"b": 1}
    append(log, keyed(b"b"), epoch=1)
    assert known(log) == {b"a": 0, b"b": 2}


def test_truncating_behind_what_is_known_leaves_it(read: list[int]) -> None:
    log = new_log(CONFIG)
    append(log, keyed(b"a"))
    known(log)
    append(log, keyed(b"a"))
    append(log, keyed(b"b"))
    log.truncate_to(1)
    append(log, keyed(b"c"), epoch=1)
    assert known(log) == {b"a": 0, b"c": 1}
    assert read == [0, 1]


def test_a_batch_goes_whole() -> None:
    log = new_log(CONFIG)
    append(log, keyed(b"a"))
    append(log, keyed(b"b", b"c", b"d"))
    known(log)
    log.truncate_to(3)
    assert (log.log_end_offset, known(log)) == (3, {b"a": 0})
    append(log, keyed(b"e"), epoch=1)
    assert known(log) == {b"a": 0, b"e": 3}


@pytest.mark.parametrize("offset", [0, 2, 9])
def test_starting_over_forgets_all(offset: int) -> None:
    log = new_log(CONFIG)
    append(log, keyed(b"a", b"b"))
    known(log)
    log.truncate_fully_and_start_at(offset, now_ms=NOW)
    assert known(log) == {}
    append(log, keyed(b"c"), epoch=1)
    assert known(log) == {b"c": offset}


def compact(log: Log, now_ms: int) -> int:
    return log.compact(now_ms, log.log_end_offset)


def test_compaction_takes_no_key_that_has_a_value(read: list[int]) -> None:
    log = new_log(CONFIG)
    for key in (b"a", b"b", b"a", b"c", b"b"):
        append(log, keyed(key))
        log.roll(NOW)
    before = known(log)
    assert compact(log, NOW) == 2
    assert known(log) == before == {b"a": 2, b"c": 3, b"b": 4}
    assert len(read) == 5


def test_a_tombstone_takes_its_key_when_it_goes(read: list[int]) -> None:
    log = new_log(CONFIG)
    for key, value in ((b"a", b"v"), (b"b", None), (b"a", None), (b"c", None)):
        append(log, keyed(key, value=value))
        log.roll(NOW)
    append(log, keyed(b"b"))
    all_of_them = known(log)
    compact(log, NOW)
    assert known(log) == all_of_them == {b"a": 2, b"c": 3, b"b": 4}
    log.roll(NOW)
    compact(log, NOW + 2_000)
    assert known(log) == {b"b": 4}
    assert len(read) == 5


def test_a_tombstone_that_a_record_follows_takes_nothing() -> None:
    log = new_log(CONFIG)
    for key, value in ((b"a", None), (b"b", b"v")):
        append(log, keyed(key, value=value))
        log.roll(NOW)
    compact(log, NOW)
    append(log, keyed(b"c"))
    log.roll(NOW)
    append(log, keyed(b"a"))  # behind what is cleaned
    assert known(log) == {b"b": 1, b"c": 2, b"a": 3}
    assert compact(log, NOW + 2_000) == 1
    assert known(log) == {b"b": 1, b"c": 2, b"a": 3}


# -- when it is there -----------------------------------------------------------------------------


def test_it_goes_when_it_is_not_needed_any_more() -> None:
    log = new_log(CONFIG)
    append(log, keyed(b"a"))
    known(log)
    log.config = replace(CONFIG, check_expected_offsets=False)
    log.delete_expired(NOW, 0)
    assert segmented(log)._state.keys.loaded is None
    log.config = CONFIG
    assert known(log) == {b"a": 0}
    log.config = replace(CONFIG, check_expected_offsets_scope=ExpectedOffsetsScope.PARTITION)
    log.roll(NOW)
    assert segmented(log)._state.keys.loaded is None


def test_it_stays_as_long_as_it_is_needed(read: list[int]) -> None:
    log = new_log(CONFIG)
    append(log, keyed(b"a"))
    known(log)
    log.delete_expired(NOW, 0)
    log.roll(NOW)
    known(log)
    assert read == [0]


def test_it_has_no_more_entries_than_there_are_keys() -> None:
    log = new_log(replace(CONFIG, segment_bytes=2_000))
    for number in range(300):
        append(log, keyed(b"%d" % (number % 7), b"%d" % number))
        log.advance_log_start(max(log.log_end_offset - 20, 0))
        assert len(segmented(log).key_offsets()) <= 20


# -- who asks -------------------------------------------------------------------------------------


def stage(log: Log, data: bytearray) -> list[str]:
    """Append what states what it expects; what does not match, where something does not."""
    staged = log.stage(now_ms=NOW).add(data, allow_zstd=True)
    if isinstance(staged, AppendRejected):
        return [text for _, text in staged.record_errors]
    log.append_staged(staged, leader_epoch=0, now_ms=NOW)
    return []


def expecting(*rows: tuple[int, bytes]) -> bytearray:
    """A batch for each record, which expects to come behind the last one of its key."""
    batches = (build_batch([Record(at, T, key, b"v")], base_offset=at) for at, key in rows)
    return bytearray().join(batches)


def test_a_check_reads_nothing_twice(read: list[int]) -> None:
    log = new_log(CONFIG)
    append(log, keyed(b"a", b"b"))
    assert stage(log, expecting((0, b"a"))) == [
        "Expected offset 0, last offset of the key 0, upcoming offset 2"
    ]
    assert not stage(log, expecting((1, b"a"), (2, b"b"), (0, b"c"), (3, b"a")))
    assert not stage(log, expecting((6, b"a"), (5, b"c")))
    assert known(log) == {b"b": 3, b"a": 6, b"c": 7}
    assert read == [0]


def test_a_check_goes_by_what_is_left_of_the_log() -> None:
    log = new_log(CONFIG)
    assert not stage(log, expecting((0, b"a"), (1, b"a"), (0, b"b"), (3, b"a")))
    assert stage(log, expecting((2, b"a")))
    log.truncate_to(2)
    assert not stage(log, expecting((2, b"a"), (0, b"b")))
    assert stage(log, expecting((2, b"a")))
    log.advance_log_start(4)
    assert not stage(log, expecting((0, b"a"), (0, b"b")))
    assert known(log) == {b"a": 4, b"b": 5}
