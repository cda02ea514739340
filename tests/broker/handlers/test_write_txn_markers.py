"""WriteTxnMarkers: markers at the leaders of a transaction's partitions."""

from __future__ import annotations

import pytest

from fencepost.broker.node import operator_actions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.write_txn_markers import WriteTxnMarkersResponse
from tests.harness.driver import Asked, Driver, versions
from tests.harness.driver_requests import create, produce
from tests.harness.logs import segmented
from tests.harness.transactions import append_in_transaction, marker, write_markers

NO_ERROR = ErrorCode.NONE


def errors(asked: Asked) -> dict[tuple[int, str, int], int]:
    """The error by producer id, topic and partition."""
    response = asked.response
    assert isinstance(response, WriteTxnMarkersResponse)
    return {
        (each.producer_id, topic.name, partition.partition_index): partition.error_code
        for each in response.markers
        for topic in each.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", versions("write_txn_markers"))
def test_a_marker_ends_a_transaction_in_each_of_its_partitions(version: int) -> None:
    driver = Driver(1)
    create(driver, "t", [(1,), (1,)])
    for index in (0, 1):
        append_in_transaction(driver, "t", (7, 0, 0), b"a", index=index)
    asked = write_markers(driver, marker(7, ("t", (0, 1)), committed=True), version=version)
    assert errors(asked) == {(7, "t", 0): NO_ERROR, (7, "t", 1): NO_ERROR}
    for index in (0, 1):
        assert driver.leader("t", index).last_stable_offset == 2


def test_it_is_answered_when_the_marker_is_committed() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    append_in_transaction(driver, "t", (7, 0, 0), b"a")
    driver.hold(2)
    asked = write_markers(driver, marker(7, ("t", (0,)), committed=True))
    assert not asked.done
    assert (driver.leader("t").high_watermark, driver.leader("t").last_stable_offset) == (1, 0)
    driver.release(2)
    assert errors(asked) == {(7, "t", 0): NO_ERROR}
    assert driver.leader("t").last_stable_offset == 2


def test_a_marker_that_is_not_committed_in_time() -> None:
    driver = Driver(2, {"request.timeout.ms": "700", "replica.lag.time.max.ms": "60000"})
    create(driver, "t", [(1, 2)])
    driver.hold(2)
    asked = write_markers(driver, marker(7, ("t", (0,)), committed=True))
    driver.advance(699)
    assert not asked.done
    driver.advance(1)
    assert errors(asked) == {(7, "t", 0): ErrorCode.REQUEST_TIMED_OUT}


def test_partitions_that_are_not_led_here() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2), (2, 1), (2, 3)])
    asked = write_markers(driver, marker(7, ("t", (0, 1, 2)), ("u", (0,)), committed=False))
    assert errors(asked) == {
        (7, "t", 0): NO_ERROR,
        (7, "t", 1): ErrorCode.NOT_LEADER_OR_FOLLOWER,
        (7, "t", 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (7, "u", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_too_few_in_sync_replicas_take_no_marker() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)], min_insync_replicas="2")
    operator_actions.kill(driver.cluster, 2)
    driver.advance(60_000)
    asked = write_markers(driver, marker(7, ("t", (0,)), committed=False))
    assert errors(asked) == {(7, "t", 0): ErrorCode.NOT_ENOUGH_REPLICAS}
    assert driver.leader("t").log.log_end_offset == 0


def test_an_old_coordinator_and_an_old_producer_are_fenced() -> None:
    driver = Driver(1)
    create(driver, "t")
    append_in_transaction(driver, "t", (7, 1, 0), b"a")

    def send(epoch: int, coordinator_epoch: int, version: int) -> int:
        sent = marker(
            7,
            ("t", (0,)),
            committed=True,
            epoch=epoch,
            coordinator_epoch=coordinator_epoch,
            transaction_version=version,
        )
        return errors(write_markers(driver, sent))[7, "t", 0]

    assert send(0, 5, 1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(1, 5, 2) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(2, 5, 2) == NO_ERROR
    assert send(2, 4, 2) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert driver.leader("t").log.log_end_offset == 2


def test_a_producer_is_answered_once_with_all_its_markers() -> None:
    driver = Driver(1)
    create(driver, "t", [(1,), (1,)])
    asked = write_markers(
        driver,
        marker(7, ("t", (0,)), committed=True),
        marker(8, ("t", (0,)), committed=False),
        marker(7, ("t", (1,)), committed=True),
    )
    assert [each.producer_id for each in asked.response.markers] == [7, 8]
    assert errors(asked) == dict.fromkeys([(7, "t", 0), (7, "t", 1), (8, "t", 0)], NO_ERROR)


def test_no_marker_is_answered_at_once() -> None:
    assert write_markers(Driver(1)).response.markers == ()


@pytest.mark.parametrize("replicas", [(1,), (1, 2)])
def test_committed_transactions_are_forgotten_without_a_consumer(
    replicas: tuple[int, ...],
) -> None:
    driver = Driver(len(replicas))
    create(driver, "t", [replicas])
    for number in range(5):
        append_in_transaction(driver, "t", (7, 0, number), b"a")
        write_markers(driver, marker(7, ("t", (0,)), committed=True))
    for broker_id in replicas:
        transactions = segmented(driver.replica(broker_id, "t").log)._state.producers._transactions
        assert len(transactions.completed) <= 1


def test_a_leader_that_is_deposed_leaves_the_marker_to_its_successor() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    produce(driver, "t", b"a")
    driver.hold(2, 3)
    asked = write_markers(driver, marker(7, ("t", (0,)), committed=True))
    assert not asked.done
    driver.elect("t", 0, 2)
    assert errors(asked) == {(7, "t", 0): ErrorCode.NOT_LEADER_OR_FOLLOWER}
