"""Configs of tiered topics, in the words of Apache Kafka 4.3.1."""

from __future__ import annotations

import pytest

from fencepost.broker.configs.broker_rules import dynamic_problem
from fencepost.broker.configs.config_layers import ConfigLayers
from fencepost.broker.configs.topic_configs import validate_topic_configs
from fencepost.protocol.errors import ErrorCode

TIERED = {"remote.storage.enable": "true"}
DISABLED_WITHOUT_DELETE = (
    "It is invalid to disable remote storage without deleting remote data. If you want to keep "
    "the remote data and turn to read only, please set "
    "`remote.storage.enable=true,remote.log.copy.disable=true`. If you want to disable remote "
    "storage and delete all remote data, please set "
    "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
)
POLICY = (
    "Remote log storage only supports topics with cleanup.policy=delete or "
    "cleanup.policy being an empty list."
)


@pytest.mark.parametrize(
    "configs",
    [
        {},
        {"cleanup.policy": ""},
        {"local.retention.ms": "604800000", "retention.ms": "604800000"},
        {"local.retention.ms": "-1", "retention.ms": "-1"},
        {"local.retention.ms": "5", "retention.ms": "-1"},
        {"local.retention.ms": "-2", "retention.ms": "5"},
        {"local.retention.bytes": "5"},
        {"local.retention.bytes": "4", "retention.bytes": "5"},
        {"remote.log.copy.disable": "true"},
        {"remote.log.copy.disable": "true", "local.retention.ms": "5", "retention.ms": "5"},
        {"message.format.version": "0.11.0"},
        {"check.expected.offsets": "true"},
        {"check.expected.offsets.scope": "key"},
    ],
)
def test_a_topic_may_be_tiered(configs: dict[str, str]) -> None:
    assert validate_topic_configs({**TIERED, **configs}, tiered=True) is None


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"cleanup.policy": "compact"}, POLICY),
        ({"cleanup.policy": "compact,delete"}, POLICY),
        (
            {"check.expected.offsets": "true", "check.expected.offsets.scope": "key"},
            (
                "check.expected.offsets.scope=key does not go with remote.storage.enable=true: the "
                "keys of records that are only in the tier are not known"
            ),
        ),
        (
            {"local.retention.ms": "604800001"},
            (
                "Invalid value 604800001 for configuration local.retention.ms: "
                "Value must not be more than retention.ms property value: 604800000"
            ),
        ),
        (
            {"local.retention.ms": "-1"},
            (
                "Invalid value -1 for configuration local.retention.ms: "
                "Value must not be -1 as retention.ms value is set as 604800000."
            ),
        ),
        (
            {"local.retention.bytes": "6", "retention.bytes": "5"},
            (
                "Invalid value 6 for configuration local.retention.bytes: "
                "Value must not be more than retention.bytes property value: 5"
            ),
        ),
        (
            {"remote.log.copy.disable": "true", "local.retention.ms": "5"},
            (
                "When `remote.log.copy.disable` is set to true, the `local.retention.ms` and "
                "`retention.ms` must be set to the identical value because there will be no more "
                "logs copied to the remote storage."
            ),
        ),
        (
            {"remote.log.copy.disable": "true", "local.retention.bytes": "5"},
            (
                "When `remote.log.copy.disable` is set to true, the `local.retention.bytes` and "
                "`retention.bytes` must be set to the identical value because there will be no "
                "more logs copied to the remote storage."
            ),
        ),
        (
            {"message.format.version": "0.10.2"},
            (
                "Remote log storage needs leader epochs, which message.format.version has from "
                "0.11 on"
            ),
        ),
    ],
)
def test_a_topic_may_not_be_tiered(configs: dict[str, str], message: str) -> None:
    error = validate_topic_configs({**TIERED, **configs}, tiered=True)
    assert error is not None
    assert (error.code, error.message) == (ErrorCode.INVALID_CONFIG, message)
    without = {name: text for name, text in configs.items() if "retention" in name}
    assert validate_topic_configs(without, tiered=True) is None


def test_tiering_is_switched_off_only_with_the_remote_data() -> None:
    off = {"remote.storage.enable": "false"}
    for configs in ({}, off):
        error = validate_topic_configs(configs, tiered=True, before=TIERED)
        assert error is not None
        assert (error.code, error.message) == (ErrorCode.INVALID_CONFIG, DISABLED_WITHOUT_DELETE)
        deleting = {**configs, "remote.log.delete.on.disable": "true"}
        assert validate_topic_configs(deleting, tiered=True, before=TIERED) is None
        assert validate_topic_configs(off, tiered=True, before=off) is None


def test_whether_there_is_a_tier_is_a_static_config() -> None:
    assert not ConfigLayers().has_tier
    assert ConfigLayers(static={"remote.log.storage.system.enable": "true"}).has_tier


def test_local_retention_of_a_broker_is_at_most_its_retention() -> None:
    layers = ConfigLayers()
    for configs in (
        {},
        {"log.local.retention.ms": "604800000"},
        {"log.local.retention.ms": "604800001", "log.retention.ms": "-1"},
        {"log.local.retention.bytes": "5"},
    ):
        assert dynamic_problem(layers, configs, per_broker=True) is None
    error = dynamic_problem(
        layers, {"log.local.retention.bytes": "6", "log.retention.bytes": "5"}, per_broker=True
    )
    assert error is not None
    assert (error.code, error.message) == (
        ErrorCode.INVALID_REQUEST,
        (
            "Invalid value org.apache.kafka.common.config.ConfigException: Invalid value 6 for "
            "configuration log.local.retention.bytes: Value must not be more than "
            "log.retention.bytes property value: 5 for configuration Invalid dynamic configuration"
        ),
    )
    assert dynamic_problem(layers, {"log.retention.ms": "5"}, per_broker=True) is None
    tight = ConfigLayers(static={"log.local.retention.ms": "6"})
    assert dynamic_problem(tight, {"log.retention.ms": "5"}, per_broker=True) is not None
    assert dynamic_problem(tight, {"log.segment.bytes": "1048576"}, per_broker=True) is None
