"""Topic configs: the table, the broker configs that hold their defaults, and validation.

CreateTopics, AlterConfigs and IncrementalAlterConfigs all call `validate_topic_configs`.
"""

from collections.abc import Mapping
from functools import cache

from fencepost.broker.configs import tiered_validation
from fencepost.broker.configs.config_def import (
    ConfigError,
    InvalidConfig,
    Table,
    Value,
    default_value,
    parse,
    require_effect,
)
from fencepost.broker.configs.config_table import config_tables
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.lookup import config_name_hint


def topic_configs() -> Table:
    """Every topic config, by name."""
    return config_tables().topic


@cache
def broker_synonyms() -> Mapping[str, str]:
    """The broker config that a topic config takes its default from, by topic config."""
    return {name: config.synonym for name, config in topic_configs().items() if config.synonym}


@cache
def topic_defaults() -> Mapping[str, Value]:
    """The defaults of every topic config, parsed, where no broker config says otherwise."""
    return {name: default_value(config) for name, config in topic_configs().items()}


def validate_topic_configs(
    configs: Mapping[str, str | None],
    defaults: Mapping[str, Value] | None = None,
    *,
    tiered: bool = False,
    on_disk: bool = False,
    before: Mapping[str, str] | None = None,
) -> ConfigError | None:
    """Whether a topic may have these configs, all of them together; None when it may.

    ``defaults`` are the values of the configs that are not among them; Kafka's own where left out
    (`ConfigLayers.topic_defaults` has the broker's). ``tiered`` says whether the broker serves
    tiered storage, ``on_disk`` whether it keeps logs in files; ``before`` are the configs that the
    topic has so far. The error is always INVALID_CONFIG, in Kafka's words where the rule is
    Kafka's.
    """
    message = _unknown(configs) or _null(configs)
    if message is None:
        try:
            values = _require_valid(configs, defaults, on_disk=on_disk)
            _require_tier(values, before or {}, tiered=tiered)
        except InvalidConfig as error:
            message = str(error)
    return None if message is None else ConfigError(code=ErrorCode.INVALID_CONFIG, message=message)


def _unknown(configs: Mapping[str, str | None]) -> str | None:
    table = topic_configs()
    for name in configs:
        if name not in table:
            others = {broker: topic for topic, broker in broker_synonyms().items()}
            hint = config_name_hint(name, table, others, "topic")
            return f"Unknown topic config name: {name}{hint}"
    return None


def _null(configs: Mapping[str, str | None]) -> str | None:
    nulls = [name for name, text in configs.items() if text is None]
    return f"Null value not supported for topic configs: {','.join(nulls)}" if nulls else None


def _require_valid(
    configs: Mapping[str, str | None],
    defaults: Mapping[str, Value] | None,
    *,
    on_disk: bool,
) -> Mapping[str, Value]:
    """All configs that the topic has then."""
    table = topic_configs()
    texts = {name: text for name, text in configs.items() if text is not None}
    parsed = {name: parse(table[name], text) for name, text in texts.items()}
    values = {**(topic_defaults() if defaults is None else defaults), **parsed}
    _require_order(values)
    for name, text in texts.items():
        require_effect(table[name], text, parsed[name], on_disk=on_disk)
    return values


def _require_tier(values: Mapping[str, Value], before: Mapping[str, str], *, tiered: bool) -> None:
    name = "remote.storage.enable"
    if values[name]:
        tiered_validation.validate_remote_storage(values, tiered=tiered)
    elif name in before and parse(topic_configs()[name], before[name]):
        tiered_validation.validate_remote_storage_disable(values)


def _require_order(values: Mapping[str, Value]) -> None:
    low, high = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if isinstance(low, int) and isinstance(high, int) and low > high:
        raise InvalidConfig(
            f"conflict topic config setting min.compaction.lag.ms ({low}) "
            f"> max.compaction.lag.ms ({high})"
        )
