"""Copying: what goes up, in which order, and what a failure on the way leaves."""

from __future__ import annotations

import pytest

from fencepost.broker.core.events import Kind
from fencepost.protocol.byte_utils import format_uuid
from fencepost.storage.formats.checkpoints import decode_epochs
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from fencepost.storage.tier.segment_metadata import RemoteLogSegmentState
from tests.harness.remote_tier import INTERVAL, Tier, every, short

STEPS = [
    ("put", "0.json"),
    ("put", "0.log"),
    ("put", "0.index"),
    ("put", "0.timeindex"),
    ("put", "0.snapshot"),
    ("put", "0.leader-epoch-checkpoint"),
    ("put", "0.json"),
]


def test_closed_segments_go_up_in_order_at_the_task_interval() -> None:
    tier = Tier()
    tier.append(5)
    assert tier.objects.objects == {}
    tier.advance(INTERVAL - 1)
    assert tier.objects.objects == {}
    tier.advance(1)
    assert tier.objects.names() == [*every(0), *every(2)]
    assert tier.tiered() == [(0, 1), (2, 3)]
    assert tier.highest() == 3
    tier.append(2)
    tier.advance(INTERVAL)
    assert tier.tiered() == [(0, 1), (2, 3), (4, 5)]


def test_the_metadata_go_first_and_last() -> None:
    tier = Tier()
    tier.append(3)
    tier.objects.asked.clear()
    tier.run()
    steps = [(op, short(key)) for op, key in tier.objects.asked if op == "put"]
    assert steps == STEPS
    assert tier.metadata()[0].state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED


def test_what_is_copied_is_what_the_log_has() -> None:
    tier = Tier()
    tier.append(3)
    log = tier.leader("t").log
    read = log.read(0, max_bytes=10**6, upper_bound=2, min_one_batch=True)
    tier.run()
    (key,) = (key for key in tier.objects.objects if key.endswith(".log"))
    assert tier.objects.objects[key] == b"".join(read.buffers)
    segment = tier.metadata()[0]
    assert segment.size_bytes == read.size
    assert segment.max_timestamp == tier.clock.now_ms()
    assert segment.epochs == (EpochEntry(0, 0),)
    assert (segment.broker_id, segment.event_ms) == (1, tier.clock.now_ms())


def test_only_what_ends_below_the_last_stable_offset_goes_up() -> None:
    tier = Tier(2, min_insync_replicas="1")
    tier.hold(2)
    tier.append(7)
    leader = tier.leader("t")
    assert leader.last_stable_offset == 0
    tier.run()
    assert tier.tiered() == []
    assert tier.highest() == -1
    tier.release(2)
    tier.run()
    assert tier.tiered() == [(0, 1), (2, 3), (4, 5)]


def test_a_segment_that_ends_at_the_last_stable_offset_goes_up() -> None:
    tier = Tier(2)
    tier.append(2)
    tier.hold(2)
    tier.append(3)
    assert tier.leader("t").last_stable_offset in (2, 3)
    tier.run()
    assert tier.tiered() == [(0, 1)]


def test_copying_goes_on_where_the_log_starts() -> None:
    tier = Tier()
    tier.append(7)
    tier.leader("t").delete_records(3)
    tier.run()
    assert tier.tiered() == [(2, 3), (4, 5)]
    assert tier.metadata()[2].epochs == (EpochEntry(0, 2),)


@pytest.mark.parametrize("step", range(len(STEPS)))
def test_a_copy_that_fails_is_not_served_and_goes_and_comes_again(step: int) -> None:
    tier = Tier()
    tier.append(5)
    puts: list[str] = []

    def fails(op: str, _key: str) -> bool:
        if op == "put":
            puts.append(op)
        return op == "put" and len(puts) == step + 1

    tier.objects.fails = fails
    error = tier.run()
    assert error is not None
    assert tier.tiered() == []
    assert tier.highest() == -1
    assert all(short(key).startswith("0.") for key in tier.objects.objects)
    assert len(tier.told(Kind.TIER_FAILED)) == 1
    assert tier.metadata().get(0) is None or (
        tier.metadata()[0].state is RemoteLogSegmentState.COPY_SEGMENT_STARTED
    )
    tier.advance(INTERVAL)
    assert tier.tiered() == [(0, 1), (2, 3)]
    assert tier.objects.names() == [*every(0), *every(2)]


def test_a_copy_that_was_finished_although_the_tier_said_no_counts() -> None:
    tier = Tier()
    tier.append(3)
    tier.objects.fails = lambda op, key: op == "put" and key.endswith(".snapshot")
    tier.run()
    (segment,) = tier.metadata().values()
    finished = segment.with_state(
        RemoteLogSegmentState.COPY_SEGMENT_FINISHED, broker_id=1, now_ms=1
    )
    (key,) = (key for key in tier.objects.objects if key.endswith(".json"))
    tier.objects.objects[key] = finished.to_json()
    tier.objects.fails = lambda _op, _key: False
    tier.run()
    assert tier.tiered() == [(0, 1)]
    assert len(tier.metadata()) == 1


def test_a_failure_of_copying_does_not_keep_other_work_from_being_done() -> None:
    tier = Tier(local_retention_bytes="1")
    tier.append(5)
    tier.objects.fails = lambda op, key: op == "put" and short(key) == "2.log"
    tier.run()
    assert tier.tiered() == [(0, 1)]
    assert tier.leader("t").log.local_log_start_offset == 2
    tier.leader("t").delete_records(2)
    assert tier.run() is not None
    assert tier.tiered() == []
    assert not any(short(key).startswith("0.") for key in tier.objects.objects)


def test_copying_stops_where_the_leadership_ends() -> None:
    tier = Tier(2)
    tier.append(7)
    tier.objects.holds = lambda op, key: op == "put" and short(key) == "2.index"
    told: list[object] = []
    tier.manager.run_task(tier.leader("t"), told.append)
    tier.cluster.scheduler.run_due()
    assert tier.highest() == 1
    old = tier.leader("t")
    tier.elect("t", 0, 2)
    assert len(told) == 1
    assert told[0] is not None
    assert tier.broker(1).remote_log_manager.state(old) is None
    abandoned = {s.id for s in tier.metadata().values() if s.broker_id == 1 and s.start_offset}
    asked = len(tier.objects.asked)
    tier.objects.release()
    tier.advance(INTERVAL)
    ids = [format_uuid(each) for each in abandoned]
    assert len(ids) == 1
    assert not [key for op, key in tier.objects.asked[asked:] if op == "put" and ids[0] in key]
    assert tier.tiered() == [(0, 1), (2, 3), (4, 5)]


def test_a_new_leader_goes_on_behind_what_is_tiered_in_its_lineage() -> None:
    tier = Tier(2)
    tier.append(5)
    tier.run()
    assert tier.highest() == 3
    tier.elect("t", 0, 2)
    tier.append(2)
    tier.run()
    assert tier.tiered() == [(0, 1), (2, 3), (4, 5)]
    assert tier.metadata()[4].epochs == (EpochEntry(0, 4), EpochEntry(1, 5))
    (key,) = (k for k in tier.objects.objects if short(k) == "4.leader-epoch-checkpoint")
    assert decode_epochs(tier.objects.objects[key]) == (EpochEntry(0, 0), EpochEntry(1, 5))


def test_copying_can_be_switched_off_and_local_retention_is_retention_then() -> None:
    tier = Tier(remote_log_copy_disable="true", retention_ms="1000")
    tier.append(4, age_ms=2000)
    tier.append(1)
    tier.run()
    assert tier.objects.objects == {}
    tier.advance(300_000)
    assert tier.leader("t").log.log_start_offset >= 4
