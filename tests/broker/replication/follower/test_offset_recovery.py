"""Followers that leave earlier records to the remote tier (KIP-405, KIP-1023)."""

from __future__ import annotations

import pytest

from fencepost.broker.node.operator_actions import hold
from fencepost.broker.replication.follower.start_offset import SpecialTimestamp
from fencepost.broker.replication.follower.steps import FollowerState
from fencepost.storage.log.leader_epoch_cache import EpochEntry
from tests.broker.replication.follower.remote_bootstrap import (
    BACKOFF,
    BEGIN,
    BUILD,
    END,
    GO_ON,
    LOCAL,
    OUT_OF_RANGE,
    PENDING,
    START,
    TRACE,
    Start,
    example,
    local_content,
)
from tests.harness.driver_requests import fetch, list_offset
from tests.harness.typed_requests import values

# -- the rows of the table ----------------------------------------------------------------------


def test_row_1_without_the_feature_it_takes_all_that_its_leader_has_here() -> None:
    driver = Start(enabled=False)
    driver.tier_away(3, local=2)
    driver.append(5)
    assert driver.step(4) == [BEGIN, START, LOCAL, BUILD]
    assert driver.new.log.log_end_offset == 30
    driver.release()
    driver.assert_caught_up(start=0, local=30)


def test_row_2_with_the_feature_it_takes_what_waits_to_be_tiered() -> None:
    driver = Start()
    driver.tier_away(3, local=2)
    driver.append(5)
    assert driver.step(4) == [BEGIN, START, PENDING, BUILD]
    assert driver.new.log.log_end_offset == driver.new.high_watermark == 50
    driver.release()
    driver.assert_caught_up(start=0, local=50)


def test_row_3_where_nothing_is_tiered_yet_it_takes_all_of_it() -> None:
    driver = Start()
    driver.append(9)
    driver.delete_records(4)
    assert driver.run() is None
    assert driver.step(5) == [("Fetch", None, OUT_OF_RANGE), START, PENDING, LOCAL, GO_ON]
    driver.release()
    assert (driver.new.log.log_start_offset, driver.new.log.log_end_offset) == (4, 9)


def test_row_4_where_the_leader_does_not_know_yet_it_waits_and_tries_again() -> None:
    driver = Start()
    driver.tier_away(3)
    driver.append(2)
    driver.manager.forget(driver.leader("t"), lambda _: None)
    assert (
        list_offset(driver, "t", SpecialTimestamp.EARLIEST_PENDING_UPLOAD, replica_id=2).offset
        == -1
    )
    driver.release()
    asked = [api.title for api, _, _ in driver.sent]
    assert asked == ["Fetch", "ListOffsets", "ListOffsets", "ListOffsets"]
    assert driver.state is FollowerState.BACKING_OFF
    driver.append(1)  # its leader's ring is not what it waits for
    driver.advance(BACKOFF - 1)
    assert len(driver.sent) == len(asked)
    driver.advance(1)
    assert len(driver.sent) == 2 * len(asked)
    assert driver.run() is None
    driver.advance(BACKOFF)
    driver.assert_caught_up(start=0, local=30)


def test_row_5_where_the_tier_ends_before_the_log_start_it_is_left_alone() -> None:
    driver = Start()
    driver.segment(10)
    assert driver.run() is None
    driver.append(10)
    driver.delete_records(15)
    driver.objects.asked.clear()
    assert driver.step(4) == [("Fetch", None, OUT_OF_RANGE), START, PENDING, GO_ON]
    assert driver.objects.asked == []
    driver.release()
    assert (driver.new.log.log_start_offset, driver.new.log.log_end_offset) == (15, 20)


# -- the cases of the old protocol --------------------------------------------------------------


@pytest.mark.parametrize("enabled", [False, True])
def test_case_1_what_the_leader_still_has_is_fetched_from_it(enabled: bool) -> None:
    driver = Start(enabled=enabled)
    driver.segment(10)
    driver.append(5)
    assert driver.run() is None
    assert driver.manager.highest_tiered(driver.leader("t")) == 9
    assert driver.step(2) == [GO_ON, GO_ON]
    driver.assert_caught_up(start=0, local=0)


def test_case_2_1_below_the_log_start_it_goes_to_the_log_start() -> None:
    driver = Start(enabled=False)
    driver.append(10)
    driver.delete_records(6)
    assert driver.step(4) == [("Fetch", None, OUT_OF_RANGE), END, START, GO_ON]
    driver.release()
    driver.assert_caught_up(start=6, local=6)


def test_case_2_1_leads_to_case_2_2_where_the_log_start_is_tiered() -> None:
    driver = Start(enabled=False)
    driver.tier_away(3)
    driver.append(5)
    driver.delete_records(12)
    refused = ("Fetch", None, OUT_OF_RANGE)
    assert driver.step(7) == [refused, END, START, BEGIN, START, LOCAL, BUILD]
    driver.release()
    driver.assert_caught_up(start=12, local=30)


def test_case_2_1_with_the_feature_goes_at_once_behind_what_is_tiered() -> None:
    driver = Start()
    driver.tier_away(3, local=1)
    driver.append(5)
    driver.delete_records(12)
    assert driver.step(4) == [("Fetch", None, OUT_OF_RANGE), START, PENDING, BUILD]
    driver.release()
    driver.assert_caught_up(start=12, local=40)


def test_case_2_2_takes_a_follower_that_fell_behind_with_the_feature_as_without() -> None:
    driver = Start()
    driver.append(4)
    driver.release()
    assert driver.new.log.log_end_offset == 4
    hold(driver.cluster, "t", 0, 2, leave_isr=True)
    driver.tier_away(3, local=2)
    assert driver.step(4) == [BEGIN, START, LOCAL, BUILD]
    driver.release()
    driver.assert_caught_up(start=0, local=34)


def test_what_moved_while_it_was_asked_about_is_refused_once_more() -> None:
    driver = Start(enabled=False)
    driver.tier_away(1, local=1)
    driver.append(3)
    assert driver.step(4)[-1] == BUILD
    driver.manager.delete_local(driver.leader("t"))
    assert driver.step(1) == [BEGIN]
    driver.release()
    driver.assert_caught_up(start=0, local=20)


# -- the example of the KIP ---------------------------------------------------------------------


def test_the_worked_example_step_1_builds_the_leader_epochs_from_the_tier() -> None:
    driver = example()
    leader = driver.leader("t")
    assert driver.tiered() == [(0, 2), (3, 5)]
    epochs = {start: segment.epochs for start, segment in driver.metadata().items()}
    assert epochs == {0: (EpochEntry(0, 0),), 3: (EpochEntry(1, 3), EpochEntry(2, 5))}
    assert [(offset, epoch) for offset, epoch, _ in local_content(leader)] == [
        (3, 1),
        (4, 1),
        (5, 2),
        (6, 2),
        (7, 3),
    ]
    assert leader.high_watermark == 8
    local = list_offset(driver, "t", SpecialTimestamp.EARLIEST_LOCAL)
    assert (local.offset, local.leader_epoch) == (3, 1)
    pending = list_offset(driver, "t", SpecialTimestamp.EARLIEST_PENDING_UPLOAD)
    assert (pending.offset, pending.leader_epoch) == (6, 2)

    assert driver.step(5) == [BEGIN, START, PENDING, TRACE, BUILD]
    assert driver.new.log.epoch_entries() == (EpochEntry(0, 0), EpochEntry(1, 3), EpochEntry(2, 5))
    assert (driver.new.log.log_start_offset, driver.new.log.log_end_offset) == (0, 6)
    assert local_content(driver.new) == []


def test_the_worked_example_step_2_fetches_from_there_to_the_high_watermark() -> None:
    driver = example()
    driver.step(5)
    assert driver.step(1) == [GO_ON]
    assert [(offset, epoch) for offset, epoch, _ in local_content(driver.new)] == [(6, 2), (7, 3)]
    expected = (EpochEntry(0, 0), EpochEntry(1, 3), EpochEntry(2, 5), EpochEntry(3, 7))
    assert driver.new.log.epoch_entries() == driver.leader("t").log.epoch_entries() == expected
    driver.release()
    driver.assert_caught_up(start=0, local=6)


# -- what it is good for ------------------------------------------------------------------------


def test_it_joins_the_isr_with_a_small_part_of_the_data() -> None:
    driver = Start()
    driver.tier_away(6, local=3)
    driver.append(10)
    driver.release()
    assert set(driver.partition("t").isr) == {1, 2}
    here = sum(segment.size_bytes for segment in driver.new.log.segments())
    tiered = sum(segment.size_bytes for segment in driver.metadata().values())
    assert here / (here + tiered) == pytest.approx(0.1)


def test_it_serves_from_the_tier_what_it_did_not_fetch_when_it_leads_one_day() -> None:
    driver = Start()
    driver.tier_away(3, local=2)
    driver.append(5)
    driver.release()
    before = [values(fetch(driver, "t", offset)) for offset in (0, 25, 50)]
    driver.elect("t", 0, 2)
    assert driver.new.log.local_log_start_offset == 50
    assert driver.run(broker=2) is None
    assert [values(fetch(driver, "t", offset)) for offset in (0, 25, 50)] == before
