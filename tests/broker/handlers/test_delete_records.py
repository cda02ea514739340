"""DeleteRecords: log starts move here, and then on the followers."""

from __future__ import annotations

import pytest

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.harness.driver import Asked, Driver, versions
from tests.harness.driver_requests import create, fetch, list_offset, produce
from tests.harness.typed_requests import values

EARLIEST = -2


def send(
    driver: Driver,
    *asked: tuple[str, int, int],
    broker_id: int = 1,
    timeout_ms: int = 1000,
    version: int = 2,
) -> Asked:
    """Topic names, partition indexes and offsets."""
    request = DeleteRecordsRequest(
        timeout_ms=timeout_ms,
        topics=tuple(
            DeleteRecordsTopic(
                name=name,
                partitions=(DeleteRecordsPartition(partition_index=index, offset=offset),),
            )
            for name, index, offset in asked
        ),
    )
    return driver.send(broker_id, "delete_records", version, request)


def answered(asked: Asked) -> DeleteRecordsPartitionResult:
    ((partition,),) = (topic.partitions for topic in asked.response.topics)
    assert isinstance(partition, DeleteRecordsPartitionResult)
    return partition


def delete(driver: Driver, topic: str, offset: int, index: int = 0) -> tuple[int, ErrorCode]:
    """The low watermark and the error."""
    result = answered(send(driver, (topic, index, offset)))
    return result.low_watermark, ErrorCode(result.error_code)


def five_records(driver: Driver, topic: str) -> None:
    for n in range(5):
        produce(driver, topic, b"%d" % n)


@pytest.mark.parametrize("version", versions("delete_records"))
def test_records_before_the_offset_are_gone_on_every_replica(version: int) -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    five_records(driver, "t")
    result = answered(send(driver, ("t", 0, 3), version=version))
    assert (result.low_watermark, result.error_code) == (3, ErrorCode.NONE)
    assert [driver.replica(b, "t").log.log_start_offset for b in (1, 2, 3)] == [3, 3, 3]
    assert list_offset(driver, "t", EARLIEST).offset == 3
    assert fetch(driver, "t", 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert values(fetch(driver, "t", 3)) == [b"3", b"4"]


def test_minus_one_is_the_high_watermark() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    five_records(driver, "t")
    driver.hold(2)
    produce(driver, "t", b"not committed", acks=1)
    asked = send(driver, ("t", 0, -1))
    driver.release(2)
    result = answered(asked)
    assert (result.low_watermark, result.error_code) == (5, ErrorCode.NONE)


def test_an_earlier_offset_answers_where_the_log_starts_already() -> None:
    driver = Driver(1)
    create(driver, "t")
    five_records(driver, "t")
    assert delete(driver, "t", 4) == (4, ErrorCode.NONE)
    assert delete(driver, "t", 1) == (4, ErrorCode.NONE)
    assert delete(driver, "t", 5) == (5, ErrorCode.NONE)


@pytest.mark.parametrize("offset", [6, -2])
def test_an_offset_out_of_range_deletes_nothing(offset: int) -> None:
    driver = Driver(1)
    create(driver, "t")
    five_records(driver, "t")
    assert delete(driver, "t", offset) == (-1, ErrorCode.OFFSET_OUT_OF_RANGE)
    assert driver.replica(1, "t").log.log_start_offset == 0


def test_nothing_beyond_the_high_watermark_may_go() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    driver.hold(2)
    produce(driver, "t", b"not committed", acks=1)
    assert delete(driver, "t", 1) == (-1, ErrorCode.OFFSET_OUT_OF_RANGE)


def test_a_held_follower_makes_it_wait_and_its_return_completes_it() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    five_records(driver, "t")
    driver.hold(3)
    asked = send(driver, ("t", 0, 2), timeout_ms=1000)
    driver.advance(999)
    assert not asked.done
    assert fetch(driver, "t", 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    driver.release(3)
    result = answered(asked)
    assert (result.low_watermark, result.error_code) == (2, ErrorCode.NONE)


def test_a_follower_that_stays_away_makes_it_time_out() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    five_records(driver, "t")
    driver.hold(3)
    asked = send(driver, ("t", 0, 2), timeout_ms=1000)
    driver.advance(1000)
    result = answered(asked)
    assert (result.low_watermark, result.error_code) == (0, ErrorCode.REQUEST_TIMED_OUT)


def test_another_leader_ends_the_wait() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    five_records(driver, "t")
    driver.hold(3)
    asked = send(driver, ("t", 0, 2))
    driver.elect("t", 0, 2)
    result = answered(asked)
    assert (result.low_watermark, result.error_code) == (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_the_same_leader_in_a_new_epoch_goes_on_waiting() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    five_records(driver, "t")
    driver.hold(3)
    asked = send(driver, ("t", 0, 2))
    driver.elect("t", 0, 1)
    driver.advance(500)
    driver.release(3)
    assert answered(asked).error_code == ErrorCode.NONE


def test_of_a_partition_named_twice_the_last_offset_counts() -> None:
    driver = Driver(1)
    create(driver, "t")
    create(driver, "u")
    for topic in ("t", "u"):
        five_records(driver, topic)
    response = send(driver, ("t", 0, 4), ("u", 0, 1), ("t", 0, 2)).response
    assert [(t.name, [p.low_watermark for p in t.partitions]) for t in response.topics] == [
        ("t", [2]),
        ("u", [1]),
    ]


def test_partitions_that_are_not_here_are_refused() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2), (2, 3)])
    assert delete(driver, "nope", 0) == (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert delete(driver, "t", 0, index=9) == (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert delete(driver, "t", 0, index=1) == (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    follower = answered(send(driver, ("t", 0, 0), broker_id=2))
    assert follower.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ("compact", ErrorCode.POLICY_VIOLATION),
        ("compact,delete", ErrorCode.NONE),
        ("delete", ErrorCode.NONE),
    ],
)
def test_topics_that_are_only_compacted_keep_their_records(policy: str, code: ErrorCode) -> None:
    driver = Driver(1)
    create(driver, "t", cleanup_policy=policy)
    five_records(driver, "t")
    assert delete(driver, "t", 2)[1] == code


def test_kafkas_own_topics_keep_their_records() -> None:
    driver = Driver(1)
    create(driver, "__consumer_offsets")
    assert delete(driver, "__consumer_offsets", 0) == (-1, ErrorCode.INVALID_TOPIC_EXCEPTION)


def test_a_follower_that_was_away_starts_where_the_leader_does() -> None:
    driver = Driver(2)
    create(driver, "t", [(1, 2)])
    driver.hold(2)
    five = [produce(driver, "t", b"%d" % n, acks=1).base_offset for n in range(5)]
    assert five == [0, 1, 2, 3, 4]
    driver.release(2)
    asked = send(driver, ("t", 0, 4))
    assert answered(asked).low_watermark == 4
    follower = driver.replica(2, "t")
    assert (follower.log.log_start_offset, follower.log.log_end_offset) == (4, 5)
    assert follower.high_watermark == 5
