"""Rolling, retention and DeleteRecords."""

import tracemalloc

import pytest
from msgspec.structs import replace

from fencepost.storage.log.config import LogConfig
from fencepost.storage.log.interface import Log, OffsetOutOfRange
from fencepost.storage.memory import memory_log
from tests.harness.logs import NOW, T, append, new_log, records_of
from tests.harness.records import batch

SIZE = len(batch())
KEEP = LogConfig(retention_ms=-1)


def bases(log: Log) -> list[int]:
    return [view.base_offset for view in log.segments()]


def segmented(config: LogConfig = KEEP, *, count: int = 4) -> Log:
    """`count` segments of one record each, T, T+10, ...; the last is the active one."""
    log = new_log(config)
    for n in range(count):
        if n:
            log.roll(NOW + n)
        append(log, batch((T + 10 * n, b"k", b"v")), now_ms=NOW + n)
    return log


# Rolling.


def test_segment_bytes() -> None:
    log = new_log(LogConfig(segment_bytes=2 * SIZE))
    for _ in range(5):
        append(log)
    assert [
        (view.base_offset, view.next_offset, view.size_bytes, view.records)
        for view in log.segments()
    ] == [
        (0, 2, 2 * SIZE, 2),
        (2, 4, 2 * SIZE, 2),
        (4, 5, SIZE, 1),
    ]


def test_segment_ms_counts_in_the_records_time() -> None:
    log = new_log(LogConfig(segment_ms=1_000))
    append(log, batch((T, None, b"v"), (T - 9, None, b"v")))
    append(log, batch((T + 1_000, None, b"v")), now_ms=NOW + 10**9)
    assert len(log.segments()) == 1
    append(log, batch((T + 1_001, None, b"v")), now_ms=NOW)
    assert bases(log) == [0, 3]


def test_with_jitter_segments_are_closed_earlier_each_at_its_own_age() -> None:
    config = LogConfig(segment_ms=1_000, segment_jitter_ms=500)
    ages = [1_000 - config.jitter_ms("t-0", base) for base in range(50)]
    assert len(set(ages)) > 40
    assert min(ages) > 500
    assert max(ages) <= 1_000
    for age, closed in ((ages[0], 0), (ages[0] + 1, 1)):
        log = new_log(config)
        append(log, batch((T, None, b"v")))
        append(log, batch((T + age, None, b"v")))
        assert len(log.segments()) == 1 + closed


def test_segment_ms_counts_from_creation_where_the_first_batch_has_no_timestamp() -> None:
    log = new_log(LogConfig(segment_ms=1_000))
    append(log, batch((-1, None, b"v")))
    append(log, batch((T, None, b"v")), now_ms=NOW + 1_000)
    assert len(log.segments()) == 1
    append(log, batch((-1, None, b"v")), now_ms=NOW + 1_001)
    assert bases(log) == [0, 2]
    assert log.segments()[1].created_ms == NOW + 1_001


def test_an_empty_segment_does_not_roll() -> None:
    log = new_log(LogConfig(segment_ms=1_000))
    append(log, batch((-1, None, b"v")), now_ms=NOW + 5_000)
    log.roll(NOW)
    log.roll(NOW)
    assert bases(log) == [0, 1]


def test_configs_take_effect_at_once() -> None:
    log = new_log()
    append(log)
    log.config = replace(log.config, segment_bytes=SIZE)
    append(log)
    assert bases(log) == [0, 1]


# DeleteRecords.


def test_advancing_the_log_start_drops_whole_segments() -> None:
    log = segmented()
    assert log.advance_log_start(1)
    assert bases(log) == [1, 2, 3]
    assert not log.advance_log_start(1)
    assert not log.advance_log_start(0)
    assert log.log_start_offset == 1
    assert log.advance_log_start(4)
    assert bases(log) == [3], "the active one stays"
    assert log.size_bytes == SIZE
    assert records_of(log) == []
    assert append(log).log_start_offset == 4


def test_the_log_start_does_not_pass_the_log_end() -> None:
    with pytest.raises(OffsetOutOfRange):
        segmented().advance_log_start(5)


def test_within_a_segment_only_the_log_start_moves() -> None:
    log = new_log()
    append(log, batch((T, b"a", b""), (T, b"b", b""), (T, b"c", b"")))
    log.advance_log_start(2)
    assert [record.key for record in records_of(log)] == [b"c"]
    assert log.segments()[0].records == 3


# Retention.


@pytest.mark.parametrize(
    ("now", "deleted"), [(T + 100, 0), (T + 101, 1), (T + 110, 1), (T + 121, 3), (T + 131, 4)]
)
def test_retention_ms(now: int, deleted: int) -> None:
    log = segmented(LogConfig(retention_ms=100))
    assert log.delete_expired(now, 4) == deleted
    assert log.log_start_offset == deleted
    assert bases(log) == list(range(deleted, 5))[: max(4 - deleted, 1)]
    assert log.delete_expired(now, 4) == 0
    assert append(log).first_offset == 4


def test_an_old_segment_behind_a_young_one_stays() -> None:
    log = new_log(LogConfig(retention_ms=100))
    append(log, batch((T + 900, None, b"v")))
    log.roll(NOW)
    append(log, batch((T, None, b"v")))
    assert log.delete_expired(T + 500, 2) == 0


def test_without_timestamps_the_last_append_counts() -> None:
    log = new_log(LogConfig(retention_ms=100))
    append(log, batch((-1, None, b"v")), now_ms=NOW)
    assert log.delete_expired(NOW + 100, 1) == 0
    assert log.delete_expired(NOW + 101, 1) == 1


@pytest.mark.parametrize(
    ("keep", "deleted"),
    [(-1, 0), (5 * SIZE, 0), (4 * SIZE, 0), (3 * SIZE + 1, 0), (3 * SIZE, 1), (SIZE, 3), (0, 4)],
)
def test_retention_bytes(keep: int, deleted: int) -> None:
    log = segmented(replace(KEEP, retention_bytes=keep))
    assert log.delete_expired(NOW, 4) == deleted
    assert log.log_start_offset == deleted
    assert log.log_end_offset == 4


def test_time_judges_what_size_left() -> None:
    log = segmented(LogConfig(retention_ms=100, retention_bytes=3 * SIZE))
    assert log.delete_expired(T + 111, 4) == 2


@pytest.mark.parametrize(("high_watermark", "deleted"), [(0, 0), (1, 1), (3, 3), (4, 4)])
def test_nothing_goes_at_or_above_the_high_watermark(high_watermark: int, deleted: int) -> None:
    log = segmented(LogConfig(retention_ms=100, retention_bytes=0))
    assert log.delete_expired(T + 10_000, high_watermark) == deleted


def test_an_empty_log_has_nothing_to_delete() -> None:
    log = new_log(LogConfig(retention_ms=0, retention_bytes=0))
    assert log.delete_expired(NOW + 10**9, 0) == 0


def test_a_compacted_log_is_kept() -> None:
    log = segmented(LogConfig(retention_ms=100, cleanup_policy=frozenset({"compact"})))
    assert log.delete_expired(T + 10_000, 4) == 0


def test_retention_beyond_an_advanced_log_start() -> None:
    log = segmented(LogConfig(retention_ms=100))
    log.advance_log_start(4)
    assert log.delete_expired(T + 10_000, 4) == 1
    assert (log.log_start_offset, bases(log), log.size_bytes) == (4, [4], 0)


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_what_lies_before_the_log_start_goes_with_any_policy(policy: str) -> None:
    log = segmented(replace(KEEP, cleanup_policy=frozenset({policy})), count=1)
    log.advance_log_start(1)
    log.roll(NOW)
    assert bases(log) == [0, 1]
    assert log.delete_expired(NOW, 1) == 1
    assert bases(log) == [1]
    assert log.delete_expired(NOW, 1) == 0


def test_dismantling_frees_little_by_little() -> None:
    log = new_log()
    for _ in range(6):
        append(log, batch((T, None, b"v" * 100_000)))
    assert sum(1 for _ in log.dismantle()) == 2


def test_epochs_go_with_their_records() -> None:
    log = new_log(LogConfig(retention_ms=100))
    for epoch in range(3):
        append(log, batch((T + 10 * epoch, None, b"v")), epoch=epoch)
        log.roll(NOW)
    log.delete_expired(T + 111, 3)
    assert log.epoch_entries() == ((2, 2),)


# Thousands of partitions.


def test_an_empty_log_is_small() -> None:
    config = LogConfig()
    memory_log("warm-0", config)
    tracemalloc.start()
    logs = [memory_log("t-0", config) for _ in range(100)]
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size / len(logs) < 2_048
