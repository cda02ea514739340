"""IncrementalAlterConfigs, beyond Apache Kafka's recorded answers (tests/broker/configs)."""

from __future__ import annotations

import pytest

from fencepost.broker.core.log_levels import LOGGERS, REQUESTS, ROOT, kafka_loggers
from fencepost.broker.handlers import incremental_alter_configs
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from fencepost.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
)
from tests.harness.fake_broker import FakeBroker, broker

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def resource(kind: int, name: str, *configs: tuple[str, int, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(
            AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in configs
        ),
    )


def alter(
    asked: FakeBroker, *resources: AlterConfigsResource, validate_only: bool = False
) -> tuple[AlterConfigsResourceResponse, ...]:
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)
    responses = asked.ask("incremental_alter_configs", 1, request).responses
    assert isinstance(responses, tuple)
    return responses


def test_changes_only_what_it_names() -> None:
    asked = broker()
    asked.create("t", {"segment.bytes": "2000000", "segment.ms": "5"})
    (response,) = alter(
        asked,
        resource(TOPIC, "t", ("segment.ms", DELETE, None), ("retention.ms", SET, "6")),
    )
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert asked.view.configs_of("t") == {"segment.bytes": "2000000", "retention.ms": "6"}


def test_a_resource_is_changed_as_a_whole_or_not_at_all() -> None:
    asked = broker()
    asked.create("bad", {})
    asked.create("good", {})
    bad, good = alter(
        asked,
        resource(TOPIC, "bad", ("segment.ms", SET, "5"), ("segment.bytes", SET, "1")),
        resource(TOPIC, "good", ("segment.ms", SET, "5")),
    )
    assert (bad.error_code, good.error_code) == (ErrorCode.INVALID_CONFIG, ErrorCode.NONE)
    assert asked.view.configs_of("bad") == {}
    assert asked.view.configs_of("good") == {"segment.ms": "5"}


@pytest.mark.parametrize(
    ("kind", "name"), [(TOPIC, "a b"), (TOPIC, ""), (GROUP, ""), (CLIENT_METRICS, "")]
)
def test_an_operation_that_is_illegal_is_told_before_an_illegal_name(kind: int, name: str) -> None:
    (response,) = alter(broker(), resource(kind, name, ("interval.ms", APPEND, "1")))
    assert response.error_code == ErrorCode.INVALID_CONFIG


def test_validate_only_changes_nothing() -> None:
    asked = broker()
    asked.create("t", {})
    before = asked.view
    change = resource(TOPIC, "t", ("segment.ms", SET, "5"))
    assert alter(asked, change, validate_only=True)[0].error_code == ErrorCode.NONE
    assert asked.view is before


def test_what_changes_nothing_makes_no_new_image() -> None:
    asked = broker()
    asked.create("t", {"segment.ms": "5"})
    before = asked.view
    alter(
        asked,
        resource(TOPIC, "t", ("segment.ms", SET, "5"), ("retention.ms", DELETE, None)),
        resource(BROKER, "1", ("log.retention.ms", DELETE, None)),
    )
    assert asked.view is before


def test_the_second_spelling_of_a_broker_sees_what_the_first_did() -> None:
    asked = broker()
    alter(
        asked,
        resource(BROKER, "1", ("message.max.bytes", SET, "7")),
        resource(BROKER, "01", ("compression.type", SET, "zstd")),
    )
    assert asked.view.broker_configs[1] == {"message.max.bytes": "7", "compression.type": "zstd"}


def test_appends_to_kafkas_default_and_not_to_the_brokers() -> None:
    asked = broker({"log.cleanup.policy": "compact"})
    asked.create("t", {})
    alter(asked, resource(TOPIC, "t", ("cleanup.policy", APPEND, "compact")))
    assert asked.view.configs_of("t") == {"cleanup.policy": "delete,compact"}
    alter(asked, resource(TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete")))
    assert asked.view.configs_of("t") == {"cleanup.policy": "compact"}


@pytest.mark.parametrize(
    ("kind", "name", "config", "value"),
    [
        (GROUP, "g", "consumer.session.timeout.ms", "45000"),
        (CLIENT_METRICS, "s", "interval.ms", "300000"),
        (LOGGER, "1", "root", "INFO"),
        (TOPIC, "t", "flush.ms", "9223372036854775807"),
        (BROKER, "1", "num.io.threads", "8"),
    ],
)
def test_what_does_not_act_may_stay_as_it_is(kind: int, name: str, config: str, value: str) -> None:
    asked = broker()
    asked.create("t", {})
    (response,) = alter(asked, resource(kind, name, (config, SET, value)))
    assert response.error_code == ErrorCode.NONE


@pytest.mark.parametrize("kind", [GROUP, CLIENT_METRICS])
def test_groups_and_subscriptions_keep_what_they_are_given(kind: int) -> None:
    asked = broker()
    name = {GROUP: "share.isolation.level", CLIENT_METRICS: "metrics"}[kind]
    text = {GROUP: "read_committed", CLIENT_METRICS: "*"}[kind]
    assert not alter(asked, resource(kind, "a", (name, SET, text)))[0].error_code
    image = asked.view
    kept = {GROUP: image.group_configs, CLIENT_METRICS: image.client_metrics_configs}[kind]
    assert kept == {"a": {name: text}}
    assert not alter(asked, resource(kind, "a", (name, SET, text)))[0].error_code
    assert asked.view is image, "what changes nothing makes no new image"
    alter(asked, resource(kind, "a", (name, DELETE, None)))
    assert not asked.view.group_configs
    assert not asked.view.client_metrics_configs


def test_a_group_is_judged_by_the_bounds_of_the_broker() -> None:
    asked = broker({"group.consumer.max.session.timeout.ms": "50000"})
    session = "consumer.session.timeout.ms"
    (response,) = alter(asked, resource(GROUP, "g", (session, SET, "50001")))
    assert response.error_message == (
        f"{session} must be less than or equal to group.consumer.max.session.timeout.ms"
    )
    assert not alter(asked, resource(GROUP, "g", (session, SET, "50000")))[0].error_code


@pytest.mark.parametrize("kind", [TOPIC, GROUP, CLIENT_METRICS])
def test_a_text_has_a_greatest_length(kind: int) -> None:
    asked = broker()
    asked.create("t", {})
    (response,) = alter(asked, resource(kind, "t", ("metrics", SET, "x" * 32_768)))
    assert response.error_code == ErrorCode.INVALID_CONFIG
    assert response.error_message is not None
    assert "exceeds the maximum value size of 32767 bytes" in response.error_message


NO_LEVEL = (
    "Cannot set the log level of root to debug as it is not a supported log level. "
    "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
)


def levels(asked: FakeBroker) -> dict[str, str]:
    resources = (DescribeConfigsResource(resource_type=LOGGER, resource_name="1"),)
    (result,) = asked.ask(
        "describe_configs", 4, DescribeConfigsRequest(resources=resources)
    ).results
    return {entry.name: entry.value for entry in result.configs}


def test_levels_of_loggers_are_set_and_unset() -> None:
    asked = broker()
    names = [*LOGGERS, ROOT, *kafka_loggers()]
    assert levels(asked) == dict.fromkeys(names, "INFO")
    (response,) = alter(asked, resource(LOGGER, "1", (ROOT, SET, "WARN"), (REQUESTS, SET, "TRACE")))
    assert response.error_code == ErrorCode.NONE
    assert levels(asked) == dict.fromkeys(names, "WARN") | {REQUESTS: "TRACE"}
    assert asked.log_levels.logs_requests
    alter(asked, resource(LOGGER, "1", (REQUESTS, DELETE, None)))
    assert levels(asked)[REQUESTS] == "WARN"
    asked.controller.reset()
    assert levels(asked)[ROOT] == "INFO"


def test_loggers_of_kafkas_classes_have_levels_that_those_below_them_share() -> None:
    asked = broker()
    reaper = "org.apache.kafka.server.quota.ClientQuotaManager$ThrottledChannelReaper"
    alter(asked, resource(LOGGER, "1", (reaper, SET, "DEBUG"), ("org.apache.kafka", SET, "ERROR")))
    now = levels(asked)
    assert (now[reaper], now["org.apache.kafka"], now["kafka"]) == ("DEBUG", "ERROR", "INFO")
    assert now["org.apache.kafka.raft.KafkaRaftClient"] == "ERROR"
    alter(asked, resource(LOGGER, "1", (reaper, DELETE, None)))
    assert levels(asked)[reaper] == "ERROR"
    alter(asked, resource(LOGGER, "1", ("org.apache.kafka", DELETE, None)))
    assert levels(asked)[reaper] == "INFO"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (("nosuch", SET, "INFO"), "Logger nosuch does not exist!"),
        (("nosuch", DELETE, None), "Logger nosuch does not exist!"),
        ((ROOT, DELETE, None), "Removing the log level of the root logger is not allowed"),
        (
            (ROOT, SET, "debug"),
            NO_LEVEL,
        ),
    ],
)
def test_one_wrong_level_leaves_all_as_they_are(
    config: tuple[str, int, str | None], message: str
) -> None:
    asked = broker()
    (response,) = alter(asked, resource(LOGGER, "1", (REQUESTS, SET, "DEBUG"), config))
    assert response.error_message == message
    assert levels(asked)[REQUESTS] == "INFO"
    (response,) = alter(asked, resource(LOGGER, "1", (REQUESTS, SET, "DEBUG")), validate_only=True)
    assert response.error_code == ErrorCode.NONE
    assert levels(asked)[REQUESTS] == "INFO"


def test_refuses_every_resource() -> None:
    request = IncrementalAlterConfigsRequest(resources=(resource(TOPIC, "a"), resource(GROUP, "g")))
    responses = incremental_alter_configs.refuse(request, ErrorCode.NOT_CONTROLLER).responses
    assert [(r.resource_type, r.resource_name, r.error_code) for r in responses] == [
        (TOPIC, "a", ErrorCode.NOT_CONTROLLER),
        (GROUP, "g", ErrorCode.NOT_CONTROLLER),
    ]
