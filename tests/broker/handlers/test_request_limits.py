"""Requests for more than one answer or one change may be."""

from __future__ import annotations

import pytest

from fencepost.broker.handlers import describe_configs
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from fencepost.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from fencepost.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from fencepost.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.harness.driver import NEWEST, Driver
from tests.harness.driver_requests import create

TOPIC = 2
TOO_MANY = "Excessively large number of partitions per request."


def missing(count: int) -> MetadataRequest:
    """Asks for topics that are to be created."""
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=f"new.{index}") for index in range(count)),
        allow_auto_topic_creation=True,
    )


def test_a_request_creates_ten_thousand_partitions_at_most() -> None:
    driver = Driver(1, {"num.partitions": "100"})
    topics = driver.ask(1, "metadata", NEWEST, missing(101)).topics
    assert {topic.error_code for topic in topics} == {ErrorCode.POLICY_VIOLATION}
    assert not driver.broker(1).view.topics
    create(driver, "a")
    create(driver, "b")
    request = CreatePartitionsRequest(
        topics=(
            CreatePartitionsTopic(name="a", count=5001, assignments=None),
            CreatePartitionsTopic(name="b", count=5002, assignments=None),
        )
    )
    results = driver.ask(1, "create_partitions", NEWEST, request).results
    assert {(r.error_code, r.error_message) for r in results} == {
        (ErrorCode.POLICY_VIOLATION, TOO_MANY)
    }
    assert len(driver.broker(1).view.topics["a"].partitions) == 1


def test_topics_that_a_client_asks_for_are_created_in_one_image() -> None:
    driver = Driver(1)
    before = driver.broker(1).view.version
    topics = driver.ask(1, "metadata", NEWEST, missing(50)).topics
    assert {topic.error_code for topic in topics} == {ErrorCode.NONE}
    assert len(driver.broker(1).view.topics) == 50
    assert driver.broker(1).view.version == before + 1


def test_configs_of_many_topics_change_in_one_image() -> None:
    driver = Driver(1)
    for index in range(10):
        create(driver, f"t.{index}")
    before = driver.broker(1).view.version
    config = AlterableConfig(name="retention.ms", config_operation=0, value="5")
    request = IncrementalAlterConfigsRequest(
        resources=tuple(
            AlterConfigsResource(resource_type=TOPIC, resource_name=f"t.{index}", configs=(config,))
            for index in range(10)
        )
    )
    answer = driver.ask(1, "incremental_alter_configs", NEWEST, request)
    assert {each.error_code for each in answer.responses} == {ErrorCode.NONE}
    view = driver.broker(1).view
    assert view.version == before + 1
    assert all(view.configs_of(f"t.{index}") == {"retention.ms": "5"} for index in range(10))


def test_an_answer_describes_so_many_configs(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(1)
    create(driver, "t")
    resource = DescribeConfigsResource(
        resource_type=TOPIC, resource_name="t", configuration_keys=("retention.ms", "segment.ms")
    )
    request = DescribeConfigsRequest(resources=(resource,) * 3)
    monkeypatch.setattr(describe_configs, "MAX_ENTRIES", 5)
    results = driver.ask(1, "describe_configs", NEWEST, request).results
    assert [(r.error_code, len(r.configs)) for r in results] == [
        (ErrorCode.NONE, 2),
        (ErrorCode.NONE, 2),
        (ErrorCode.POLICY_VIOLATION, 0),
    ]
