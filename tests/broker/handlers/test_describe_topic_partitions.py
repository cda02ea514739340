"""DescribeTopicPartitions: pages, cursors, and what is not there."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fencepost.broker.node import operator_actions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tests.harness.driver import Driver
from tests.harness.driver_requests import create

Place = tuple[str, int]
"""A topic's name and a partition's index."""


def describe(
    driver: Driver, names: Sequence[str] = (), limit: int = 2000, cursor: Place | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in names),
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    response = driver.ask(1, "describe_topic_partitions", 0, request)
    assert isinstance(response, DescribeTopicPartitionsResponse)
    return response


def page(response: DescribeTopicPartitionsResponse) -> tuple[list[Place], Place | None]:
    """The partitions of an answer, and where the next one begins."""
    places = [(t.name or "", p.partition_index) for t in response.topics for p in t.partitions]
    cursor = response.next_cursor
    return places, None if cursor is None else (cursor.topic_name, cursor.partition_index)


def errors(response: DescribeTopicPartitionsResponse) -> list[tuple[str | None, ErrorCode]]:
    return [(topic.name, ErrorCode(topic.error_code)) for topic in response.topics]


@pytest.fixture
def three() -> Driver:
    """Topics t1, t2 and t3 of three partitions each, created out of order."""
    driver = Driver(3)
    for name in ("t3", "t1", "t2"):
        create(driver, name, [(1, 2), (2, 3), (3, 1)])
    return driver


def test_a_partition_is_described_in_full(three: Driver) -> None:
    three.elect("t1", 0, 2)
    (topic,) = describe(three, ["t1"]).topics
    assert topic.topic_id == three.broker(1).view.topics["t1"].topic_id
    assert (topic.is_internal, topic.topic_authorized_operations) == (False, 3576)
    first = topic.partitions[0]
    assert (first.leader_id, first.leader_epoch) == (2, 1)
    assert (first.replica_nodes, first.isr_nodes) == ((1, 2), (1, 2))
    # Null here ends the Java admin client with an exception.
    assert (first.eligible_leader_replicas, first.last_known_elr) == ((), ())
    assert first.offline_replicas == ()


def test_eligible_leaders_outside_the_isr_are_told_and_who_is_offline() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)], min_insync_replicas="2")
    for broker_id in (2, 3):
        operator_actions.kill(driver.cluster, broker_id)
    (topic,) = describe(driver, ["t"]).topics
    (partition,) = topic.partitions
    assert (partition.leader_id, partition.replica_nodes) == (1, (1, 2, 3))
    assert (partition.isr_nodes, partition.offline_replicas) == ((1,), (2, 3))
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ((3,), ())


def test_who_led_last_is_told_where_nobody_is_eligible_and_no_leader_is_no_error() -> None:
    driver = Driver(3)
    create(driver, "t", [(3, 2)], min_insync_replicas="2")
    for broker_id in (2, 3):
        operator_actions.kill(driver.cluster, broker_id)
    (topic,) = describe(driver, ["t"]).topics
    (partition,) = topic.partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.NONE, -1)
    assert (partition.isr_nodes, partition.offline_replicas) == ((), (3, 2))
    image = driver.partition("t")
    assert partition.eligible_leader_replicas == image.elr
    assert partition.last_known_elr == image.last_known_elr
    assert image.elr or image.last_known_elr


def test_topics_come_in_order_each_once_and_all_where_none_is_named(three: Driver) -> None:
    everything = [(f"t{n}", index) for n in (1, 2, 3) for index in range(3)]
    assert page(describe(three)) == (everything, None)
    assert page(describe(three, ["t2", "t1", "t2"])) == (everything[:6], None)


@pytest.mark.parametrize(
    ("limit", "size", "cursor"),
    [
        (9, 9, None),
        (8, 8, ("t3", 2)),
        (4, 4, ("t2", 1)),
        (3, 3, ("t2", 0)),
        (1, 1, ("t1", 1)),
        (0, 1, ("t1", 1)),
        (-1, 1, ("t1", 1)),
    ],
)
def test_a_page_ends_at_the_limit(
    three: Driver, limit: int, size: int, cursor: Place | None
) -> None:
    places, following = page(describe(three, limit=limit))
    assert (len(places), following) == (size, cursor)


@pytest.mark.parametrize("names", [(), ("t1", "t2", "t3")])
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 100])
def test_page_by_page_everything_comes_once(
    three: Driver, limit: int, names: Sequence[str]
) -> None:
    seen: list[Place] = []
    cursor: Place | None = None
    while True:
        places, cursor = page(describe(three, names, limit, cursor))
        assert 0 < len(places) <= limit
        seen += places
        if cursor is None:
            break
    assert seen == [(f"t{n}", index) for n in (1, 2, 3) for index in range(3)]


def test_the_brokers_own_limit_holds_too() -> None:
    driver = Driver(1, {"max.request.partition.size.limit": "2"})
    create(driver, "t", [(1,), (1,), (1,)])
    assert page(describe(driver)) == ([("t", 0), ("t", 1)], ("t", 2))


def test_topics_that_are_not_there_take_no_room(three: Driver) -> None:
    answer = describe(three, ["a", "t1", "t15", "u v"], limit=4)
    assert errors(answer) == [
        ("a", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t1", ErrorCode.NONE),
        ("t15", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("u v", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]
    assert answer.next_cursor is None
    full = describe(three, ["t1", "t15"], limit=3)
    assert page(full)[1] == ("t15", 0)


def test_a_cursor_may_point_behind_a_topics_end_or_at_a_topic_that_went(three: Driver) -> None:
    beyond = describe(three, ["t1", "t2"], cursor=("t1", 9))
    assert [(t.name, len(t.partitions)) for t in beyond.topics] == [("t1", 0), ("t2", 3)]
    largest = describe(three, ["t1"], limit=2, cursor=("t1", 2**31 - 1))
    assert page(largest) == ([], ("t1", -(2**31) + 1)), "as Kafka's sum overflows"
    gone = describe(three, cursor=("t15", 1))
    assert page(gone)[0][0] == ("t2", 0)
    named = describe(three, ["t15", "t3"], cursor=("t15", 1))
    assert errors(named) == [
        ("t15", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t3", ErrorCode.NONE),
    ]


@pytest.mark.parametrize("cursor", [("t1", -1), ("t2", 1), ("", 0), ("t9", 0)])
def test_a_cursor_that_is_of_another_request_is_refused(three: Driver, cursor: Place) -> None:
    answer = describe(three, ["t3", "t1"], cursor=cursor)
    assert errors(answer) == [
        ("t3", ErrorCode.INVALID_REQUEST),
        ("t1", ErrorCode.INVALID_REQUEST),
    ]


def test_a_nameless_topic_fails_the_request_as_at_a_real_broker(three: Driver) -> None:
    assert errors(describe(three, ["", "t1"])) == [
        ("", ErrorCode.UNKNOWN_SERVER_ERROR),
        ("t1", ErrorCode.UNKNOWN_SERVER_ERROR),
    ]


def test_a_nameless_topic_at_the_cursor_is_an_illegal_one(three: Driver) -> None:
    answer = describe(three, ["", "t1"], cursor=("", 2))
    assert errors(answer) == [("", ErrorCode.INVALID_TOPIC_EXCEPTION), ("t1", ErrorCode.NONE)]


def test_a_nameless_topic_before_the_cursor_is_passed_over(three: Driver) -> None:
    assert errors(describe(three, ["", "t1"], cursor=("t1", 0))) == [("t1", ErrorCode.NONE)]
