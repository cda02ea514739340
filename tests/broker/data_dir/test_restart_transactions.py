"""Transactions of a cluster in files, by what the next process knows of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.node import operator_actions
from fencepost.protocol.messages.fetch import PartitionData
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, produce
from tests.harness.durable_driver import DurableDriver, End
from tests.harness.transactions import append_in_transaction, marker, write_markers
from tests.harness.typed_requests import fetch_request, fetched, from_offset, values


def fetch(driver: Driver, offset: int) -> PartitionData:
    request = replace(fetch_request(("t", from_offset(offset))), isolation_level=1)
    return fetched(driver.ask(driver.leader("t").broker_id, "fetch", 12, request))


def aborted(answer: PartitionData) -> list[tuple[int, int]]:
    found = answer.aborted_transactions
    return [(each.producer_id, each.first_offset) for each in found or ()]


def write(driver: Driver) -> None:
    """Producer 7 aborts over two segments, 8 commits, 9 is open."""
    append_in_transaction(driver, "t", (7, 0, 0), b"aborted")
    append_in_transaction(driver, "t", (8, 0, 0), b"committed")
    operator_actions.roll(driver.cluster, "t", 0)
    append_in_transaction(driver, "t", (7, 0, 1), b"aborted")
    leader = driver.leader("t").broker_id
    write_markers(driver, marker(7, ("t", (0,)), committed=False), broker_id=leader)
    write_markers(driver, marker(8, ("t", (0,)), committed=True), broker_id=leader)
    operator_actions.roll(driver.cluster, "t", 0)
    append_in_transaction(driver, "t", (9, 0, 0), b"open")
    produce(driver, "t", b"behind")


@pytest.mark.parametrize("end", [DurableDriver.stop, DurableDriver.kill, DurableDriver.lose_power])
def test_transactions_outlive_the_process(end: End) -> None:
    lasting = DurableDriver(3, sync=True, log_flush_interval_messages="1")
    driver = lasting.driver
    create(driver, "t", [(1, 2, 3)])
    write(driver)
    before = [each.txn_first_offset for each in driver.leader("t").log.producers()]
    end(lasting)
    driver = lasting.begin()
    driver.advance(1_000)
    answer = fetch(driver, 1)
    assert (answer.last_stable_offset, answer.high_watermark) == (5, 7)
    assert (values(answer)[0], aborted(answer)) == (b"committed", [(7, 0)])
    assert [each.txn_first_offset for each in driver.leader("t").log.producers()] == before
    leader = driver.leader("t").broker_id
    write_markers(driver, marker(9, ("t", (0,)), committed=False), broker_id=leader)
    assert fetch(driver, 5).last_stable_offset == 8
    assert aborted(fetch(driver, 5)) == [(9, 5)]


def test_a_replica_that_has_lost_its_disk_learns_the_transactions_again() -> None:
    lasting = DurableDriver(2)
    driver = lasting.driver
    create(driver, "t", [(1, 2)])
    write(driver)
    operator_actions.wipe(driver.cluster, "t", 0, 2)
    driver.advance(1_000)
    leader, other = driver.replica(1, "t").log, driver.replica(2, "t").log
    assert other.aborted_transactions(0, 10) == leader.aborted_transactions(0, 10) != ()
    assert other.last_stable_offset(7) == leader.last_stable_offset(7) == 5


def test_a_deleted_topic_leaves_no_transaction_behind() -> None:
    lasting = DurableDriver(1)
    driver = lasting.driver
    create(driver, "t")
    write(driver)
    driver.cluster.controller.delete_topics(["t"])
    driver.cluster.scheduler.run_due()
    create(driver, "t")
    assert fetch(driver, 0).last_stable_offset == 0
    assert driver.leader("t").log.producers() == ()
