"""The checks before the work, in their order."""

from __future__ import annotations

import pytest

from fencepost.broker.replication.partition_checks import find_leader, find_replica
from fencepost.protocol.errors import ErrorCode
from tests.harness.driver import Driver
from tests.harness.driver_requests import create


@pytest.fixture(scope="module")
def driver() -> Driver:
    """Topic t on brokers 1 and 2 of three; 1 leads in epoch 2."""
    made = Driver(3)
    create(made, "t", [(1, 2)])
    made.elect("t", 0, 2)
    made.elect("t", 0, 1)
    return made


@pytest.mark.parametrize(
    ("broker_id", "topic", "index", "epoch", "code"),
    [
        (1, "nope", 0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (1, "t", 1, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (1, "t", -1, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (3, "t", 0, 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (3, "t", 0, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (2, "t", 0, 1, ErrorCode.FENCED_LEADER_EPOCH),
        (2, "t", 0, 3, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (1, "t", 0, 1, ErrorCode.FENCED_LEADER_EPOCH),
        (1, "t", 0, -2, ErrorCode.FENCED_LEADER_EPOCH),
        (1, "t", 0, 3, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_who_is_refused(
    driver: Driver, broker_id: int, topic: str, index: int, epoch: int, code: ErrorCode
) -> None:
    broker = driver.broker(broker_id)
    assert find_replica(broker, topic, index, epoch) is code
    assert find_leader(broker, topic, index, epoch) is code


@pytest.mark.parametrize("epoch", [-1, 2])
def test_who_is_found(driver: Driver, epoch: int) -> None:
    assert find_leader(driver.broker(1), "t", 0, epoch) is driver.replica(1, "t")
    assert find_replica(driver.broker(2), "t", 0, epoch) is driver.replica(2, "t")
    assert find_leader(driver.broker(2), "t", 0, epoch) is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("epoch", [0, 9])
def test_clients_of_the_old_message_format_know_no_epoch_and_brokers_do(epoch: int) -> None:
    driver = Driver(2)
    create(driver, "old", [(1, 2)], message_format_version="0.10.2")
    driver.elect("old", 0, 2)
    found = find_leader(driver.broker(2), "old", 0, epoch)
    assert found is driver.replica(2, "old")
    refused = find_leader(driver.broker(2), "old", 0, epoch, is_broker=True)
    assert refused is (
        ErrorCode.FENCED_LEADER_EPOCH if epoch == 0 else ErrorCode.UNKNOWN_LEADER_EPOCH
    )
