"""What an unclean election loses, whether the old leader is up or down."""

from __future__ import annotations

import pytest

from fencepost.broker.node import operator_actions
from fencepost.broker.node.unclean_elections import LostRecords, lost_records
from tests.broker.node.driven import start
from tests.harness.driver import Driver
from tests.harness.driver_requests import produce


def lagging(*, committed: bytes = b"cd") -> Driver:
    """Broker 3 has the first two of four records, and is out of the ISR."""
    driver = start()
    produce(driver, "t", b"a", b"b")
    operator_actions.hold(driver.cluster, "t", 0, 3, leave_isr=True)
    produce(driver, "t", *(bytes([each]) for each in committed))
    return driver


def test_a_leader_that_is_up_has_what_is_lost() -> None:
    driver = lagging()
    lost = operator_actions.elect(driver.cluster, "t", 0, 3, unclean=True)
    assert lost == LostRecords(
        broker=1, start_offset=2, end_offset=4, records=2, committed_records=2
    )


def test_without_a_leader_the_replica_that_went_farthest_has_it() -> None:
    driver = lagging()
    operator_actions.kill(driver.cluster, 1)
    operator_actions.kill(driver.cluster, 2)
    lost = operator_actions.elect(driver.cluster, "t", 0, 3, unclean=True)
    assert lost == LostRecords(
        broker=2, start_offset=2, end_offset=4, records=2, committed_records=2
    )


def test_what_was_not_committed_is_counted_apart() -> None:
    driver = lagging()
    operator_actions.hold(driver.cluster, "t", 0, 2)
    produce(driver, "t", b"e", acks=1)
    lost = operator_actions.elect(driver.cluster, "t", 0, 3, unclean=True)
    assert lost is not None
    assert (lost.records, lost.committed_records) == (3, 2)


def test_a_log_without_a_record_loses_all() -> None:
    driver = lagging()
    operator_actions.wipe(driver.cluster, "t", 0, 3)
    lost = lost_records(driver.cluster, "t", 0, 3)
    assert lost is not None
    assert (lost.start_offset, lost.end_offset) == (0, 4)


@pytest.mark.parametrize("leader", [1, 2])
def test_a_replica_that_has_everything_loses_nothing(leader: int) -> None:
    driver = lagging()
    assert operator_actions.elect(driver.cluster, "t", 0, leader, unclean=True) is None
