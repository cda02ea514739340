"""DescribeProducers: the idempotent producers of partitions of which there is a replica."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    PartitionResponse,
    TopicRequest,
)
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, produce
from tests.harness.records import TIMESTAMP, batch
from tests.harness.typed_requests import produce_request


def describe(driver: Driver, topic: str, index: int = 0, broker_id: int = 1) -> PartitionResponse:
    request = DescribeProducersRequest(
        topics=(TopicRequest(name=topic, partition_indexes=(index,)),)
    )
    response = driver.ask(broker_id, "describe_producers", 0, request)
    ((partition,),) = (topic.partitions for topic in response.topics)
    assert isinstance(partition, PartitionResponse)
    return partition


def produce_as(driver: Driver, producer: tuple[int, int, int], *values: bytes) -> None:
    records = batch(*values, producer=producer)
    driver.ask(1, "produce", 12, produce_request(("t", 0, records), acks=1))


def test_producers_by_id_with_their_last_sequence_and_timestamp() -> None:
    driver = Driver(1)
    create(driver, "t")
    produce(driver, "t", b"without an id")
    produce_as(driver, (4000, 2, 0), b"a", b"b", b"c")
    produce_as(driver, (3999, 0, 0), b"d")
    produce_as(driver, (4000, 2, 3), b"e")
    found = describe(driver, "t")
    assert (found.error_code, found.error_message) == (ErrorCode.NONE, None)
    assert [
        (p.producer_id, p.producer_epoch, p.last_sequence, p.last_timestamp)
        for p in found.active_producers
    ] == [(3999, 0, 0, TIMESTAMP), (4000, 2, 3, TIMESTAMP)]
    assert {(p.coordinator_epoch, p.current_txn_start_offset) for p in found.active_producers} == {
        (-1, -1)
    }


def test_silent_producers_are_forgotten() -> None:
    key = "producer.id.expiration.check.interval.ms"
    driver = Driver(1, {"producer.id.expiration.ms": "5000", key: "500"})
    create(driver, "t")
    produce_as(driver, (1, 0, 0), b"a")
    assert len(describe(driver, "t").active_producers) == 1
    driver.advance(6_000)
    assert describe(driver, "t").active_producers == ()


def test_a_follower_answers_from_its_own_replica() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    produce_as(driver, (7, 0, 0), b"a")
    driver.hold(3)
    produce_as(driver, (7, 0, 1), b"b")
    produce_as(driver, (8, 1, 0), b"c")
    found = {broker_id: describe(driver, "t", broker_id=broker_id) for broker_id in (1, 2, 3)}
    assert {answer.error_code for answer in found.values()} == {ErrorCode.NONE}
    seen = {
        broker_id: [(p.producer_id, p.last_sequence) for p in answer.active_producers]
        for broker_id, answer in found.items()
    }
    assert seen == {1: [(7, 1), (8, 0)], 2: [(7, 1), (8, 0)], 3: [(7, 0)]}


def test_what_cannot_be_described() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2), (2, 3)])
    unknown = "This server does not host this topic-partition."
    illegal = "Topic name is invalid: the empty string is not allowed"
    asked = {
        ("nope", 0, 1): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, unknown),
        ("t", 9, 1): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        ("", 0, 1): (ErrorCode.INVALID_TOPIC_EXCEPTION, illegal),
        ("t", 1, 1): (ErrorCode.NOT_LEADER_OR_FOLLOWER, None),
        ("t", 0, 3): (ErrorCode.NOT_LEADER_OR_FOLLOWER, None),
    }
    found = {place: describe(driver, *place) for place in asked}
    assert {p: (r.error_code, r.error_message) for p, r in found.items()} == asked
