"""CreatePartitions: topics grow, or say why not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fencepost.broker.node import operator_actions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from fencepost.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.harness.driver import Driver
from tests.harness.driver_requests import create, produce

Result = tuple[str, ErrorCode, str | None]


def topic(
    name: str, count: int, assignments: Sequence[Sequence[int]] | None = None
) -> CreatePartitionsTopic:
    named = None
    if assignments is not None:
        named = tuple(CreatePartitionsAssignment(broker_ids=tuple(a)) for a in assignments)
    return CreatePartitionsTopic(name=name, count=count, assignments=named)


def grow(
    driver: Driver, *topics: CreatePartitionsTopic, validate_only: bool = False, version: int = 3
) -> list[Result]:
    request = CreatePartitionsRequest(topics=topics, validate_only=validate_only)
    results = driver.ask(1, "create_partitions", version, request).results
    return [(r.name, ErrorCode(r.error_code), r.error_message) for r in results]


@pytest.mark.parametrize("version", [0, 3])
def test_a_topic_grows_and_keeps_what_it_has(version: int) -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2)])
    produce(driver, "t", b"kept")
    assert grow(driver, topic("t", 4), version=version) == [("t", ErrorCode.NONE, None)]
    partitions = driver.broker(2).view.topics["t"].partitions
    assert partitions[0].replicas == (1, 2)
    assert [len(partition.replicas) for partition in partitions] == [2, 2, 2, 2]
    assert driver.leader("t", 0).log.log_end_offset == 1
    assert produce(driver, "t", b"new", index=3).base_offset == 0


def test_the_leaders_of_added_partitions_go_on_round_the_brokers() -> None:
    driver = Driver(3)
    create(driver, "t", [(1,)])
    grow(driver, topic("t", 7))
    leaders = [partition.leader for partition in driver.broker(1).view.topics["t"].partitions]
    assert sorted(leaders[1:]) == [1, 1, 2, 2, 3, 3]


def test_partitions_that_can_be_placed_nowhere_are_refused_in_the_placers_words() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3)])
    operator_actions.kill(driver.cluster, 3)
    driver.ask(1, "unregister_broker", 0, UnregisterBrokerRequest(broker_id=3))
    words = (
        "The target replication factor of 3 cannot be reached because only 2 broker(s) are "
        "registered or some brokers have all their log directories cordoned."
    )
    refused = ErrorCode.INVALID_REPLICATION_FACTOR
    assert grow(driver, topic("t", 2)) == [("t", refused, words)]


def test_assignments_name_the_brokers_of_added_partitions() -> None:
    driver = Driver(3)
    create(driver, "t", [(1, 2)])
    assert grow(driver, topic("t", 3, [(3, 1), (2, 3)])) == [("t", ErrorCode.NONE, None)]
    partitions = driver.broker(1).view.topics["t"].partitions
    assert [partition.replicas for partition in partitions] == [(1, 2), (3, 1), (2, 3)]


def test_validate_only_changes_nothing() -> None:
    driver = Driver(1)
    create(driver, "t")
    before = driver.broker(1).view
    assert grow(driver, topic("t", 4), topic("nope", 4), validate_only=True) == [
        ("t", ErrorCode.NONE, None),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
    ]
    assert driver.broker(1).view is before


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (2, "Topic already has 2 partition(s)."),
        (1, "The topic t currently has 2 partition(s); 1 would not be an increase."),
        (-1, "The topic t currently has 2 partition(s); -1 would not be an increase."),
    ],
)
def test_a_topic_never_shrinks(count: int, message: str) -> None:
    driver = Driver(1)
    create(driver, "t", [(1,), (1,)])
    assert grow(driver, topic("t", count)) == [("t", ErrorCode.INVALID_PARTITIONS, message)]


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        (
            [],
            "Attempted to add 2 additional partition(s), but only 0 assignment(s) were specified.",
        ),
        (
            [[1]],
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            [[1], [9]],
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        ([[1], []], "The manual partition assignment includes an empty replica list."),
        ([[2, 2], [1]], "The manual partition assignment includes the broker 2 more than once."),
        (
            [[1, 2], [2, 1]],
            (
                "The manual partition assignment includes a partition with 2 replica(s), but this "
                "is not consistent with previous partitions, which have 1 replica(s)."
            ),
        ),
    ],
)
def test_assignments_that_do_not_fit_are_refused(
    assignments: Sequence[Sequence[int]], message: str
) -> None:
    driver = Driver(2)
    create(driver, "t")
    refused = grow(driver, topic("t", 3, assignments))
    assert refused == [("t", ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)]


def test_a_name_that_stands_twice_is_answered_once_and_does_not_grow() -> None:
    driver = Driver(1)
    create(driver, "t")
    create(driver, "u")
    assert grow(driver, topic("t", 2), topic("u", 2), topic("t", 3)) == [
        ("t", ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
        ("u", ErrorCode.NONE, None),
    ]
    counts = {name: len(t.partitions) for name, t in driver.broker(1).view.topics.items()}
    assert counts == {"t": 1, "u": 2}
