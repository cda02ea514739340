"""FindCoordinator, beyond what Apache Kafka's recorded answers show (tests/broker/groups)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.broker.coordinator import partition_for
from fencepost.broker.groups.group_coordinator import OFFSETS_TOPIC
from fencepost.broker.handlers import find_coordinator
from fencepost.broker.metadata.image import NO_LEADER, ClusterImage
from fencepost.broker.node.broker import Broker
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
)
from tests.harness.driver import Driver

KEYS = tuple(f"group-{n}" for n in range(20))


def find(driver: Driver, *keys: str, broker: int = 1) -> tuple[Coordinator, ...]:
    request = FindCoordinatorRequest(coordinator_keys=keys)
    coordinators: tuple[Coordinator, ...] = driver.ask(
        broker, "find_coordinator", 6, request
    ).coordinators
    return coordinators


def test_the_first_request_creates_the_offsets_topic_as_the_configs_say() -> None:
    driver = Driver(3, {"offsets.topic.num.partitions": "7"})
    assert OFFSETS_TOPIC not in driver.broker(1).view.topics
    (found,) = find(driver, "g")
    assert found.error_code == ErrorCode.NONE
    view = driver.broker(1).view
    topic = view.topics[OFFSETS_TOPIC]
    assert len(topic.partitions) == 7
    assert {len(partition.replicas) for partition in topic.partitions} == {3}
    assert view.configs_of(OFFSETS_TOPIC)["cleanup.policy"] == "compact"
    find(driver, "g", "h", broker=2)
    assert driver.broker(1).view.topics[OFFSETS_TOPIC].topic_id == topic.topic_id


def test_every_broker_names_the_leader_of_the_groups_partition() -> None:
    driver = Driver(3)
    answers = [find(driver, *KEYS, broker=broker) for broker in (1, 2, 3)]
    assert answers[0] == answers[1] == answers[2]
    partitions = driver.broker(1).view.topics[OFFSETS_TOPIC].partitions
    for key, found in zip(KEYS, answers[0], strict=True):
        leader = partitions[partition_for(key, len(partitions))].leader
        assert (found.key, found.node_id, found.host) == (key, leader, f"broker-{leader}")
        assert found.port == 9091 + leader
    assert {found.node_id for found in answers[0]} == {1, 2, 3}


@pytest.mark.parametrize("version", [0, 1, 3, 4, 6])
def test_a_partition_without_a_leader_has_no_coordinator(version: int) -> None:
    driver = Driver(1)
    find(driver, "g")
    broker = driver.broker(1)
    broker.view = _leaderless(broker.view)
    if version < 4:
        answer = driver.ask(1, "find_coordinator", version, FindCoordinatorRequest(key="g"))
        message = "The coordinator is not available."
        assert answer.error_message == (message if version else "")
    else:
        (answer,) = find(driver, "g")
        assert answer.error_message == ""
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (answer.node_id, answer.host, answer.port) == (-1, "", -1)


@pytest.mark.parametrize("fails", [True, False])
def test_without_the_topic_there_is_no_coordinator(
    fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(1)

    def create(_broker: Broker, _name: str) -> ErrorCode:
        return ErrorCode.INVALID_REPLICATION_FACTOR if fails else ErrorCode.NONE

    monkeypatch.setattr(find_coordinator, "create_internal_topic", create)
    assert find(driver, "g")[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def _leaderless(view: ClusterImage) -> ClusterImage:
    topic = view.topics[OFFSETS_TOPIC]
    partitions = tuple(replace(partition, leader=NO_LEADER) for partition in topic.partitions)
    topics = {**view.topics, OFFSETS_TOPIC: replace(topic, partitions=partitions)}
    return replace(view, topics=topics)


def test_a_broker_that_is_behind_names_the_leader_that_it_knows() -> None:
    driver = Driver(3, {"offsets.topic.num.partitions": "1"})
    (before,) = find(driver, "g")
    stale = driver.broker(1).view
    other = before.node_id % 3 + 1
    driver.elect(OFFSETS_TOPIC, 0, other)
    assert find(driver, "g", broker=2)[0].node_id == other
    driver.broker(1).view = stale
    assert find(driver, "g", broker=1)[0].node_id == before.node_id
