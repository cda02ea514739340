"""Metadata as it was in an earlier leader epoch."""

from __future__ import annotations

import pytest

from fencepost.broker.core import outcomes
from fencepost.broker.faults.kinds import StaleMetadata
from fencepost.broker.metadata.image import MAX_EPOCHS
from fencepost.broker.node import operator_actions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.faults.faulty import set_fault
from tests.harness.driver import Driver, Message
from tests.harness.driver_requests import create


@pytest.fixture
def driver() -> Driver:
    """Topic t, led by 1 in epoch 0, by 2 in epoch 1, by 3 in epoch 2."""
    driver = Driver(3)
    create(driver, "t", [(1, 2, 3), (1, 2, 3)])
    create(driver, "u", [(1, 2, 3)])
    driver.elect("t", 0, 2)
    driver.elect("t", 0, 3)
    return driver


def metadata(driver: Driver, *topics: str, version: int = 12) -> Message:
    asked = tuple(MetadataRequestTopic(name=name) for name in topics)
    return driver.ask(1, "metadata", version, MetadataRequest(topics=asked or None))


def leaders(answer: Message) -> dict[tuple[str, int], tuple[int, int]]:
    return {
        (topic.name, p.partition_index): (p.leader_id, p.leader_epoch)
        for topic in answer.topics
        for p in topic.partitions
    }


@pytest.mark.parametrize(("epoch", "leader"), [(0, 1), (1, 2), (2, 3), (3, 3)])
def test_a_partition_is_told_as_in_that_epoch_or_as_it_is(
    driver: Driver, epoch: int, leader: int
) -> None:
    set_fault(driver, "metadata", StaleMetadata(epoch), topic="t", partition=0)
    assert leaders(metadata(driver, "t"))["t", 0] == (leader, min(epoch, 2))
    assert leaders(metadata(driver, "t"))["t", 0] == (3, 2)


def test_only_what_is_selected_is_stale(driver: Driver) -> None:
    for topic, index in (("t", 1), ("u", 0)):
        driver.elect(topic, index, 2)
    set_fault(driver, "metadata", StaleMetadata(0), topic="t", partition=0)
    now = {("t", 1): (2, 1), ("u", 0): (2, 1)}
    assert leaders(metadata(driver)) == {("t", 0): (1, 0), **now}
    set_fault(driver, "metadata", StaleMetadata(0), topic="t")
    assert leaders(metadata(driver)) == {("t", 0): (1, 0), ("t", 1): (1, 0), ("u", 0): (2, 1)}
    set_fault(driver, "metadata", StaleMetadata(0))
    assert set(leaders(metadata(driver)).values()) == {(1, 0)}


def test_the_answer_may_take_several_turns(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "SLICE", 1)
    monkeypatch.setattr(outcomes, "_TURN", range(1))
    set_fault(driver, "metadata", StaleMetadata(0), topic="t", partition=0)
    found = leaders(metadata(driver, "t", "u"))
    assert found == {("t", 0): (1, 0), ("t", 1): (1, 0), ("u", 0): (1, 0)}


def test_the_isr_is_that_of_the_end_of_the_epoch_and_its_leader_is_among_the_brokers(
    driver: Driver,
) -> None:
    operator_actions.kill(driver.cluster, 3)
    answer = metadata(driver, "t")
    assert [b.node_id for b in answer.brokers] == [1, 2]
    set_fault(driver, "metadata", StaleMetadata(2), topic="t", partition=0)
    answer = metadata(driver, "t")
    assert leaders(answer)["t", 0] == (3, 2)
    (partition, _) = answer.topics[0].partitions
    assert set(partition.isr_nodes) == {1, 2, 3}
    assert partition.error_code == 0
    assert [(b.node_id, b.host) for b in answer.brokers][-1] == (3, "broker-3")


def test_an_epoch_without_a_leader(driver: Driver) -> None:
    create(driver, "lonely", [(3,)])
    operator_actions.kill(driver.cluster, 3)
    operator_actions.start(driver.cluster, 3)
    set_fault(driver, "metadata", StaleMetadata(1), topic="lonely")
    (topic,) = metadata(driver, "lonely").topics
    assert topic.partitions[0].leader_id == -1
    assert topic.partitions[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE


def test_in_the_old_message_format_there_are_no_epochs_to_tell(driver: Driver) -> None:
    create(driver, "old", [(1, 2)], message_format_version="0.10.2")
    driver.elect("old", 0, 2)
    set_fault(driver, "metadata", StaleMetadata(0), topic="old")
    assert leaders(metadata(driver, "old")) == {("old", 0): (1, -1)}


def test_a_topic_of_the_same_name_has_a_history_of_its_own(driver: Driver) -> None:
    driver.cluster.controller.delete_topics(["t"])
    create(driver, "t", [(3, 2, 1)])
    driver.elect("t", 0, 1)
    set_fault(driver, "metadata", StaleMetadata(0), topic="t")
    assert leaders(metadata(driver, "t")) == {("t", 0): (3, 0)}
    set_fault(driver, "metadata", StaleMetadata(2), topic="t")
    assert leaders(metadata(driver, "t")) == {("t", 0): (1, 1)}


def test_the_history_is_bounded(driver: Driver) -> None:
    for _ in range(MAX_EPOCHS):
        driver.elect("u", 0, 1)
    history = driver.cluster.faults.leader_epoch_history
    topic_id = driver.cluster.controller.image.topics["u"].topic_id
    assert history.find(topic_id, 0, 0) is not None
    driver.elect("u", 0, 1)
    assert history.find(topic_id, 0, 0) is None
    assert history.find(topic_id, 0, 1) is not None


def test_a_topic_that_is_deleted_is_forgotten(driver: Driver) -> None:
    history = driver.cluster.faults.leader_epoch_history
    topic_id = driver.cluster.controller.image.topics["t"].topic_id
    assert history.find(topic_id, 0, 0) is not None
    driver.cluster.controller.delete_topics(["t"])
    assert history.find(topic_id, 0, 0) is None


def test_a_reset_forgets_it(driver: Driver) -> None:
    topic_id = driver.cluster.controller.image.topics["t"].topic_id
    driver.cluster.reset()
    assert driver.cluster.faults.leader_epoch_history.find(topic_id, 0, 0) is None
