"""Deletion from the tier: by retention, of unreferenced segments, and of remains."""

from __future__ import annotations

from typing import Final

import pytest
from msgspec.structs import replace

from fencepost.broker.core.async_tasks import AsyncTask
from fencepost.broker.core.events import Kind
from fencepost.broker.core.scheduler import ManualClock, Scheduler
from fencepost.broker.tiering.remote_retention import (
    ABANDONED_AFTER_MS,
    delete_segment,
    expired_segments,
    unfinished_segments,
    unreferenced_segments,
)
from fencepost.storage.log.config import LogConfig
from fencepost.storage.tier.lineage import RemoteSegments, TieredRange
from fencepost.storage.tier.object_store import MemoryObjectStore, ObjectKind, TierError, object_key
from fencepost.storage.tier.segment_metadata import RemoteLogSegmentState, RemoteSegment
from tests.harness.remote_tier import INTERVAL, Tier, every, short
from tests.storage.tier.segments import lineage, segment

NOW = 10_000


def a_range(tiered: RemoteSegment, end: int | None = None) -> TieredRange:
    return TieredRange(tiered.start_offset, tiered.end_offset if end is None else end, tiered)


RANGES = [
    a_range(segment(start, start + 9, (0, start), size=100, max_timestamp=1000 * (start // 10)))
    for start in range(0, 50, 10)
]
"""Five segments of ten records, 100 bytes each; their times are 0 to 4000."""
SETTLED: Final = {"high_watermark": 50, "now_ms": NOW}
"""A leader whose followers have all that is tiered."""


@pytest.mark.parametrize(
    ("retention_ms", "count"),
    [(-1, 0), (NOW, 1), (NOW + 1, 0), (NOW - 999, 1), (NOW - 1000, 2), (0, 5)],
)
def test_by_time_goes_what_is_as_old_as_retention_says(retention_ms: int, count: int) -> None:
    config = LogConfig(retention_ms=retention_ms)
    found = expired_segments(RANGES, config, only_local_bytes=0, **SETTLED)
    assert [each.start_offset for each in found.segments] == list(range(0, 10 * count, 10))
    assert found.log_start_offset == (10 * count if count else None)


@pytest.mark.parametrize(
    ("retention_bytes", "only_local", "count"),
    [
        (-1, 10**6, 0),
        (500, 0, 0),
        (401, 0, 0),
        (400, 0, 1),
        (399, 0, 1),
        (500, 99, 0),
        (500, 100, 1),
        (0, 0, 5),
        (0, 10**6, 5),
    ],
)
def test_by_size_goes_what_leaves_as_much_as_retention_says(
    retention_bytes: int, only_local: int, count: int
) -> None:
    config = LogConfig(retention_ms=-1, retention_bytes=retention_bytes)
    found = expired_segments(RANGES, config, only_local_bytes=only_local, **SETTLED)
    assert len(found.segments) == count


@pytest.mark.parametrize(
    ("retention_bytes", "count", "log_start"),
    [(400, 0, None), (201, 0, None), (200, 3, 20), (101, 3, 20), (100, 4, 30)],
)
def test_what_two_segments_have_counts_once(
    retention_bytes: int, count: int, log_start: int | None
) -> None:
    """The tier has the first 20 records twice: as one segment of another leader, and as two."""
    twice = [a_range(segment(0, 19, (0, 0), size=200)), *RANGES[:4]]
    config = LogConfig(retention_ms=-1, retention_bytes=retention_bytes)
    found = expired_segments(twice, config, only_local_bytes=0, **SETTLED)
    assert (len(found.segments), found.log_start_offset) == (count, log_start)


def test_what_was_truncated_away_does_not_count() -> None:
    partly = [RANGES[0], a_range(segment(10, 29, (0, 10), size=200), end=19)]
    config = LogConfig(retention_ms=-1, retention_bytes=200)
    assert not expired_segments(partly, config, only_local_bytes=0, **SETTLED).segments
    assert expired_segments(partly, config, only_local_bytes=200, **SETTLED).segments


def test_what_goes_by_time_counts_for_the_size() -> None:
    config = LogConfig(retention_ms=NOW, retention_bytes=400)
    assert len(expired_segments(RANGES, config, only_local_bytes=0, **SETTLED).segments) == 1
    config = LogConfig(retention_ms=NOW, retention_bytes=300)
    assert len(expired_segments(RANGES, config, only_local_bytes=0, **SETTLED).segments) == 2


@pytest.mark.parametrize(("high_watermark", "count"), [(0, 0), (9, 0), (10, 1), (19, 1), (49, 4)])
def test_nothing_goes_that_a_new_leader_does_not_know_to_be_committed(
    high_watermark: int, count: int
) -> None:
    """Its log start could not follow, and the records would be nowhere."""
    found = expired_segments(
        RANGES,
        LogConfig(retention_ms=0),
        only_local_bytes=0,
        high_watermark=high_watermark,
        now_ms=NOW,
    )
    assert len(found.segments) == count
    assert found.log_start_offset == (10 * count or None)


def test_nothing_goes_behind_a_segment_that_stays() -> None:
    ranges = [RANGES[1], RANGES[0]]
    config = LogConfig(retention_ms=NOW)
    assert expired_segments(ranges, config, only_local_bytes=0, **SETTLED).segments == ()


def test_the_log_begins_where_the_last_one_ends_that_belongs() -> None:
    overlapping = [a_range(segment(0, 30)), a_range(segment(10, 20, (0, 10)))]
    found = expired_segments(overlapping, LogConfig(retention_ms=0), only_local_bytes=0, **SETTLED)
    assert found.log_start_offset == 31
    partly = [a_range(segment(0, 30), end=12)]
    found = expired_segments(partly, LogConfig(retention_ms=0), only_local_bytes=0, **SETTLED)
    assert found.log_start_offset == 13


def test_nobody_asks_for_what_is_older_than_the_oldest_epoch_or_before_the_start() -> None:
    before, within = segment(0, 9, (2, 0)), segment(10, 25, (2, 10))
    old, newer = segment(0, 40, (0, 0), (1, 30)), segment(0, 15, (2, 0), (3, 10))
    after = segment(30, 39, (9, 30))
    started = replace(before, state=RemoteLogSegmentState.COPY_SEGMENT_STARTED)
    every_one = [before, within, old, newer, after, started]
    assert unreferenced_segments(every_one, lineage((2, 20), (4, 50)), 20) == [before, old]
    assert unreferenced_segments(every_one, lineage((2, 9), (4, 50)), 9) == [old]
    assert unreferenced_segments(every_one, (), 9) == []


def test_what_is_left_over_is_given_time_where_somebody_may_be_at_it() -> None:
    copying = segment(0, 9, event_ms=5, state=RemoteLogSegmentState.COPY_SEGMENT_STARTED)
    deleting = segment(10, 19, event_ms=5, state=RemoteLogSegmentState.DELETE_SEGMENT_STARTED)
    every_one = [copying, deleting, segment(20, 29)]
    assert unfinished_segments(every_one, (), 5 + ABANDONED_AFTER_MS - 1) == [deleting]
    assert unfinished_segments(every_one, (), 5 + ABANDONED_AFTER_MS) == [copying, deleting]
    assert unfinished_segments(every_one, {copying.id}, 5) == [copying, deleting]


def test_from_the_first_moment_of_its_deletion_on_a_segment_is_not_served() -> None:
    scheduler = Scheduler(ManualClock())
    store, segments, told = (
        MemoryObjectStore(scheduler.soon),
        RemoteSegments(),
        list[TierError | None](),
    )
    going, staying = segment(0, 9), segment(10, 19, (0, 10))
    for each in (going, staying):
        segments.put(each)
        store.objects |= {object_key(each, part): each.to_json() for part in ObjectKind}
    steps = delete_segment(store, segments, going, broker_id=3, now_ms=5)
    AsyncTask(steps, told.append).start()
    assert segments.ranges(lineage((0, 0))) == (a_range(staying),)
    assert told == []
    scheduler.run_due()
    assert told == [None]
    assert list(segments) == [staying]
    assert set(store.objects) == {object_key(staying, part) for part in ObjectKind}


# By the task.


def test_retention_of_the_whole_log_is_by_time() -> None:
    tier = Tier(retention_ms="60000")
    tier.append(2, age_ms=50_000)
    tier.append(3)
    tier.run()
    assert tier.tiered() == [(0, 1), (2, 3)]
    tier.advance(INTERVAL)
    assert tier.tiered() == [(2, 3)]
    log = tier.leader("t").log
    assert (log.log_start_offset, log.local_log_start_offset) == (2, 2)
    assert tier.objects.names() == every(2)
    (event,) = tier.told(Kind.SEGMENT_EXPIRED)
    assert (event.details["start_offset"], event.details["end_offset"]) == (0, 1)


def test_retention_of_the_whole_log_is_by_size_in_the_tier_and_here() -> None:
    tier = Tier()
    size = tier_size(tier)
    tier = Tier(retention_bytes=str(4 * size), local_retention_bytes="1")
    tier.append(7)
    tier.run()
    # Three segments in the tier and a record that is only here: seven, and four may stay.
    assert tier.tiered() == [(2, 3), (4, 5)]
    assert tier.leader("t").log.log_start_offset == 2
    assert tier.leader("t").log.local_log_start_offset == 6


def tier_size(tier: Tier) -> int:
    """Bytes of a batch."""
    tier.append(1)
    return tier.leader("t").log.size_bytes


def test_what_is_here_and_in_the_tier_counts_once_also_where_the_leader_knows_nothing() -> None:
    size = tier_size(Tier())
    tier = Tier(retention_bytes=str(7 * size))
    tier.append(7)
    tier.run()
    leader = tier.leader("t")
    tier.manager.forget(leader, lambda _error: None)
    tier.expire()
    assert list(tier.metadata()) == [0, 2, 4]
    assert leader.log.log_start_offset == 0


def test_what_is_only_here_is_not_expired_however_old() -> None:
    tier = Tier(retention_ms="1000")
    tier.objects.fails = lambda op, _: op == "put"
    tier.append(5, age_ms=5000)
    tier.advance(600_000)
    assert tier.leader("t").log.log_start_offset == 0
    assert tier.leader("t").log.local_log_start_offset == 0
    tier.objects.fails = lambda _op, _key: False
    tier.advance(INTERVAL)
    assert tier.leader("t").log.log_start_offset == 4


def test_without_a_policy_nothing_expires_in_the_tier() -> None:
    tier = Tier(cleanup_policy="", retention_ms="1", local_retention_bytes="0")
    tier.append(5, age_ms=5000)
    tier.run()
    assert tier.tiered() == [(0, 1), (2, 3)]
    assert tier.leader("t").log.local_log_start_offset == 4


def test_what_delete_records_passed_goes_from_the_tier_too() -> None:
    tier = Tier(local_retention_bytes="1")
    tier.append(7)
    tier.run()
    leader = tier.leader("t")
    assert leader.log.local_log_start_offset == 6
    leader.delete_records(3)
    tier.run()
    assert tier.tiered() == [(2, 3), (4, 5)]
    assert leader.log.local_log_start_offset == 6
    view = tier.manager.state(leader)
    assert view is not None
    assert (view.start_offset, view.last_tiered_offset, view.pending_upload_offset) == (3, 5, 6)


def test_the_last_tiered_offset_does_not_fall_where_all_is_deleted() -> None:
    tier = Tier()
    tier.append(5)
    tier.run()
    tier.leader("t").delete_records(5)
    tier.run()
    assert tier.objects.names() == []
    view = tier.manager.state(tier.leader("t"))
    assert view is not None
    assert (view.start_offset, view.last_tiered_offset, view.pending_upload_offset) == (-1, 3, 5)


@pytest.mark.parametrize("step", ["0.json", "0.log", "last"])
def test_a_deletion_that_fails_is_not_served_and_done_again(step: str) -> None:
    tier = Tier()
    tier.append(5)
    tier.run()
    tier.leader("t").delete_records(2)
    tier.objects.fails = lambda op, key: (
        (op == "put" and step == "0.json")
        or (op == "delete" and short(key) == step)
        or (op == "delete" and short(key) == "0.json" and step == "last")
    )
    assert tier.run() is not None
    assert tier.tiered() == [(2, 3)]
    told = len(tier.told(Kind.SEGMENT_EXPIRED))
    assert told == 0
    assert tier.run() is not None
    tier.objects.fails = lambda _op, _key: False
    assert tier.run() is None
    assert tier.objects.names() == every(2)


def test_a_new_leader_finishes_a_deletion() -> None:
    tier = Tier(2)
    tier.append(5)
    tier.run()
    tier.leader("t").delete_records(2)
    tier.objects.fails = lambda op, _: op == "delete"
    tier.run()
    tier.objects.fails = lambda _op, _key: False
    assert tier.metadata()[0].state is RemoteLogSegmentState.DELETE_SEGMENT_STARTED
    tier.elect("t", 0, 2)
    assert tier.tiered() == [(2, 3)]
    assert tier.objects.names() == every(2)


def test_a_copy_that_another_leader_left_goes_after_a_while() -> None:
    tier = Tier(2)
    tier.append(3)
    tier.objects.holds = lambda op, key: op == "put" and short(key) == "0.snapshot"
    tier.manager.run_task(tier.leader("t"), lambda _: None)
    tier.cluster.scheduler.run_due()
    (left,) = tier.metadata().values()
    tier.elect("t", 0, 2)
    tier.objects.release()
    tier.advance(ABANDONED_AFTER_MS - INTERVAL)
    assert len([key for key in tier.objects.objects if key.endswith(".json")]) == 2
    assert tier.tiered() == [(0, 1)]
    tier.advance(2 * INTERVAL)
    (kept,) = tier.metadata().values()
    assert kept.id != left.id
    assert tier.objects.names() == every(0)


def test_objects_without_metadata_go_when_they_are_seen_twice() -> None:
    tier = Tier()
    tier.append(3)
    tier.run()
    (metadata,) = (key for key in tier.objects.objects if key.endswith(".json"))
    del tier.objects.objects[metadata]
    tier.leader("t").delete_records(2)
    tier.run()
    assert tier.objects.names() == [name for name in every(0) if name != "0.json"]
    tier.run()
    assert tier.objects.names() == []


def test_segments_of_a_branch_that_was_truncated_are_not_served_and_go_in_the_end() -> None:
    tier = Tier(2, unclean_leader_election_enable="true")
    tier.append(3)
    tier.broker(2).replica_manager.hold("t", 0, None)
    tier.cluster.controller.fence(2)
    tier.cluster.scheduler.run_due()
    tier.append(4)
    tier.run()
    assert tier.tiered() == [(0, 1), (2, 3), (4, 5)]
    tier.cluster.controller.unfence(2)
    tier.broker(1).stop(crash=True)
    tier.cluster.controller.fence(1)
    tier.cluster.scheduler.run_due()
    assert tier.leader("t").broker_id == 2
    assert tier.leader("t").log.log_end_offset == 3
    tier.append(4)
    tier.run()
    ranges = [(each.start_offset, each.end_offset) for each in tier.ranges(tier.leader("t"))]
    # Record 3 and all behind it were written again.
    assert sorted(ranges) == [(0, 1), (2, 2), (2, 3), (4, 5)]
    assert tier.objects.names().count("4.json") == 2
    tier.leader("t").delete_records(7)
    tier.run()
    tier.run()
    assert [name for name in tier.objects.names() if not name.startswith("6")] == []
