"""Broker configs: the table, their synonyms, and validation of static and dynamic ones.

A broker's configs come in layers, the first that has a text wins: dynamic ones of this broker,
dynamic ones of the whole cluster (the default), static ones from the start, and Kafka's defaults.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from fencepost.broker.configs.config_def import (
    ConfigError,
    InvalidConfig,
    Table,
    UpdateMode,
    parse,
    require_effect,
)
from fencepost.broker.configs.config_table import config_tables
from fencepost.broker.configs.topic_configs import broker_synonyms
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.lookup import config_name_hint

_LISTENER_PREFIX: Final = "listener.name."


def broker_configs() -> Table:
    """Every broker config, by name."""
    return config_tables().broker


def unit_synonyms() -> Mapping[str, Mapping[str, int]]:
    """Broker configs that say the same in other units (``log.retention.*``), by each of the names.

    Milliseconds a unit by name; the first that has a text holds.
    """
    return config_tables().unit_synonyms


def validate_static_configs(
    configs: Mapping[str, str], *, on_disk: bool = False
) -> ConfigError | None:
    """Whether brokers may start with these configs (``--config KEY=VALUE``); None when they may.

    The message is one line for a person. ``on_disk`` says whether they keep logs in
    files.
    """
    unknown = unknown_broker_config(configs)
    return unknown or _validate_values(configs, ErrorCode.INVALID_CONFIG, on_disk=on_disk)


def validate_dynamic_configs(
    configs: Mapping[str, str], *, per_broker: bool, on_disk: bool = False
) -> ConfigError | None:
    """Whether these may be all the dynamic configs of a broker, or (not ``per_broker``) of all.

    A set that Kafka refuses is INVALID_REQUEST in its words; one that fencepost alone refuses is
    INVALID_CONFIG.
    """
    unknown = unknown_broker_config(configs)
    if unknown is not None:
        return unknown
    table = broker_configs()
    fixed = sorted(name for name in configs if table[name].mode is UpdateMode.READ_ONLY)
    if fixed:
        return _refused(f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    own_only = sorted(name for name in configs if table[name].mode is UpdateMode.PER_BROKER)
    if own_only and not per_broker:
        return _refused(
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"[{', '.join(own_only)}]"
        )
    return _validate_values(configs, ErrorCode.INVALID_REQUEST, on_disk=on_disk)


def _refused(message: str) -> ConfigError:
    return ConfigError(code=ErrorCode.INVALID_REQUEST, message=message)


def unknown_broker_config(names: Iterable[str]) -> ConfigError | None:
    """The error for the first name that no broker config has; None when there is none."""
    table = broker_configs()
    for name in names:
        if name not in table:
            if name.startswith(_LISTENER_PREFIX):
                hint = "; a broker has one listener, and its configs take no prefix"
            else:
                hint = config_name_hint(name, table, broker_synonyms(), "broker")
            message = f"Unknown config name: {name}{hint}"
            return ConfigError(code=ErrorCode.INVALID_CONFIG, message=message)
    return None


def _validate_values(
    configs: Mapping[str, str], code: ErrorCode, *, on_disk: bool
) -> ConfigError | None:
    table = broker_configs()
    try:
        values = {name: parse(table[name], text) for name, text in configs.items()}
        for name, value in values.items():
            _require_time(name, value)
    except InvalidConfig as error:
        return ConfigError(code=code, message=str(error))
    try:
        for name, text in configs.items():
            require_effect(table[name], text, values[name], on_disk=on_disk)
    except InvalidConfig as error:
        return ConfigError(code=ErrorCode.INVALID_CONFIG, message=str(error))
    return None


def _require_time(name: str, value: object) -> None:
    """Bounds that Kafka's table leaves out and its broker checks apart."""
    if name.startswith("log.retention.") and value == 0 and name in unit_synonyms():
        raise InvalidConfig(
            "requirement failed: log.retention.ms must be unlimited (-1) or, "
            "greater than or equal to 1"
        )
    if name == "log.roll.ms" and isinstance(value, int) and value < 1:
        raise InvalidConfig("requirement failed: log.roll.ms must be greater than or equal to 1")
