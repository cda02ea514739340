"""``auto.leader.rebalance.enable``: whether a leadership goes back to the preferred leader."""

from __future__ import annotations

import pytest

from fencepost.broker.controller.leader_balance import ELECTIONS_IN_A_TURN
from fencepost.broker.node import operator_actions
from fencepost.broker.node.cluster import Conformance
from tests.harness.driver import Driver
from tests.harness.driver_requests import create

ENABLED = {"auto.leader.rebalance.enable": "true"}


def moved(driver: Driver) -> None:
    """A topic of brokers 1 and 2 that 2 leads."""
    create(driver, "t", [(1, 2)])
    operator_actions.elect(driver.cluster, "t", 0, 2, unclean=False)
    assert leader(driver) == 2


def leader(driver: Driver) -> int:
    return driver.cluster.controller.image.topics["t"].partitions[0].leader


@pytest.mark.parametrize(
    ("configs", "conformance"), [(ENABLED, Conformance.KIP), ({}, Conformance.APACHE)]
)
def test_where_it_is_on_it_goes_back_after_the_interval(
    configs: dict[str, str], conformance: Conformance
) -> None:
    driver = Driver(2, {**configs, "leader.imbalance.check.interval.seconds": "7"}, conformance)
    moved(driver)
    driver.advance(6999)
    assert leader(driver) == 2
    driver.advance(1)
    assert leader(driver) == 1
    operator_actions.elect(driver.cluster, "t", 0, 2, unclean=False)
    driver.advance(7000)
    assert leader(driver) == 1, "it is looked after again and again"


@pytest.mark.parametrize(
    ("configs", "conformance"),
    [({}, Conformance.KIP), ({"auto.leader.rebalance.enable": "false"}, Conformance.APACHE)],
)
def test_where_it_is_off_it_stays(configs: dict[str, str], conformance: Conformance) -> None:
    driver = Driver(2, configs, conformance)
    moved(driver)
    driver.advance(700_000)
    assert leader(driver) == 2


def test_a_preferred_leader_that_is_away_is_not_elected() -> None:
    driver = Driver(2, {**ENABLED, "leader.imbalance.check.interval.seconds": "1"})
    create(driver, "t", [(1, 2)])
    operator_actions.stop(driver.cluster, 1)
    driver.advance(5000)
    assert leader(driver) == 2
    operator_actions.start(driver.cluster, 1)
    driver.advance(2000)
    assert leader(driver) == 1


def test_very_many_go_back_in_several_turns() -> None:
    driver = Driver(2, {**ENABLED, "leader.imbalance.check.interval.seconds": "1"})
    many = 3 * ELECTIONS_IN_A_TURN
    create(driver, "t", [(1, 2)] * many)
    operator_actions.kill(driver.cluster, 1)
    operator_actions.start(driver.cluster, 1)

    def led_by_first() -> int:
        partitions = driver.cluster.controller.image.topics["t"].partitions
        return sum(partition.leader == 1 for partition in partitions)

    assert led_by_first() == 0
    driver.clock.move_to(driver.clock.now_ms() + 1000)
    turns = []
    while driver.cluster.scheduler.run_turn():
        turns.append(led_by_first())
    assert turns == [2 * ELECTIONS_IN_A_TURN], "one part as it begins, one that had a turn to come"
    assert led_by_first() == many
    for index in range(many):
        assert driver.replica(1, "t", index).is_leader
        assert not driver.replica(2, "t", index).is_leader
