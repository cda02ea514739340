"""Local retention of all topics, which dynamic configs of brokers may change (KIP-405)."""

from collections.abc import Mapping

from fencepost.broker.configs.broker import broker_configs
from fencepost.broker.configs.definitions import ConfigError, InvalidConfig, Value, parse
from fencepost.broker.configs.tiering import require_within
from fencepost.broker.configs.topic import BROKER_SYNONYMS
from fencepost.protocol.errors import ErrorCode


def local_retention_problem(
    configs: Mapping[str, str], defaults: Mapping[str, Value]
) -> ConfigError | None:
    """Whether more would be kept here than in all; the error is Apache Kafka's.

    :param configs: Dynamic configs of brokers, each of which is valid.
    :param defaults: What holds without them, by topic config.
    """
    table = broker_configs()
    for unit in ("bytes", "ms"):
        total, local = f"retention.{unit}", f"local.retention.{unit}"
        names = BROKER_SYNONYMS[total], BROKER_SYNONYMS[local]
        if not configs.keys() & names:
            continue
        limit, kept = (
            parse(table[name], configs[name]) if name in configs else defaults[topic_config]
            for name, topic_config in zip(names, (total, local), strict=True)
        )
        try:
            require_within(names[1], kept, names[0], limit)
        except InvalidConfig as error:
            return ConfigError(
                code=ErrorCode.INVALID_REQUEST,
                message="Invalid value org.apache.kafka.common.config.ConfigException: "
                f"{error} for configuration Invalid dynamic configuration",
            )
    return None
