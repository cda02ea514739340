"""Faults that followers meet, and what they and their test see of them."""

from __future__ import annotations

from typing import Any

import pytest

from fencepost.broker.faults.kinds import (
    Action,
    Corrupt,
    Delay,
    Disconnect,
    DisconnectWhen,
    Drop,
    Refuse,
    Throttle,
)
from fencepost.broker.faults.registry import Fault
from fencepost.broker.network.links import REQUEST_TIMEOUT_MS
from fencepost.broker.node import operator_actions
from fencepost.broker.replication.follower.steps import FollowerState, Step
from fencepost.protocol.errors import ErrorCode
from tests.broker.driver import Driver
from tests.broker.faults.faulty import CODE, set_fault
from tests.broker.talk import create, produce, produced, send_produce

BACKOFF_MS = 1000
"""``replica.fetch.backoff.ms``."""


@pytest.fixture
def driver() -> Driver:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    return driver


def on_follower(driver: Driver, action: Action, **selectors: Any) -> Fault:  # noqa: ANN401  # a rule's
    return set_fault(driver, "fetch", action, client_id="broker-2-fetcher-0", **selectors)


def step(driver: Driver) -> Step:
    (step,) = operator_actions.step(driver.cluster, "t", 0, 2)
    return step


def end(driver: Driver) -> int:
    return driver.replica(2, "t").log.log_end_offset


@pytest.mark.parametrize(
    ("action", "pause_ms"),
    [
        (Refuse(CODE), BACKOFF_MS),
        (Refuse(4711), BACKOFF_MS),
        (Delay(300), 300),
        (Disconnect(DisconnectWhen.BEFORE), BACKOFF_MS),
        (Disconnect(DisconnectWhen.AFTER), BACKOFF_MS),
        (Drop(), REQUEST_TIMEOUT_MS + BACKOFF_MS),
        (Delay(REQUEST_TIMEOUT_MS + 1), REQUEST_TIMEOUT_MS + BACKOFF_MS),
        (Corrupt(), BACKOFF_MS),
    ],
    ids=repr,
)
def test_acks_all_waits_until_the_follower_gets_through(
    driver: Driver, action: Action, pause_ms: int
) -> None:
    fault = on_follower(driver, action)
    asked = send_produce(driver, "t", b"a", timeout_ms=120_000)
    driver.advance(pause_ms - 1)
    assert (asked.done, fault.hits) == (False, 1)
    driver.advance(1)
    assert produced(asked.response).error_code == 0
    assert (end(driver), driver.partition("t").isr) == (1, (1, 2))


def test_acks_all_times_out_while_the_follower_is_refused(driver: Driver) -> None:
    on_follower(driver, Refuse(CODE), count=None)
    asked = send_produce(driver, "t", b"a", timeout_ms=500)
    driver.advance(500)
    assert produced(asked.response).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert driver.leader("t").log.log_end_offset == 1


def test_a_follower_that_is_always_refused_leaves_the_isr(driver: Driver) -> None:
    fault = on_follower(driver, Refuse(CODE), count=None)
    asked = send_produce(driver, "t", b"a", timeout_ms=120_000)
    driver.advance(60_000)
    assert driver.partition("t").isr == (1,)
    assert produced(asked.response).error_code == 0
    driver.cluster.faults.remove(fault.id)
    driver.advance(BACKOFF_MS)
    assert (end(driver), driver.partition("t").isr) == (1, (1, 2))


def test_a_corrupt_batch_is_not_appended_and_the_leader_keeps_it_whole(driver: Driver) -> None:
    driver.hold(2)
    on_follower(driver, Corrupt())
    send_produce(driver, "t", b"a", acks=1)
    found = step(driver)
    assert (found.error, found.appended, end(driver)) == (ErrorCode.CORRUPT_MESSAGE, 0, 0)
    found = step(driver)
    assert (found.error, found.appended, end(driver)) == (ErrorCode.NONE, 1, 1)


@pytest.mark.parametrize(
    ("action", "error"),
    [
        (Refuse(CODE), CODE),
        (Refuse(4711), 4711),
        (Delay(300), None),
        (Disconnect(DisconnectWhen.BEFORE), None),
        (Disconnect(DisconnectWhen.AFTER), None),
        (Drop(), None),
        (Throttle(300), ErrorCode.NONE),
    ],
    ids=repr,
)
def test_a_step_tells_what_it_saw(driver: Driver, action: Action, error: int | None) -> None:
    driver.hold(2)
    send_produce(driver, "t", b"a", acks=1)
    on_follower(driver, action)
    found = step(driver)
    assert (found.api, found.leader, found.error) == ("Fetch", 1, error)
    assert found.appended == (1 if error == 0 else 0)
    assert step(driver).error is ErrorCode.NONE
    assert end(driver) == 1


def test_a_refusal_of_one_partition_leaves_the_others_of_a_follower(driver: Driver) -> None:
    create(driver, "u", [(1, 2)])
    on_follower(driver, Refuse(CODE), topic="u", count=None)
    assert produce(driver, "t", b"a").error_code == 0
    asked = send_produce(driver, "u", b"a")
    assert not asked.done


def test_a_fetch_that_counts_although_it_is_answered_with_a_timeout(driver: Driver) -> None:
    driver.hold(2)
    send_produce(driver, "t", b"a", acks=1)
    step(driver)
    assert driver.leader("t").high_watermark == 0
    on_follower(driver, Refuse(ErrorCode.REQUEST_TIMED_OUT))
    assert step(driver).error is ErrorCode.REQUEST_TIMED_OUT
    assert driver.leader("t").high_watermark == 1


def test_a_fetch_that_is_refused_does_not_count(driver: Driver) -> None:
    driver.hold(2)
    send_produce(driver, "t", b"a", acks=1)
    step(driver)
    on_follower(driver, Refuse(CODE))
    assert step(driver).error == CODE
    assert driver.leader("t").high_watermark == 0


def test_an_answer_that_came_is_not_missed_later(driver: Driver) -> None:
    on_follower(driver, Delay(300), count=2)
    send_produce(driver, "t", b"a")
    driver.advance(600)
    follower = driver.broker(2).replica_manager.follower("t", 0)
    assert follower is not None
    states = []
    for _ in range(REQUEST_TIMEOUT_MS // 100 + 1):
        driver.advance(100)
        states.append(follower.state)
    assert set(states) == {FollowerState.IDLE}


def test_other_requests_of_followers_meet_faults_too(driver: Driver) -> None:
    driver = Driver(2, api_max={"fetch": 11})
    create(driver, "t", [(1, 2)])
    produce(driver, "t", b"a")
    fault = set_fault(driver, "offset_for_leader_epoch", Refuse(CODE))
    driver.elect("t", 0, 2)
    assert fault.hits == 1
    driver.advance(BACKOFF_MS)
    assert produce(driver, "t", b"b").error_code == 0


def test_an_answer_that_comes_too_late_is_not_waited_for(driver: Driver) -> None:
    on_follower(driver, Drop())
    send_produce(driver, "t", b"a", timeout_ms=120_000)
    driver.advance(REQUEST_TIMEOUT_MS)
    assert not driver.cluster.faults.pending.blocking_responses


def test_a_leader_that_goes_down_answers_nothing_that_it_held_back(driver: Driver) -> None:
    on_follower(driver, Delay(5000))
    send_produce(driver, "t", b"a")
    operator_actions.kill(driver.cluster, 1)
    assert not driver.cluster.faults.pending.blocking_responses
    operator_actions.start(driver.cluster, 1)
    driver.advance(10_000)
    assert driver.partition("t").isr in {(1, 2), (2, 1)}


def test_faults_for_brokers_do_not_hit_clients(driver: Driver) -> None:
    fault = set_fault(driver, "fetch", Refuse(CODE), source="brokers")
    asked = send_produce(driver, "t", b"a")
    assert (asked.done, fault.hits) == (False, 1)
    driver.advance(BACKOFF_MS)
    assert asked.done
