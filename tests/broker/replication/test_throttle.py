"""Throttled replication (KIP-73): a follower that is out of sync catches up at a rate."""

from __future__ import annotations

from typing import Final

import pytest

from fencepost.broker.node import operator_actions
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, produce
from tests.harness.records import batch

VALUE: Final = bytes(900)
SIZE: Final = len(batch(VALUE))
BATCHES: Final = 10
WINDOWS: Final = {
    "replication.quota.window.num": "2",
    "replica.fetch.max.bytes": str(SIZE),
    "replica.fetch.response.max.bytes": str(SIZE),
}
"""A burst of one second, and a batch in each fetch."""
ALL_AT_ONCE: Final = dict.fromkeys(WINDOWS, "1000000") | {"replication.quota.window.num": "2"}
RATE: Final = str(SIZE)
"""A batch a second."""


def lagging(side: str, replicas: str, rates: dict[int, str], **configs: str) -> Driver:
    """A cluster whose broker 2 has just started, and lacks all records of the topic."""
    driver = Driver(2, {**WINDOWS, **configs})
    config = f"{side}_replication_throttled_replicas"
    create(driver, "t", [(1, 2)], **{config: replicas})
    operator_actions.kill(driver.cluster, 2)
    driver.advance(60_000)
    for _ in range(BATCHES):
        produce(driver, "t", VALUE, acks=1)
    for broker_id, rate in rates.items():
        driver.cluster.controller.set_broker_configs(
            broker_id, {f"{side}.replication.throttled.rate": rate}
        )
    operator_actions.start(driver.cluster, 2)
    driver.cluster.scheduler.run_due()
    return driver


def follower_end(driver: Driver) -> int:
    return driver.cluster.brokers[2].replicas["t", 0].log.log_end_offset


def isr(driver: Driver) -> set[int]:
    return set(driver.cluster.controller.image.topics["t"].partitions[0].isr)


@pytest.mark.parametrize(
    ("side", "replicas", "broker_id"),
    [
        ("follower", "0:2", 2),
        ("follower", "*", 2),
        ("leader", "0:1", 1),
        ("leader", "*", 1),
    ],
)
def test_a_throttled_follower_catches_up_at_the_rate_and_then_is_in_sync(
    side: str, replicas: str, broker_id: int
) -> None:
    driver = lagging(side, replicas, {broker_id: RATE})
    burst = follower_end(driver)
    assert 0 < burst < 4
    driver.advance(4000)
    assert burst + 2 <= follower_end(driver) <= burst + 5
    assert isr(driver) == {1}
    driver.advance(20_000)
    assert follower_end(driver) == BATCHES
    assert isr(driver) == {1, 2}


@pytest.mark.parametrize(
    ("side", "replicas", "rates"),
    [
        ("follower", "0:1", {1: RATE, 2: RATE}),
        ("follower", "1:2", {2: RATE}),
        ("follower", "0:2", {1: RATE}),
        ("leader", "0:2", {1: RATE, 2: RATE}),
        ("leader", "0:1", {2: RATE}),
        ("leader", "*", {1: "1000000"}),
    ],
)
def test_without_a_rate_of_the_throttled_replica_it_catches_up_at_once(
    side: str, replicas: str, rates: dict[int, str]
) -> None:
    driver = lagging(side, replicas, rates)
    assert follower_end(driver) == BATCHES
    assert isr(driver) == {1, 2}


def test_a_follower_in_sync_is_not_held_back() -> None:
    driver = lagging("follower", "*", {2: "1000000"})
    driver.cluster.controller.set_broker_configs(2, {"follower.replication.throttled.rate": "1"})
    for _ in range(5):
        produce(driver, "t", VALUE)
    assert follower_end(driver) == BATCHES + 5


@pytest.mark.parametrize(("side", "broker_id"), [("follower", 2), ("leader", 1)])
def test_when_the_rate_rises_it_goes_on_within_the_backoff(side: str, broker_id: int) -> None:
    driver = lagging(side, "*", {broker_id: "1"})
    assert follower_end(driver) < BATCHES
    driver.cluster.controller.set_broker_configs(broker_id, {})
    driver.advance(1000)
    assert follower_end(driver) == BATCHES
    assert isr(driver) == {1, 2}


def test_a_follower_that_has_got_all_at_once_joins_the_isr_however_far_above_the_rate() -> None:
    driver = lagging("follower", "*", {2: "1"}, **ALL_AT_ONCE)
    assert follower_end(driver) == BATCHES
    assert isr(driver) == {1, 2}


def test_without_a_rate_it_catches_up_soon() -> None:
    driver = lagging("follower", "*", {2: "100"})
    before = follower_end(driver)
    driver.cluster.controller.set_broker_configs(2, {})
    driver.advance(60_000)
    assert before < follower_end(driver) == BATCHES
