"""Configs that change nothing are taken from clients, and reported once."""

from __future__ import annotations

from typing import Final

import pytest

from fencepost.broker.controller.config_changes import ResourceType
from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.events import Event, Kind
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
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
from tests.harness.driver import NEWEST, Driver
from tests.harness.driver_requests import create_topics

THREADS: Final = "num.io.threads"


def told(driver: Driver) -> list[tuple[str | None, int | None, object, object]]:
    return [_shown(event) for event in driver.cluster.events.at_start]


def _shown(event: Event) -> tuple[str | None, int | None, object, object]:
    assert event.kind is Kind.CONFIG_WITHOUT_EFFECT
    assert event.details["reason"]
    return event.topic, event.broker, event.details["config"], event.details["value"]


def _creatable(name: str, **configs: str) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=1,
        replication_factor=1,
        configs=tuple(
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ),
    )


def _alter(driver: Driver, kind: int, resource: str, name: str, value: str) -> ErrorCode:
    request = IncrementalAlterConfigsRequest(
        resources=(
            AlterConfigsResource(
                resource_type=kind,
                resource_name=resource,
                configs=(AlterableConfig(name=name, config_operation=0, value=value),),
            ),
        )
    )
    (answer,) = driver.ask(1, "incremental_alter_configs", NEWEST, request).responses
    return ErrorCode(answer.error_code)


def _described(driver: Driver, kind: int, resource: str, name: str) -> tuple[str | None, int]:
    request = DescribeConfigsRequest(
        resources=(
            DescribeConfigsResource(
                resource_type=kind, resource_name=resource, configuration_keys=(name,)
            ),
        )
    )
    (answer,) = driver.ask(1, "describe_configs", NEWEST, request).results
    (entry,) = answer.configs
    return entry.value, entry.config_source


def test_a_new_topics_config_without_effect_is_stored_and_reported_once() -> None:
    driver = Driver(1)
    for name in ("a", "b"):
        (created,) = create_topics(driver, _creatable(name, flush_messages="7"))
        assert created.error_code == ErrorCode.NONE
        assert _described(driver, ResourceType.TOPIC, name, "flush.messages") == ("7", 1)
    assert told(driver) == [("a", None, "flush.messages", "7")]


def test_a_changed_config_without_effect_is_stored_and_reported() -> None:
    driver = Driver(1)
    create_topics(driver, _creatable("a"))
    assert _alter(driver, ResourceType.TOPIC, "a", "flush.ms", "5") == ErrorCode.NONE
    assert _alter(driver, ResourceType.BROKER, "1", THREADS, "9") == ErrorCode.NONE
    assert _alter(driver, ResourceType.BROKER, "", "nope", "9") == ErrorCode.NONE
    assert _described(driver, ResourceType.BROKER, "1", THREADS) == ("9", 2)
    assert _described(driver, ResourceType.BROKER, "1", "nope") == (None, 3), "it may be secret"
    assert told(driver) == [
        ("a", None, "flush.ms", "5"),
        (None, 1, THREADS, "9"),
        (None, None, "nope", None),
    ]


def test_configs_of_groups_are_reported_by_their_group() -> None:
    driver = Driver(1)
    assert _alter(driver, ResourceType.GROUP, "g", "share.isolation.level", "read_committed") == 0
    (event,) = driver.cluster.events.at_start
    assert (event.details["group"], event.details["config"]) == ("g", "share.isolation.level")


def test_what_acts_or_holds_anyway_is_not_reported() -> None:
    driver = Driver(1, {THREADS: "8", "num.partitions": "2"})
    create_topics(driver, _creatable("a", segment_ms="7", preallocate="false"))
    assert told(driver) == []


def test_what_brokers_are_started_with_is_reported_at_the_start() -> None:
    driver = Driver(
        1,
        {THREADS: "3", "log.dirs": "/x", "my.plugin": "hunter2", "num.partition.count": "3"},
        topics=[NewTopic(name="t", configs={"flush.ms": "7"})],
    )
    assert told(driver) == [
        (None, None, THREADS, "3"),
        (None, None, "log.dirs", "/x"),
        (None, None, "my.plugin", None),
        (None, None, "num.partition.count", None),
        ("t", None, "flush.ms", "7"),
    ]
    assert _described(driver, ResourceType.BROKER, "1", "log.dirs") == (None, 5)
    assert _described(driver, ResourceType.BROKER, "1", THREADS) == ("3", 4)


def test_after_a_reset_it_is_reported_again() -> None:
    driver = Driver(1)
    create_topics(driver, _creatable("a", flush_ms="5"))
    driver.cluster.reset()
    create_topics(driver, _creatable("a", flush_ms="5"))
    assert told(driver) == [("a", None, "flush.ms", "5")] * 2


@pytest.mark.parametrize("name", ["flush.ms", "nope"])
def test_strict_clusters_refuse_it(name: str) -> None:
    driver = Driver(1, strict_configs=True)
    topic = _creatable("a", **{name: "5"})
    (created,) = create_topics(driver, topic)
    assert created.error_code == ErrorCode.INVALID_CONFIG
    broker_config = {"flush.ms": "log.flush.interval.ms"}.get(name, name)
    refused = _alter(driver, ResourceType.BROKER, "", broker_config, "5")
    assert refused == ErrorCode.INVALID_CONFIG
    assert told(driver) == []


def test_a_level_of_a_logger_that_only_kafka_has_is_reported_once() -> None:
    driver = Driver(1)
    for level in ("DEBUG", "INFO"):
        for name in ("kafka.request.logger", "fencepost.requests"):
            assert _alter(driver, 8, "1", name, level) is ErrorCode.NONE
    assert told(driver) == [(None, None, "kafka.request.logger", "DEBUG")]
    assert _described(driver, 8, "1", "kafka.request.logger")[0] == "INFO"


def test_strict_configs_refuse_it() -> None:
    driver = Driver(1, strict_configs=True)
    assert _alter(driver, 8, "1", "fencepost.requests", "DEBUG") is ErrorCode.NONE
    assert _alter(driver, 8, "1", "kafka.request.logger", "DEBUG") is ErrorCode.INVALID_CONFIG
    assert _described(driver, 8, "1", "kafka.request.logger")[0] == "INFO"
