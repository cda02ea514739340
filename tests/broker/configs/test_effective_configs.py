from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import pytest
from msgspec.structs import replace

from fencepost.broker.configs.broker_configs import (
    broker_configs,
    unit_synonyms,
    validate_static_configs,
)
from fencepost.broker.configs.config_def import ConfigDef, ConfigType, Effect, Table
from fencepost.broker.configs.config_layers import ConfigLayers, ConfigSource
from fencepost.broker.configs.effective_configs import BrokerConfigs, TopicSettings, static_configs
from fencepost.broker.configs.topic_configs import topic_configs, validate_topic_configs
from fencepost.broker.metadata.image import Address, BrokerImage, ClusterImage
from fencepost.storage.log.config import LogConfig, TimestampType, TopicLogConfig

IMAGE = ClusterImage(
    version=1,
    cluster_id="c",
    controller_id=1,
    brokers={1: BrokerImage(broker_id=1, host="h", port=1)},
)
OTHER_TEXTS = {
    "cordoned.log.dirs": "*",
    "replica.alter.log.dirs.io.max.bytes.per.second": "1000",
    "metric.reporters": "com.example.Receiver",
    # One more would not do.
    "compression.gzip.level": "5",
    "compression.lz4.level": "5",
    "flush.messages": "5",
    "flush.ms": "5",
    "log.cleaner.max.compaction.lag.ms": "5",
    "log.flush.interval.messages": "5",
    "log.flush.interval.ms": "5",
    "log.flush.scheduler.interval.ms": "5",
    "log.message.timestamp.before.max.ms": "5",
    "max.compaction.lag.ms": "5",
    "max.connections": "5",
    "max.connections.per.ip": "5",
    "group.max.size": "5",
    "message.timestamp.before.max.ms": "5",
    "internal.segment.bytes": "5",
    "log.roll.ms": "5",
    "log.retention.ms": "5",
    "log.retention.minutes": "5",
    "min.cleanable.dirty.ratio": "0.25",
    "log.cleaner.min.cleanable.ratio": "0.25",
    "broker.rack": "r",
    "cleanup.policy": "compact",
    "log.cleanup.policy": "compact",
    "compression.type": "zstd",
    "message.timestamp.type": "LogAppendTime",
    "log.message.timestamp.type": "LogAppendTime",
    "list.offsets.gate": "off",
    "check.expected.offsets.scope": "key",
    "check.expected.offsets.source": "header",
    "message.format.version": "0.10.2",
    "auto.leader.rebalance.enable": "true",
    "log.roll.jitter.ms": "5",
    "follower.replication.throttled.rate": "7",
    "follower.replication.throttled.replicas": "0:1",
    "leader.replication.throttled.rate": "7",
    "leader.replication.throttled.replicas": "*",
    "max.connection.creation.rate": "7",
    "max.connections.per.ip.overrides": "127.0.0.1:7",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}

ATTRIBUTE_TYPES: Final = {
    ConfigType.BOOLEAN: bool,
    ConfigType.INT: int,
    ConfigType.SHORT: int,
    ConfigType.LONG: int,
    ConfigType.DOUBLE: float,
    ConfigType.STRING: str,
    ConfigType.LIST: frozenset[str],
}


def another_text(config: ConfigDef) -> str:
    if config.name in OTHER_TEXTS:
        return OTHER_TEXTS[config.name]
    assert config.default is not None, config.name
    if config.type is ConfigType.BOOLEAN:
        return "false" if config.default == "true" else "true"
    return str(int(config.default) + 1)


def shown(configs: BrokerConfigs) -> dict[str, object]:
    names = BrokerConfigs.__annotations__
    return {name: getattr(configs, name) for name in names} | {"topic": configs.topic("t")}


@pytest.mark.parametrize(
    "config",
    [config for config in broker_configs().values() if config.effect is Effect.ACTS],
    ids=lambda config: config.name,
)
def test_every_broker_config_that_acts_is_read(config: ConfigDef) -> None:
    static = {config.name: another_text(config)}
    assert validate_static_configs(static, strict=True) is None
    assert shown(BrokerConfigs(1, static)) != shown(BrokerConfigs(1))


@pytest.mark.parametrize(
    "config",
    [config for config in topic_configs().values() if config.effect is Effect.ACTS],
    ids=lambda config: config.name,
)
def test_every_topic_config_that_acts_is_read(config: ConfigDef) -> None:
    own = {config.name: another_text(config)}
    assert validate_topic_configs(own, tiered=True, strict=True) is None
    configs = BrokerConfigs(1)
    before = configs.topic("t")
    configs.update(replace(IMAGE, topic_configs={"t": own}))
    assert configs.topic("t") != before


ON_DISK: Final = {"log.dirs": "/data/broker-1"}
"""What says that logs are kept in files."""


@pytest.mark.parametrize(
    "config",
    [config for config in broker_configs().values() if config.effect is Effect.ON_DISK],
    ids=lambda config: config.name,
)
def test_every_broker_config_that_acts_on_files_is_read(config: ConfigDef) -> None:
    static = {config.name: another_text(config)}
    assert validate_static_configs(static, on_disk=True, strict=True) is None
    assert validate_static_configs(static, strict=True) is not None, "it would have no effect"
    assert shown(BrokerConfigs(1, {**ON_DISK, **static})) != shown(BrokerConfigs(1, ON_DISK))


@pytest.mark.parametrize(
    "config",
    [config for config in topic_configs().values() if config.effect is Effect.ON_DISK],
    ids=lambda config: config.name,
)
def test_every_topic_config_that_acts_on_files_is_read(config: ConfigDef) -> None:
    own = {config.name: another_text(config)}
    assert validate_topic_configs(own, on_disk=True, strict=True) is None
    assert validate_topic_configs(own, strict=True) is not None, "it would have no effect"
    configs = BrokerConfigs(1, ON_DISK)
    before = configs.topic("t")
    configs.update(replace(IMAGE, topic_configs={"t": own}))
    assert configs.topic("t") != before


def test_with_fsync_every_append_is_forced_to_disk_whatever_the_topic_says() -> None:
    configs = BrokerConfigs(1, ON_DISK, log_template=LogConfig(flush_messages=1))
    configs.update(replace(IMAGE, topic_configs={"t": {"flush.messages": "1000"}}))
    assert configs.log_config("t").flush_messages == 1


def test_the_log_directories_are_where_the_files_are() -> None:
    assert BrokerConfigs(1, ON_DISK).log_dirs == ("/data/broker-1",)
    assert BrokerConfigs(1).log_dirs == ("/tmp/kafka-logs",)


@pytest.mark.parametrize(
    ("types", "configs"),
    [
        (BrokerConfigs.__annotations__, broker_configs()),
        (
            {name: kind for name, kind in TopicSettings.__annotations__.items() if name != "log"},
            topic_configs(),
        ),
        (TopicLogConfig.__annotations__, topic_configs()),
    ],
    ids=["BrokerConfigs", "TopicSettings", "LogConfig"],
)
def test_attributes_have_the_types_of_their_configs(
    types: Mapping[str, object], configs: Table
) -> None:
    assert types
    for name, type_ in types.items():
        config = configs[name.replace("_", ".")]
        allowed = ATTRIBUTE_TYPES[config.type]
        assert config.default is not None or type_ == allowed | None, name
        is_enum = isinstance(type_, type) and issubclass(type_, StrEnum) and allowed is str
        assert config.default is None or type_ == allowed or is_enum, name


def test_defaults_are_kafkas() -> None:
    configs = BrokerConfigs(1)
    assert configs.log_config("t") == LogConfig()
    assert configs.min_insync_replicas("t") == 1
    assert configs.num_partitions == 1
    assert configs.broker_rack is None
    assert configs.socket_request_max_bytes == 104857600


def test_a_topics_own_configs_hold_before_the_brokers() -> None:
    configs = BrokerConfigs(
        1, {"log.segment.bytes": "2000000", "log.message.timestamp.type": "LogAppendTime"}
    )
    configs.update(replace(IMAGE, topic_configs={"t": {"segment.bytes": "3000000"}}))
    assert configs.log_config("t").segment_bytes == 3000000
    assert configs.log_config("t").message_timestamp_type is TimestampType.LOG_APPEND_TIME
    assert configs.log_config("other").segment_bytes == 2000000


def test_a_brokers_own_config_holds_before_the_default_of_all_and_that_before_the_static_one() -> (
    None
):
    configs = BrokerConfigs(1, {"message.max.bytes": "10"})
    assert configs.log_config("t").max_message_bytes == 10
    configs.update(replace(IMAGE, broker_configs={None: {"message.max.bytes": "20"}}))
    assert configs.log_config("t").max_message_bytes == 20
    configs.update(
        replace(
            IMAGE,
            broker_configs={
                None: {"message.max.bytes": "20"},
                1: {"message.max.bytes": "30"},
                2: {"message.max.bytes": "40"},
            },
        )
    )
    assert configs.log_config("t").max_message_bytes == 30
    configs.update(IMAGE)
    assert configs.log_config("t").max_message_bytes == 10


def test_settings_follow_the_view() -> None:
    configs = BrokerConfigs(1)
    configs.update(replace(IMAGE, broker_configs={None: {"producer.id.expiration.ms": "7"}}))
    assert configs.producer_id_expiration_ms == 7
    assert configs.log_config("t").producer_id_expiration_ms == 7


@pytest.mark.parametrize(
    ("static", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 2 * 3_600_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-2"}, -1),
    ],
)
def test_the_finest_unit_of_retention_holds(static: Mapping[str, str], retention_ms: int) -> None:
    assert BrokerConfigs(1, static).log_config("t").retention_ms == retention_ms


def test_internal_segment_bytes_has_precedence_over_segment_bytes() -> None:
    configs = BrokerConfigs(1)
    own = {"segment.bytes": "2000000", "internal.segment.bytes": "100"}
    configs.update(replace(IMAGE, topic_configs={"t": own}))
    assert configs.log_config("t").segment_bytes == 100


def test_topics_with_the_same_configs_share_them() -> None:
    configs = BrokerConfigs(1)
    own = {"segment.ms": "5", "retention.ms": "6"}
    turned = {"retention.ms": "6", "segment.ms": "5"}
    configs.update(replace(IMAGE, topic_configs={"a": own, "b": turned}))
    assert configs.topic("a") is configs.topic("b")
    assert configs.topic("c") is configs.topic("d")
    assert configs.topic("a") is not configs.topic("c")


def test_the_cache_of_parsed_topic_configs_is_bounded() -> None:
    configs = BrokerConfigs(1)
    for at in range(1, 3000):
        configs.update(replace(IMAGE, topic_configs={"t": {"segment.ms": str(at)}}))
        assert configs.log_config("t").segment_ms == at
    assert len(configs._topics) <= 1024


def test_options_that_are_no_configs_come_from_the_template() -> None:
    configs = BrokerConfigs(1, log_template=LogConfig(require_zero_base_offset=True))
    assert configs.log_config("t").require_zero_base_offset
    assert not BrokerConfigs(1).log_config("t").require_zero_base_offset


def test_the_offsets_topic_is_compacted_in_its_own_segments() -> None:
    configs = BrokerConfigs(1, {"offsets.topic.segment.bytes": "5000000"})
    assert configs.offsets_topic_configs == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "5000000",
    }
    assert validate_topic_configs({**configs.offsets_topic_configs}) is None


def test_synonyms_stand_in_the_order_in_which_they_hold() -> None:
    layers = ConfigLayers(
        static={"log.retention.hours": "7", "log.retention.ms": "3"},
        cluster_default={"log.retention.ms": "2"},
        own={"log.retention.ms": "1"},
    )
    assert [tuple(setting) for setting in layers.synonyms("log.retention.ms")] == [
        ("log.retention.ms", "1", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ("log.retention.ms", "2", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ("log.retention.ms", "3", ConfigSource.STATIC_BROKER_CONFIG),
        ("log.retention.hours", "7", ConfigSource.STATIC_BROKER_CONFIG),
        ("log.retention.hours", "168", ConfigSource.DEFAULT_CONFIG),
    ]


def test_synonyms_of_a_config_without_a_text_are_not_listed() -> None:
    layers = ConfigLayers(static={"log.retention.minutes": "5"})
    assert layers.synonyms("log.retention.ms") == ()
    assert [setting.name for setting in layers.synonyms("log.retention.minutes")] == [
        "log.retention.minutes",
        "log.retention.hours",
    ]
    assert layers.topic_defaults["retention.ms"] == 300_000


def test_every_synonym_in_another_unit_is_a_config() -> None:
    assert unit_synonyms().keys() <= broker_configs().keys()


def test_static_configs_have_the_id_and_the_address_of_the_broker() -> None:
    static = static_configs(
        {"num.partitions": "4", "broker.rack": "everywhere"},
        broker_id=2,
        addresses=[Address(host="::1", port=9093, advertised_host="kafka.test")],
        rack="here",
    )
    layers = ConfigLayers(static=static)
    assert layers.value("node.id") == layers.value("broker.id") == 2
    assert layers.value("listeners") == ("PLAINTEXT://[::1]:9093",)
    assert layers.value("advertised.listeners") == ("PLAINTEXT://kafka.test:9093",)
    assert layers.value("num.partitions") == 4
    assert layers.value("broker.rack") == "here"
