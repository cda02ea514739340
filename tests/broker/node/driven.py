"""A cluster of three brokers, with one topic, for the tests of the operator's actions."""

from __future__ import annotations

from fencepost.broker.replication.follower.steps import Hold
from tests.harness.driver import Driver
from tests.harness.driver_requests import create


def start(brokers: int = 3, **configs: str) -> Driver:
    driver = Driver(brokers, {name.replace("_", "."): value for name, value in configs.items()})
    create(driver, "t", [tuple(range(1, brokers + 1))])
    return driver


def log_end(driver: Driver, broker_id: int) -> int:
    return driver.replica(broker_id, "t").log.log_end_offset


def all_holds(driver: Driver) -> dict[int, dict[tuple[str, int], Hold]]:
    return {b: dict(broker.replica_manager.holds) for b, broker in driver.cluster.brokers.items()}
