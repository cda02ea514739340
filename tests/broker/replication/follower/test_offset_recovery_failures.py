"""The tier fails while a follower begins behind it, or others come between."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fencepost.broker.core.events import Kind
from fencepost.broker.node.operator_actions import elect, hold, release, step, stop, wipe
from fencepost.broker.replication.follower.steps import FollowerState
from fencepost.protocol.errors import ErrorCode
from tests.broker.replication.follower.remote_bootstrap import (
    BACKOFF,
    BEGIN,
    PENDING,
    START,
    Start,
)
from tests.harness.driver import content


def test_a_tier_that_fails_is_asked_again_from_the_beginning() -> None:
    driver = Start()
    driver.tier_away(3)
    driver.append(2)
    driver.objects.fails = lambda op, _key: op == "list"
    assert driver.step(4) == [BEGIN, START, PENDING, ("Tier", None, ErrorCode.KAFKA_STORAGE_ERROR)]
    assert driver.state is FollowerState.BACKING_OFF
    driver.release()
    assert (driver.new.log.log_end_offset, driver.new.log.epoch_entries()) == (0, ())
    driver.advance(BACKOFF)
    assert driver.state is FollowerState.BACKING_OFF
    driver.objects.fails = lambda _op, _key: False
    driver.advance(BACKOFF)
    driver.assert_caught_up(start=0, local=30)


@pytest.mark.parametrize("suffix", [".json", ".leader-epoch-checkpoint", ".snapshot"])
def test_nothing_is_half_built(suffix: str) -> None:
    driver = Start()
    driver.tier_away(3)
    key = max(key for key in driver.objects.objects if key.endswith(suffix))
    kept, driver.objects.objects[key] = driver.objects.objects[key], b"broken"
    driver.release()
    assert (driver.state, driver.new.log.log_end_offset) == (FollowerState.BACKING_OFF, 0)
    driver.objects.objects[key] = kept
    driver.advance(BACKOFF)
    driver.assert_caught_up(start=0, local=30)


def held_while_building() -> Start:
    """Three brokers; 2 builds, and the tier takes its time. Broker 3 has all that 1 has."""
    driver = Start(brokers=3)
    release(driver.cluster, "t", 0, 3)
    driver.tier_away(3)
    driver.append(4)
    driver.objects.holds = lambda op, key: op == "get" and key.endswith("-checkpoint")
    driver.release()
    assert driver.state is FollowerState.BUILDING
    return driver


def test_a_new_leader_makes_what_is_built_worthless() -> None:
    driver = held_while_building()
    elect(driver.cluster, "t", 0, 3)
    asked = len(driver.sent)
    driver.objects.release()
    driver.cluster.scheduler.run_due()
    assert [api.title for api, _, _ in driver.sent[asked:]] == []
    assert not [o for o, key in driver.objects.asked if o == "get" and key.endswith(".snapshot")]
    driver.append(1)
    driver.advance(BACKOFF)
    driver.assert_caught_up(start=0, local=driver.new.log.local_log_start_offset)
    assert driver.new.leader == 3


def test_a_truncated_leader_is_asked_anew() -> None:
    """What is tiered is on none of the others: the new leader's log is shorter than the tier."""
    driver = Start(brokers=3)
    driver.append(5)
    release(driver.cluster, "t", 0, 3)
    hold(driver.cluster, "t", 0, 3, leave_isr=True)
    driver.tier_away(2)
    driver.append(4)
    driver.objects.holds = lambda op, key: op == "get" and key.endswith(".snapshot")
    driver.release()
    assert driver.state is FollowerState.BUILDING
    elect(driver.cluster, "t", 0, 3, unclean=True)
    driver.objects.release()
    driver.append(1)
    driver.advance(BACKOFF)
    assert content(driver.new) == content(driver.leader("t"))
    assert driver.new.log.epoch_entries() == driver.leader("t").log.epoch_entries()


def test_one_that_left_more_to_the_tier_than_a_new_leader_has_starts_anew() -> None:
    driver = Start(brokers=3)
    driver.append(5)
    release(driver.cluster, "t", 0, 3)
    hold(driver.cluster, "t", 0, 3, leave_isr=True)
    driver.tier_away(2)
    driver.append(4)
    driver.release()
    assert driver.new.log.local_log_start_offset == 25
    elect(driver.cluster, "t", 0, 3, unclean=True)
    driver.append(1)
    driver.advance(BACKOFF)
    assert content(driver.new) == content(driver.leader("t"))
    assert driver.new.log.epoch_entries() == driver.leader("t").log.epoch_entries()


@pytest.mark.parametrize("undo", ["stop", "wipe", "elect"])
def test_who_is_gone_or_leads_builds_no_more(undo: str) -> None:
    driver = held_while_building()
    before = driver.new
    actions: dict[str, Callable[[], object]] = {
        "stop": lambda: stop(driver.cluster, 2),
        "wipe": lambda: wipe(driver.cluster, "t", 0, 2),
        "elect": lambda: elect(driver.cluster, "t", 0, 2, unclean=True),
    }
    actions[undo]()
    driver.objects.holds = lambda _op, _key: False
    held, driver.objects.held = driver.objects.held, []
    held[0]()
    driver.cluster.scheduler.run_due()
    assert before.log.log_start_offset == before.log.local_log_start_offset
    assert before.log.log_end_offset == 0


def test_a_held_follower_builds_nothing_by_itself() -> None:
    driver = Start()
    driver.tier_away(3)
    states = []
    for _ in range(5):
        (done,) = step(driver.cluster, "t", 0, 2)
        states.append(done.state)
        driver.append(1)
        driver.advance(10)
    assert states == [
        FollowerState.LOST,
        FollowerState.LOST,
        FollowerState.BUILDING,
        FollowerState.FETCHING,
        FollowerState.FETCHING,
    ]


def test_it_is_told_of() -> None:
    driver = Start()
    driver.tier_away(3)
    driver.release()
    (event,) = driver.told(Kind.LOG_STARTED_FROM_TIER)
    assert (event.topic, event.partition, event.broker) == ("t", 0, 2)
    assert event.details == {"offset": 30, "log_start_offset": 0, "previous_offset": 0}
    assert driver.told(Kind.LOG_TRUNCATED) == []
