"""What brokers know of the tier, and when."""

from __future__ import annotations

import gc
import weakref
from functools import partial

import pytest

from fencepost.broker.core.events import Kind
from fencepost.broker.faults.remote_storage import RemoteFaultRule, RemoteOperation
from fencepost.broker.replication.replica import Replica
from fencepost.broker.tiering.remote_log_manager import RemoteView
from fencepost.storage.files.file_system import StorageFailure
from fencepost.storage.tier.lineage import RemoteSegments
from fencepost.storage.tier.object_store import TierError
from fencepost.storage.tier.segment_metadata import RemoteLogSegmentState
from tests.harness.remote_tier import INTERVAL, Tier, every

NOTHING = RemoteView(start_offset=-1, last_tiered_offset=-1, pending_upload_offset=-1, segments=())


def a_view(tier: Tier) -> RemoteView:
    view = tier.manager.state(tier.leader("t"))
    assert view is not None
    return view


def test_a_leader_knows_the_tier_from_its_first_run_on_which_is_at_once() -> None:
    tier = Tier()
    assert tier.highest() == -1
    assert a_view(tier) == NOTHING
    tier.append(5)
    tier.run()
    view = a_view(tier)
    assert (view.start_offset, view.last_tiered_offset, view.pending_upload_offset) == (0, 3, 4)
    assert [segment.start_offset for segment in view.segments] == [0, 2]


def test_a_new_leader_knows_nothing_until_the_tier_has_told() -> None:
    tier = Tier(2)
    tier.append(5)
    tier.run()
    fault = tier.cluster.tier_faults.add(
        RemoteFaultRule(operation=RemoteOperation.LIST, error="away", count=None)
    )
    tier.elect("t", 0, 2)
    assert tier.highest() is None
    assert a_view(tier) == NOTHING
    tier.advance(INTERVAL)
    assert tier.highest() is None
    tier.cluster.tier_faults.remove(fault.id)
    tier.advance(INTERVAL)
    assert tier.highest() == 3
    assert a_view(tier).pending_upload_offset == 4


def test_each_leadership_learns_anew() -> None:
    tier = Tier()
    tier.append(5)
    tier.run()
    tier.cluster.tier_faults.add(
        RemoteFaultRule(operation=RemoteOperation.LIST, error="away", count=None)
    )
    tier.elect("t", 0, 1)
    assert tier.highest() is None


def test_of_others_than_leaders_and_tiered_topics_there_is_no_state() -> None:
    tier = Tier(2)
    tier.create("u", remote_storage_enable="false")
    assert tier.broker(2).remote_log_manager.state(tier.replica(2, "t")) is None
    assert tier.broker(2).remote_log_manager.highest_tiered(tier.replica(2, "t")) == -1
    other = tier.leader("u")
    manager = tier.broker(other.broker_id).remote_log_manager
    assert manager.state(other) is None
    assert manager.highest_tiered(other) is None
    told: list[object] = []
    manager.run_task(other, told.append)
    manager.expire(other, told.append)
    manager.forget(other, told.append)
    manager.segments(other, told.append)
    assert [type(each) for each in told] == [TierError] * 4
    assert manager.delete_local(other) == 0


def test_a_broker_without_a_tier_does_nothing() -> None:
    tier = Tier()
    manager = tier.broker(1).remote_log_manager
    asked = len(tier.objects.asked)
    manager.objects = None
    tier.create("u")
    assert manager.state(tier.leader("u")) is None
    tier.cluster.scheduler.run_due()
    assert len(tier.objects.asked) == asked


def test_a_partition_of_an_older_topic_of_the_name_is_another() -> None:
    tier = Tier()
    tier.append(5)
    tier.run()
    tier.objects.fails = lambda op, _: op == "delete"
    tier.cluster.controller.delete_topics(["t"])
    tier.create()
    tier.append(3)
    tier.run()
    assert tier.tiered() == [(0, 1)]
    assert len(tier.objects.objects) > 6


def test_a_deleted_topic_goes_from_the_tier_now_or_later() -> None:
    tier = Tier(3)
    tier.append(5)
    tier.run()
    tier.objects.fails = lambda op, _: op == "delete"
    tier.cluster.controller.delete_topics(["t"])
    tier.cluster.scheduler.run_due()
    assert tier.objects.objects
    assert tier.told(Kind.TIER_FAILED)[-1].broker == 1
    tier.objects.fails = lambda _op, _key: False
    asked = len(tier.objects.asked)
    tier.advance(INTERVAL)
    assert tier.objects.objects == {}
    # It is one broker's work.
    assert [op for op, _ in tier.objects.asked[asked:]] == ["list", "delete", "delete"]
    asked = len(tier.objects.asked)
    tier.advance(3 * INTERVAL)
    assert [op for op, _ in tier.objects.asked[asked:]] == ["list"]


def test_what_was_on_its_way_when_its_topic_was_deleted_goes_as_well() -> None:
    tier = Tier()
    tier.append(3)
    tier.objects.holds = lambda op, key: op == "put" and key.endswith(".log")
    tier.manager.run_task(tier.leader("t"), lambda _: None)
    tier.cluster.scheduler.run_due()
    tier.cluster.controller.delete_topics(["t"])
    tier.cluster.scheduler.run_due()
    assert tier.objects.names() == []
    tier.objects.release()
    tier.cluster.scheduler.run_due()
    assert tier.objects.names() == ["0.log"]
    tier.advance(INTERVAL)
    assert tier.objects.names() == []


def test_a_log_that_fails_takes_its_replica_offline_and_ends_its_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tier = Tier()
    tier.append(3)
    replica = tier.leader("t")

    def fails(*_: object) -> None:
        raise StorageFailure("t-0", "no such luck")

    monkeypatch.setattr(type(replica.log), "segment_to_upload", fails)
    told: list[TierError | None] = []
    tier.manager.run_task(replica, told.append)
    tier.manager.run_task(replica, told.append)
    tier.cluster.scheduler.run_due()
    assert replica.failed
    assert [type(each) for each in told] == [TierError, TierError]
    asked = len(tier.objects.asked)
    tier.advance(3 * INTERVAL)
    assert len(tier.objects.asked) == asked


def test_the_metadata_of_a_deleted_topic_go_last() -> None:
    tier = Tier()
    tier.append(3)
    tier.run()
    tier.objects.fails = lambda op, key: op == "delete" and key.endswith(".json")
    tier.cluster.controller.delete_topics(["t"])
    tier.cluster.scheduler.run_due()
    assert tier.objects.names() == ["0.json"]


def test_a_topic_that_was_deleted_when_its_brokers_were_down_goes_when_they_are_up() -> None:
    tier = Tier(2)
    tier.append(5)
    tier.run()
    for broker in (1, 2):
        tier.broker(broker).stop(crash=False)
        tier.cluster.controller.fence(broker)
    tier.cluster.scheduler.run_due()
    tier.cluster.controller.delete_topics(["t"])
    tier.advance(INTERVAL)
    assert tier.objects.objects
    tier.broker(2).start(tier.cluster.controller.image)
    tier.advance(INTERVAL)
    assert tier.objects.objects == {}


def test_a_broker_that_is_down_does_nothing() -> None:
    tier = Tier()
    tier.append(5)
    tier.broker(1).stop(crash=True)
    asked = len(tier.objects.asked)
    tier.advance(10 * INTERVAL)
    assert len(tier.objects.asked) == asked
    tier.broker(1).start(tier.cluster.controller.image)
    tier.cluster.scheduler.run_due()
    assert len(tier.objects.asked) > asked


def test_a_reset_empties_the_tier() -> None:
    tier = Tier()
    tier.append(5)
    tier.run()
    tier.cluster.tier_faults.add(RemoteFaultRule(operation=RemoteOperation.UPLOAD, error="no"))
    tier.cluster.reset()
    tier.cluster.scheduler.run_due()
    assert tier.objects.objects == {}
    assert tier.cluster.tier_faults.all() == ()


def test_switching_off_deletes_what_is_tiered_and_keeps_what_is_here() -> None:
    tier = Tier(2, local_retention_bytes="1")
    tier.append(7)
    tier.run()
    tier.run(broker=2)
    switch(tier, "false")
    assert tier.objects.objects == {}
    for broker in (1, 2):
        log = tier.replica(broker, "t").log
        assert (log.log_start_offset, log.local_log_start_offset) == (6, 6)
    assert tier.manager.state(tier.leader("t")) is None
    asked = len(tier.objects.asked)
    tier.advance(3 * INTERVAL)
    assert [op for op, _ in tier.objects.asked[asked:]] == ["list"]


def test_switching_on_again_ends_the_deletion() -> None:
    tier = Tier(local_retention_bytes="1")
    tier.append(5)
    tier.run()
    tier.objects.fails = lambda op, _: op == "delete"
    switch(tier, "false")
    tier.objects.fails = lambda _op, _key: False
    tier.append(2)
    switch(tier, "true")
    tier.advance(2 * INTERVAL)
    assert tier.tiered() == [(4, 5)]
    assert tier.objects.names() == every(4)


def switch(tier: Tier, enabled: str) -> None:
    configs = dict(tier.cluster.controller.image.topic_configs["t"])
    configs |= {"remote.storage.enable": enabled, "remote.log.delete.on.disable": "true"}
    tier.cluster.controller.set_topic_configs("t", configs)
    tier.cluster.scheduler.run_due()


def test_local_retention_deletes_only_what_is_tiered() -> None:
    tier = Tier(2, local_retention_ms="1000")
    tier.objects.fails = lambda op, _: op == "put"
    tier.append(7, age_ms=5000)
    tier.advance(600_000)
    for broker in (1, 2):
        assert tier.replica(broker, "t").log.local_log_start_offset == 0
    tier.objects.fails = lambda _op, _key: False
    tier.run()
    assert tier.leader("t").log.local_log_start_offset == 6
    assert tier.replica(2, "t").log.local_log_start_offset == 0
    tier.advance(INTERVAL)
    assert tier.replica(2, "t").log.local_log_start_offset == 6
    assert tier.replica(2, "t").log.log_start_offset == 0
    kinds = [(event.broker, event.details) for event in tier.told(Kind.LOCAL_SEGMENTS_DELETED)]
    assert kinds == [(broker, {"segments": 3, "local_log_start_offset": 6}) for broker in (1, 2)]


def test_local_retention_is_looked_at_between_runs_as_well() -> None:
    tier = Tier(local_retention_ms="400000")
    tier.append(5)
    tier.run()
    tier.cluster.tier_faults.add(
        RemoteFaultRule(operation=RemoteOperation.LIST, error="away", count=None)
    )
    tier.advance(600_000)
    assert tier.leader("t").log.local_log_start_offset == 4


def test_by_hand_all_goes_that_is_tiered() -> None:
    tier = Tier()
    tier.append(5)
    assert tier.manager.delete_local(tier.leader("t")) == 0
    tier.run()
    assert tier.manager.delete_local(tier.leader("t")) == 2
    log = tier.leader("t").log
    assert (log.log_start_offset, log.local_log_start_offset) == (0, 4)


def test_expiring_by_hand_copies_nothing() -> None:
    tier = Tier(retention_ms="60000")
    tier.append(3)
    tier.run()
    tier.append(2)
    configs = dict(tier.cluster.controller.image.topic_configs["t"])
    tier.cluster.controller.set_topic_configs("t", {**configs, "retention.ms": "0"})
    tier.objects.asked.clear()
    assert tier.expire() is None
    assert not [key for op, key in tier.objects.asked if op == "put" and key.endswith(".log")]
    assert tier.objects.names() == []
    log = tier.leader("t").log
    assert (log.log_start_offset, log.local_log_start_offset) == (2, 2)


def test_forgetting_leaves_a_leader_as_if_newly_elected() -> None:
    tier = Tier()
    tier.append(5)
    tier.run()
    tier.advance(INTERVAL // 3)
    told: list[TierError | None] = []
    tier.manager.forget(tier.leader("t"), told.append)
    assert told == [None]
    assert tier.highest() is None
    assert a_view(tier) == NOTHING
    assert tier.told(Kind.TIER_FORGOTTEN)[0].broker == 1
    tier.advance(INTERVAL - INTERVAL // 3 - 1)
    assert tier.highest() is None
    tier.advance(1)
    assert tier.highest() == 3


def test_where_the_tier_lost_all_the_log_begins_here_and_goes_up_again() -> None:
    tier = Tier(local_retention_bytes="1")
    tier.append(5)
    tier.run()
    tier.objects.objects.clear()
    assert tier.run() is None
    log = tier.leader("t").log
    assert (log.log_start_offset, log.local_log_start_offset) == (4, 4)
    assert tier.highest() == -1, "a follower is not sent there"
    tier.append(2)
    tier.run()
    assert tier.tiered() == [(4, 5)]


def test_what_the_tier_lost_goes_up_again_where_it_is_here_still() -> None:
    tier = Tier()
    tier.append(5)
    tier.run()
    copied = tier.tiered()
    tier.objects.objects.clear()
    tier.run()
    assert tier.tiered() == copied


def test_where_the_tier_lost_a_beginning_the_log_begins_behind_it() -> None:
    tier = Tier(local_retention_bytes="1")
    tier.append(7)
    tier.run()
    for key in [key for key in tier.objects.objects if "/00000000000000000000-" in key]:
        del tier.objects.objects[key]
    tier.run()
    assert tier.leader("t").log.log_start_offset == 2


def test_a_leader_that_has_not_heard_of_a_new_log_start_learns_it_from_the_tier() -> None:
    tier = Tier(2)
    tier.append(7)
    tier.run()
    tier.hold(2)
    tier.leader("t").delete_records(4)
    tier.run()
    assert tier.tiered() == [(4, 5)]
    assert tier.replica(2, "t").log.log_start_offset == 0
    tier.elect("t", 0, 2)
    assert tier.leader("t").broker_id == 2
    assert tier.leader("t").log.log_start_offset == 4
    assert tier.tiered() == [(4, 5)]


def test_metadata_that_nobody_can_read_count_for_nothing_and_are_told_of() -> None:
    tier = Tier(2)
    tier.append(5)
    tier.run()
    (first, _) = sorted(key for key in tier.objects.objects if key.endswith(".json"))
    tier.objects.objects[first] = b"{"
    tier.elect("t", 0, 2)
    assert tier.highest() == 3
    assert tier.tiered() == [(2, 3)]
    assert any(first in str(event.details["error"]) for event in tier.told(Kind.TIER_FAILED))


@pytest.mark.parametrize("broker", [1, 2])
def test_what_the_tier_has_can_be_asked_for_before_any_task_has_run(broker: int) -> None:
    tier = Tier(2)
    tier.append(5)
    tier.run()
    tier.cluster.tier_faults.add(
        RemoteFaultRule(operation=RemoteOperation.LIST, error="away", count=2)
    )
    tier.elect("t", 0, 2)
    ranges = tier.ranges(tier.replica(broker, "t"))
    assert [(each.start_offset, each.end_offset) for each in ranges] == [(0, 1), (2, 3)]
    assert tier.highest() is None


def test_where_the_tier_does_not_tell_who_asks_is_told_so() -> None:
    tier = Tier()
    tier.cluster.tier_faults.add(
        RemoteFaultRule(operation=RemoteOperation.LIST, error="away", count=None)
    )
    tier.elect("t", 0, 1)
    told: list[RemoteSegments | TierError] = []
    tier.manager.segments(tier.leader("t"), told.append)
    tier.cluster.scheduler.run_due()
    assert isinstance(told[0], TierError)


def test_one_thing_is_done_at_a_time() -> None:
    tier = Tier()
    tier.append(5)
    tier.objects.holds = lambda op, key: op == "put" and key.endswith(".log")
    told: list[tuple[int, TierError | None]] = []

    def tell(number: int, error: TierError | None) -> None:
        told.append((number, error))

    for number in range(3):
        tier.manager.run_task(tier.leader("t"), partial(tell, number))
        tier.cluster.scheduler.run_due()
    assert len(tier.objects.held) == 1
    assert told == []
    tier.objects.release()
    tier.cluster.scheduler.run_due()
    assert told == [(0, None), (1, None), (2, None)]
    assert len(tier.metadata()) == 2


def test_who_waits_for_a_leader_that_is_none_any_more_is_told() -> None:
    tier = Tier(2)
    tier.append(3)
    tier.objects.holds = lambda op, _: op == "list"
    told: list[TierError | None] = []
    for _ in range(2):
        tier.manager.run_task(tier.leader("t"), told.append)
    tier.cluster.scheduler.run_due()
    assert told == []
    tier.objects.holds = lambda _op, _key: False
    tier.elect("t", 0, 2)
    assert [type(each) for each in told] == [TierError, TierError]
    tier.objects.release()
    tier.cluster.scheduler.run_due()
    assert len(told) == 2


def test_states_in_the_tier_are_the_last_ones() -> None:
    tier = Tier()
    tier.append(3)
    tier.objects.holds = lambda op, key: op == "put" and key.endswith(".log")
    tier.manager.run_task(tier.leader("t"), lambda _: None)
    tier.cluster.scheduler.run_due()
    assert tier.metadata()[0].state is RemoteLogSegmentState.COPY_SEGMENT_STARTED
    tier.objects.release()
    tier.cluster.scheduler.run_due()
    assert tier.metadata()[0].state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED


def test_a_wiped_replica_follows_and_knows_the_tier_anew() -> None:
    tier = Tier(2, local_retention_bytes="1")
    tier.append(5)
    tier.run()
    before = tier.replica(2, "t")
    tier.broker(2).replica_manager.wipe("t", 0)
    assert_unknown(tier, before)


def assert_unknown(tier: Tier, replica: Replica) -> None:
    told: list[RemoteSegments | TierError] = []
    tier.broker(replica.broker_id).remote_log_manager.segments(replica, told.append)
    assert isinstance(told[0], TierError)


def test_a_deleted_replica_of_a_tiered_topic_is_freed_at_once() -> None:
    """Its task would run again in half a minute."""
    tier = Tier()
    tier.append(5)
    tier.run()
    tiered = weakref.ref(tier.broker(1).remote_log_manager._tiered["t", 0])
    gc.disable()
    try:
        tier.cluster.controller.delete_topics(["t"])
        tier.cluster.scheduler.run_due()
        assert tiered() is None
    finally:
        gc.enable()
