"""Static configs of single brokers (``--broker-config``)."""

from __future__ import annotations

import pytest

from fencepost.broker.configs.config_layers import ConfigSource
from fencepost.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from fencepost.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.harness.driver import NEWEST, Driver

BROKER = 4
SIZE = "message.max.bytes"


def described(driver: Driver, broker_id: int, name: str) -> tuple[str, int]:
    asked = DescribeConfigsResource(
        resource_type=BROKER, resource_name=str(broker_id), configuration_keys=(name,)
    )
    request = DescribeConfigsRequest(resources=(asked,))
    (entry,) = driver.ask(broker_id, "describe_configs", NEWEST, request).results[0].configs
    return entry.value, entry.config_source


def test_one_of_a_single_broker_comes_before_that_of_all() -> None:
    driver = Driver(3, {SIZE: "900"}, broker_configs={2: {SIZE: "800"}, 3: {"num.partitions": "4"}})
    static = ConfigSource.STATIC_BROKER_CONFIG
    assert [described(driver, broker_id, SIZE) for broker_id in (1, 2, 3)] == [
        ("900", static),
        ("800", static),
        ("900", static),
    ]
    assert described(driver, 3, "num.partitions") == ("4", static)
    assert described(driver, 1, "num.partitions") == ("1", ConfigSource.DEFAULT_CONFIG)
    sizes = [driver.broker(b).configs.log_config("t").max_message_bytes for b in (1, 2, 3)]
    assert sizes == [900, 800, 900]


def test_dynamic_configs_come_before_it() -> None:
    driver = Driver(1, broker_configs={1: {SIZE: "800"}})
    driver.cluster.controller.set_broker_configs(None, {SIZE: "700"})
    assert described(driver, 1, SIZE) == ("700", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)


@pytest.mark.parametrize(
    ("racks", "expected"), [((), ["a", "b", "a"]), (("c", "d"), ["c", "d", "c"])]
)
def test_a_broker_has_a_rack_of_its_own(racks: tuple[str, ...], expected: list[str]) -> None:
    own = {2: {"broker.rack": "b"}}
    driver = Driver(3, {"broker.rack": "a"}, broker_configs=own, racks=racks)
    brokers = driver.broker(1).view.brokers
    assert [brokers[broker_id].rack for broker_id in (1, 2, 3)] == expected


def test_those_of_the_active_controller_are_what_topics_are_created_with() -> None:
    segment = {"log.segment.bytes": "1048576"}
    driver = Driver(1, controller_ids=[3000], broker_configs={3000: segment})
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    (created,) = driver.ask(1, "create_topics", NEWEST, CreateTopicsRequest(topics=(topic,))).topics
    (entry,) = (each for each in created.configs if each.name == "segment.bytes")
    assert (entry.value, entry.config_source) == ("1048576", ConfigSource.STATIC_BROKER_CONFIG)
    value, source = described(driver, 1, "log.segment.bytes")
    assert (value, source) == ("1073741824", ConfigSource.DEFAULT_CONFIG)


@pytest.mark.parametrize(
    ("own", "counts"),
    [
        ({3000: {"num.partitions": "5", "default.replication.factor": "2"}}, (5, 2)),
        ({1: {"num.partitions": "4"}, 3000: {"num.partitions": "5"}}, (4, 1)),
        ({1: {"num.partitions": "4"}, 3000: {"default.replication.factor": "2"}}, (4, 2)),
        ({3000: {}}, (1, 1)),
    ],
)
def test_a_topic_that_a_broker_creates_has_the_controllers_counts_where_the_broker_has_none(
    own: dict[int, dict[str, str]], counts: tuple[int, int]
) -> None:
    driver = Driver(2, controller_ids=[3000], broker_configs=own)
    asked = MetadataRequest(
        topics=(MetadataRequestTopic(name="t"),), allow_auto_topic_creation=True
    )
    driver.ask(1, "metadata", NEWEST, asked)
    partitions = driver.cluster.controller.image.topics["t"].partitions
    assert (len(partitions), len(partitions[0].replicas)) == counts
