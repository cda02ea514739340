"""The cluster at one moment."""

from __future__ import annotations

from uuid import UUID

import pytest

from fencepost.broker.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage

ID = UUID(int=7)
PARTITION = PartitionImage(replicas=(1, 2), isr=(1,), leader=1)
IMAGE = ClusterImage(
    version=3,
    cluster_id="c",
    controller_id=1,
    brokers={1: BrokerImage(broker_id=1, host="h", port=1)},
    topics={"t": TopicImage(name="t", topic_id=ID, partitions=(PARTITION,))},
    names={ID: "t"},
    topic_configs={"t": {"retention.ms": "1"}},
)


def test_a_topic_is_found_by_its_id() -> None:
    assert IMAGE.topic_by_id(ID) is IMAGE.topics["t"]
    assert IMAGE.topic_by_id(UUID(int=8)) is None
    assert IMAGE.topic_by_id(None) is None


@pytest.mark.parametrize(
    ("topic", "index", "found"),
    [("t", 0, True), ("t", 1, False), ("t", -1, False), ("u", 0, False)],
)
def test_a_partition_is_found_by_name_and_index(topic: str, index: int, found: bool) -> None:
    assert IMAGE.partition(topic, index) is (PARTITION if found else None)


def test_configs_of_a_topic_without_any_are_none() -> None:
    assert IMAGE.configs_of("t") == {"retention.ms": "1"}
    assert IMAGE.configs_of("u") == {}


@pytest.mark.parametrize(
    ("name", "internal"),
    [("__consumer_offsets", True), ("__transaction_state", True), ("__other", False)],
)
def test_kafkas_own_topics_are_internal(name: str, internal: bool) -> None:
    assert TopicImage(name=name, topic_id=ID, partitions=()).is_internal is internal
