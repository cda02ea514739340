"""OffsetForLeaderEpoch: where epochs end, as soon as the next one is elected."""

from __future__ import annotations

import pytest

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.harness.driver import Driver, versions
from tests.harness.driver_requests import create, produce


def end(
    driver: Driver,
    epoch: int,
    *,
    broker_id: int | None = None,
    current: int = -1,
    topic: str = "t",
    version: int = 4,
) -> EpochEndOffset:
    partition = OffsetForLeaderPartition(
        partition=0, current_leader_epoch=current, leader_epoch=epoch
    )
    request = OffsetForLeaderEpochRequest(
        topics=(OffsetForLeaderTopic(topic=topic, partitions=(partition,)),)
    )
    leader = driver.leader("t").broker_id if broker_id is None else broker_id
    response = driver.ask(leader, "offset_for_leader_epoch", version, request)
    ((found,),) = (answer.partitions for answer in response.topics)
    assert isinstance(found, EpochEndOffset)
    return found


def place(driver: Driver, epoch: int) -> tuple[int, int]:
    found = end(driver, epoch)
    assert found.error_code == ErrorCode.NONE
    return found.leader_epoch, found.end_offset


def test_an_epoch_ends_where_the_next_begins_and_gaps_belong_to_the_one_before() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    produce(driver, "t", b"a", b"b")
    for leader in (2, 3, 1):
        driver.elect("t", 0, leader)
    produce(driver, "t", b"c")
    driver.elect("t", 0, 2)
    assert place(driver, 0) == (0, 2)
    assert place(driver, 3) == (3, 3)
    assert place(driver, 4) == (4, 3)
    assert place(driver, 5) == (-1, -1)


def test_a_new_epoch_is_known_before_its_first_batch() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    produce(driver, "t", b"a")
    driver.elect("t", 0, 2)
    assert place(driver, 0) == (0, 1)
    assert place(driver, 1) == (1, 1)


def test_the_current_epoch_ends_at_the_log_end_committed_or_not() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    driver.hold(2)
    produce(driver, "t", b"a", acks=1)
    assert place(driver, 0) == (0, 1)


@pytest.mark.parametrize("version", versions("offset_for_leader_epoch"))
@pytest.mark.parametrize(
    ("current", "code"),
    [
        (-1, ErrorCode.NONE),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (1, ErrorCode.NONE),
        (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_the_epoch_that_a_client_knows_is_checked(
    version: int, current: int, code: ErrorCode
) -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    driver.elect("t", 0, 2)
    assert end(driver, 0, current=current, version=version).error_code == code


def test_only_the_leader_answers() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2)])
    for broker_id in (2, 3):
        refused = end(driver, 0, broker_id=broker_id)
        assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (refused.leader_epoch, refused.end_offset) == (-1, -1)
    unknown = end(driver, 0, topic="nope")
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
