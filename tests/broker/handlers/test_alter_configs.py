"""AlterConfigs, beyond what Apache Kafka's recorded answers show (tests/broker/configs)."""

from __future__ import annotations

from fencepost.broker.handlers import alter_configs
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
)
from tests.broker.configs.fake_broker import FakeBroker, broker

TOPIC, BROKER = 2, 4


def resource(kind: int, name: str, **configs: str) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(
            AlterableConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ),
    )


def alter(
    asked: FakeBroker, *resources: AlterConfigsResource, validate_only: bool = False
) -> tuple[AlterConfigsResourceResponse, ...]:
    request = AlterConfigsRequest(resources=resources, validate_only=validate_only)
    responses = asked.ask("alter_configs", 2, request).responses
    assert isinstance(responses, tuple)
    return responses


def test_replaces_all_configs_of_a_topic() -> None:
    asked = broker()
    asked.create("t", {"segment.bytes": "2000000", "segment.ms": "5"})
    (response,) = alter(asked, resource(TOPIC, "t", retention_ms="6"))
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert asked.view.configs_of("t") == {"retention.ms": "6"}
    assert asked.configs.log_config("t").retention_ms == 6


def test_replaces_all_dynamic_configs_of_a_broker_and_of_all() -> None:
    asked = broker()
    alter(asked, resource(BROKER, "1", message_max_bytes="7"))
    alter(asked, resource(BROKER, "", message_max_bytes="8", compression_type="zstd"))
    assert asked.view.broker_configs == {
        1: {"message.max.bytes": "7"},
        None: {"message.max.bytes": "8", "compression.type": "zstd"},
    }
    alter(asked, resource(BROKER, "1"))
    assert asked.configs.log_config("t").max_message_bytes == 8


def test_validate_only_changes_nothing() -> None:
    asked = broker()
    asked.create("t", {"segment.ms": "5"})
    before = asked.view
    (response,) = alter(asked, resource(TOPIC, "t"), validate_only=True)
    assert response.error_code == ErrorCode.NONE
    assert asked.view is before


def test_a_resource_that_stands_there_twice_is_not_changed_and_others_are() -> None:
    asked = broker()
    for topic in ("twice", "once"):
        asked.create(topic, {})
    responses = alter(
        asked,
        resource(TOPIC, "twice", segment_ms="5"),
        resource(TOPIC, "once", segment_ms="6"),
        resource(TOPIC, "twice", segment_ms="7"),
    )
    assert [(r.resource_name, r.error_code, r.error_message) for r in responses] == [
        ("twice", ErrorCode.INVALID_REQUEST, "Each resource must appear at most once."),
        ("once", ErrorCode.NONE, None),
        ("twice", ErrorCode.INVALID_REQUEST, "Each resource must appear at most once."),
    ]
    assert asked.view.configs_of("twice") == {}
    assert asked.view.configs_of("once") == {"segment.ms": "6"}


def test_refuses_every_resource() -> None:
    request = AlterConfigsRequest(resources=(resource(TOPIC, "a"), resource(BROKER, "1")))
    responses = alter_configs.refuse(request, ErrorCode.NOT_CONTROLLER).responses
    assert [(r.resource_type, r.resource_name, r.error_code) for r in responses] == [
        (TOPIC, "a", ErrorCode.NOT_CONTROLLER),
        (BROKER, "1", ErrorCode.NOT_CONTROLLER),
    ]
