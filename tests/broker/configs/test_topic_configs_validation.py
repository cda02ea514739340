"""Validation of whole sets of configs, where Kafka's recorded answers do not reach."""

from __future__ import annotations

import pytest

from fencepost.broker.configs.broker_configs import (
    validate_dynamic_configs,
    validate_static_configs,
)
from fencepost.broker.configs.topic_configs import topic_defaults, validate_topic_configs
from fencepost.protocol.errors import ErrorCode


def test_configs_that_act_are_accepted() -> None:
    assert validate_topic_configs({}) is None
    assert validate_topic_configs({"cleanup.policy": "compact", "segment.ms": "60000"}) is None
    assert validate_static_configs({"num.partitions": "4", "log.retention.hours": "1"}) is None
    assert validate_dynamic_configs({"log.retention.ms": "1000"}, per_broker=False) is None


def test_defaults_are_accepted_of_what_has_no_effect() -> None:
    assert (
        validate_topic_configs(
            {"flush.ms": "9223372036854775807", "preallocate": "False"}, strict=True
        )
        is None
    )
    assert (
        validate_static_configs(
            {"num.io.threads": "8", "controlled.shutdown.enable": "true"}, strict=True
        )
        is None
    )


def test_what_has_no_effect_is_accepted_as_by_kafka() -> None:
    assert validate_topic_configs({"flush.messages": "1", "segment.jitter.ms": "7"}) is None
    assert validate_static_configs({"num.io.threads": "4", "node.id": "1"}) is None
    assert validate_static_configs({"listener.name.plaintext.max.connections": "1"}) is None
    assert validate_static_configs({"my.plugin.url": "x"}) is None
    assert validate_dynamic_configs({"num.io.threads": "4", "nope": "1"}, per_broker=True) is None


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"nope": "1"}, "Unknown topic config name: nope"),
        (
            {"retension.ms": "1"},
            "Unknown topic config name: retension.ms; did you mean retention.ms?",
        ),
        (
            {"log.retention.ms": "1"},
            "Unknown topic config name: log.retention.ms; the topic config is retention.ms",
        ),
        (
            {"segment.ms": None, "segment.bytes": None},
            "Null value not supported for topic configs: segment.ms,segment.bytes",
        ),
        ({"segment.ms": "x", "nope": "1"}, "Unknown topic config name: nope"),
        (
            {"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "50"},
            (
                "conflict topic config setting min.compaction.lag.ms (100) "
                "> max.compaction.lag.ms (50)"
            ),
        ),
        (
            {"remote.storage.enable": "true"},
            (
                "Tiered Storage functionality is disabled in the broker. "
                "Topic cannot be configured with remote log storage."
            ),
        ),
        (
            {"flush.messages": "1"},
            (
                "Invalid value 1 for configuration flush.messages: it has no effect in fencepost "
                "(nothing is ever forced to disk without --data-dir); leave it at its default, "
                "9223372036854775807"
            ),
        ),
    ],
)
def test_topic_configs_are_refused(configs: dict[str, str | None], message: str) -> None:
    error = validate_topic_configs(configs, strict=True)
    assert error is not None
    assert (error.code, error.message) == (ErrorCode.INVALID_CONFIG, message)


def test_a_topic_config_is_checked_against_the_brokers_defaults() -> None:
    defaults = {**topic_defaults(), "max.compaction.lag.ms": 50}
    error = validate_topic_configs({"min.compaction.lag.ms": "100"}, defaults)
    assert error is not None
    assert "(100) > max.compaction.lag.ms (50)" in error.message
    assert validate_topic_configs({"min.compaction.lag.ms": "50"}, defaults) is None


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"nope": "1"}, "Unknown config name: nope"),
        (
            {"segment.bytes": "1"},
            "Unknown config name: segment.bytes; the broker config is log.segment.bytes",
        ),
        (
            {"listener.name.plaintext.max.connections": "1"},
            (
                "Unknown config name: listener.name.plaintext.max.connections; "
                "a broker has one listener, and its configs take no prefix"
            ),
        ),
        (
            {"num.partitions": "0"},
            "Invalid value 0 for configuration num.partitions: Value must be at least 1",
        ),
        (
            {"log.retention.minutes": "0"},
            (
                "requirement failed: log.retention.ms must be unlimited (-1) or, "
                "greater than or equal to 1"
            ),
        ),
        (
            {"log.roll.ms": "0"},
            "requirement failed: log.roll.ms must be greater than or equal to 1",
        ),
        (
            {"node.id": "1"},
            (
                "Configuration node.id cannot be set in fencepost: "
                "--broker-ids says which brokers there are"
            ),
        ),
        (
            {"num.io.threads": "4"},
            (
                "Invalid value 4 for configuration num.io.threads: it has no effect in fencepost "
                "(one event loop does the work, there are no thread pools); "
                "leave it at its default, 8"
            ),
        ),
    ],
)
def test_static_configs_are_refused_in_one_line(configs: dict[str, str], message: str) -> None:
    error = validate_static_configs(configs, strict=True)
    assert error is not None
    assert error.message == message
    assert "\n" not in error.message


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("segment.bytes", "; the broker config is log.segment.bytes"),
        ("num.partition", "; did you mean num.partitions?"),
    ],
)
def test_a_name_that_looks_like_a_slip_is_refused_with_the_right_one(name: str, hint: str) -> None:
    error = validate_static_configs({name: "1"})
    assert error is not None
    assert error.message == f"Unknown config name: {name}{hint}"


def test_a_secret_is_not_repeated() -> None:
    error = validate_static_configs({"ssl.key.password": "hunter2"}, strict=True)
    assert error is not None
    assert "hunter2" not in error.message


@pytest.mark.parametrize(
    ("configs", "per_broker", "code", "message"),
    [
        (
            {"num.partitions": "2", "broker.rack": "a"},
            True,
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically: [broker.rack, num.partitions]",
        ),
        (
            {"listeners": "PLAINTEXT://:9092"},
            False,
            ErrorCode.INVALID_REQUEST,
            (
                "Cannot update these configs at default cluster level, "
                "broker id must be specified: [listeners]"
            ),
        ),
        (
            {"log.segment.bytes": "1"},
            True,
            ErrorCode.INVALID_REQUEST,
            "Invalid value 1 for configuration log.segment.bytes: Value must be at least 1048576",
        ),
        (
            {"ssl.keystore.location": "/x"},
            False,
            ErrorCode.INVALID_REQUEST,
            (
                "These security configs can be dynamically updated only per-listener using the "
                "listener prefix: [ssl.keystore.location]"
            ),
        ),
        (
            {"listener.name.plaintext.max.connections": "x"},
            True,
            ErrorCode.INVALID_REQUEST,
            "Invalid value x for configuration max.connections: Not a number of type INT",
        ),
        (
            {"listener.name.plaintext.sasl.jaas.config": "x"},
            False,
            ErrorCode.INVALID_REQUEST,
            (
                "Cannot update these configs at default cluster level, broker id must be "
                "specified: [listener.name.plaintext.sasl.jaas.config]"
            ),
        ),
    ],
)
def test_dynamic_configs_are_refused(
    configs: dict[str, str], per_broker: bool, code: ErrorCode, message: str
) -> None:
    error = validate_dynamic_configs(configs, per_broker=per_broker)
    assert error is not None
    assert (error.code, error.message) == (code, message)


def test_strict_validation_refuses_what_has_no_effect_or_no_name() -> None:
    for configs, message in (
        (
            {"log.preallocate": "true"},
            (
                "Invalid value true for configuration log.preallocate: "
                "it has no effect in fencepost (logs are kept in memory, or in files that grow "
                "with what is written); "
                "leave it at its default, false"
            ),
        ),
        ({"nope": "1"}, "Unknown config name: nope"),
    ):
        error = validate_dynamic_configs(configs, per_broker=True, strict=True)
        assert error is not None
        assert (error.code, error.message) == (ErrorCode.INVALID_CONFIG, message)
