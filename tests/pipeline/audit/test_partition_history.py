"""What is drawn of a partition: short enough, and with every dip still in it."""

from __future__ import annotations

import numpy as np

from fencepost.pipeline.audit.partition_history import downsample, from_batches, from_traces
from fencepost.pipeline.audit.partition_summary import MAX_MARKS, MAX_POINTS
from fencepost.pipeline.audit.rule import PartitionMetadata
from fencepost.pipeline.audit.spark_task import check_partitions
from tests.pipeline.audit.summaries import NOW_MS, START_MS, batches, event, traces


def span(base: int, count: int) -> dict[str, object]:
    """A batch as a trace shows it."""
    return {"base_offset": base, "last_offset": base + count - 1, "count": count}


def test_a_long_series_keeps_what_limits_it() -> None:
    values = np.arange(100_000, dtype=np.int64)
    values[70_123] = -5
    values[30_321] = 500_000
    series = downsample(np.arange(100_000, dtype=np.int64) + START_MS, values)
    assert series.total == 100_000
    assert len(series.times) <= MAX_POINTS
    kept = dict(zip(series.times, series.values, strict=True))
    assert kept[START_MS + 70_123] == -5
    assert kept[START_MS + 30_321] == 500_000
    assert (series.times[0], series.times[-1]) == (START_MS, START_MS + 99_999)
    assert list(series.times) == sorted(series.times)


def test_a_short_one_is_as_it_was() -> None:
    times = np.array([3, 1, 2], np.int64)
    series = downsample(times, np.array([30, 10, 20], np.int64))
    assert (series.times, series.values, series.total) == ((1, 2, 3), (10, 20, 30), 3)
    many = np.zeros(MAX_POINTS + 1, np.int64)
    assert len(downsample(many, many).times) <= 4


def test_offsets_over_time() -> None:
    rows = traces(
        {"api": "Produce", "offset": 0, "batches": [span(0, 3), span(0, 2)]},
        {"api": "Produce", "offset": -1, "error": 6, "batches": [span(0, 9)]},
        {"api": "Fetch", "high_watermark": 4, "batches": [span(0, 4)]},
        {"api": "ListOffsets", "timestamp": -1, "offset": 4},
        {"api": "ListOffsets", "timestamp": -2, "offset": 0},
        {"api": "ListOffsets", "timestamp": -1, "offset": -1, "error": 78},
        {"api": "ListOffsets", "timestamp": -1, "offset": 9, "replica_id": 2},
        {"api": "ListOffsets", "timestamp": -1, "answered_ms": None, "error": None},
    )
    history = from_traces(rows, 0)
    assert history.from_trace
    assert history.log_end.values == (5,)
    assert history.high_watermark.values == (4,)
    assert (history.latest.times, history.latest.values) == ((START_MS + 4,), (4,))
    assert history.gated.times == (START_MS + 6,)


def test_a_log_end_falls_only_with_a_new_leader() -> None:
    rows = traces(
        {"api": "Produce", "offset": 0, "batches": [span(0, 8)]},
        {"api": "Fetch", "replica_id": 2, "fetch_offset": 0, "batches": [span(0, 3)]},
        event("leader_changed", topic="orders", partition=0, leader=2, leader_epoch=1),
        {"api": "Fetch", "replica_id": 3, "fetch_offset": 2, "batches": [span(2, 1)]},
        {"api": "Produce", "offset": 3, "batches": [span(0, 2)]},
    )
    assert from_traces(rows, 0).log_end.values == (8, 3, 5)


def test_a_lag_is_to_the_log_end_of_the_same_leader() -> None:
    rows = traces(
        {"api": "Fetch", "replica_id": 2, "fetch_offset": 0},
        {"api": "Produce", "offset": 0, "batches": [span(0, 8)]},
        {"api": "Fetch", "replica_id": 2, "fetch_offset": 5},
        {"api": "Fetch", "replica_id": 3, "fetch_offset": 8},
        {"api": "Fetch", "replica_id": 2, "fetch_offset": None},
        event("leader_changed", topic="orders", partition=0, leader=2, leader_epoch=1),
        {"api": "Fetch", "replica_id": 3, "fetch_offset": 2},
        {"api": "Produce", "offset": 3, "batches": [span(0, 2)]},
        {"api": "Fetch", "replica_id": 3, "fetch_offset": 2},
    )
    two, three = from_traces(rows, 0).lag
    assert (two.broker, two.records.values) == (2, (3,))
    assert (three.broker, three.records.values) == (3, (0, 3))


def test_elections_and_who_led_before() -> None:
    rows = traces(
        event("topic_created", topic="orders", leaders=[[3, 0], [1, 0]]),
        event("leader_changed", topic="orders", partition=1, leader=2, leader_epoch=1),
        event("leader_changed", topic="orders", partition=1, leader=-1, leader_epoch=2),
        event(
            "leader_changed", topic="orders", partition=1, leader=3, leader_epoch=3, unclean=True
        ),
    )
    history = from_traces(rows, 1)
    told = [(each.leader, each.epoch, each.unclean) for each in history.elections]
    assert told == [(1, 0, False), (2, 1, False), (None, 2, False), (3, 3, True)]


def test_of_many_elections_some() -> None:
    rows = traces(
        *(
            event("leader_changed", topic="orders", partition=0, leader=1, leader_epoch=epoch)
            for epoch in range(1000)
        )
    )
    history = from_traces(rows, 0)
    assert history.elections_total == 1000
    assert len(history.elections) == MAX_MARKS


def test_without_a_trace_batches_tell() -> None:
    rows = batches(
        {"base_offset": 0},
        {"base_offset": 10, "max_timestamp": START_MS - 50},
        {"base_offset": 20, "epoch": 4},
        {"base_offset": None, "last_offset": None, "problem": "trailing"},
    )
    history = from_batches(rows)
    assert not history.from_trace
    assert history.log_end.values == (10, 20, 30)
    # Producers' clocks go back; a plot does not.
    assert history.log_end.times == (START_MS, START_MS, START_MS + 20)
    assert [(each.epoch, each.leader) for each in history.elections] == [(4, None)]


def test_the_replica_that_goes_furthest_tells() -> None:
    rows = batches({"broker": 1}, {"broker": 2}, {"broker": 2, "base_offset": 10})
    (found,) = check_partitions(
        rows, None, {}, rules=("torn-tail",), now_ms=NOW_MS, with_history=True
    )
    assert found.summary.history is not None
    assert found.summary.history.log_end.values == (10, 20)


def test_nothing_tells_of_nothing() -> None:
    empty = from_traces(traces(), 0)
    assert empty.log_end.times == ()
    assert empty.lag == ()
    metadata = {("orders", 0): PartitionMetadata()}
    (found,) = check_partitions(
        batches(), None, metadata, rules=("torn-tail",), now_ms=NOW_MS, with_history=True
    )
    assert found.summary.history is None
