"""Broker configs: the table, their synonyms, and validation of static and dynamic ones.

A broker's configs come in layers, the first that has a text wins: dynamic ones of this broker,
dynamic ones of the whole cluster (the default), static ones from the start, and Kafka's defaults.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from fencepost.broker.configs import fencepost_configs, tables
from fencepost.broker.configs.config_def import (
    ConfigError,
    InvalidConfig,
    Table,
    UpdateMode,
    parse,
    require_effect,
)
from fencepost.broker.configs.topic_configs import BROKER_SYNONYMS
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.lookup import config_name_hint

_LISTENER_PREFIX: Final = "listener.name."
_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_CHAINS: Final[tuple[Mapping[str, int], ...]] = (
    {"log.retention.ms": 1, "log.retention.minutes": _MINUTE_MS, "log.retention.hours": _HOUR_MS},
    {"log.roll.ms": 1, "log.roll.hours": _HOUR_MS},
    {"log.roll.jitter.ms": 1, "log.roll.jitter.hours": _HOUR_MS},
    {"log.flush.interval.ms": 1, "log.flush.scheduler.interval.ms": 1},
)
"""Configs that say the same in other units: the first that is set holds. Milliseconds a unit."""
CHAINS: Final[Mapping[str, Mapping[str, int]]] = {name: c for c in _CHAINS for name in c}
"""The chain that a config belongs to, by every name in it."""


@cache
def broker_configs() -> Table:
    """Every broker config, by name."""
    from fencepost.broker.configs.tables import (
        coordinators,
        groups,
        kraft,
        log,
        remote,
        replication,
        security,
        server,
    )

    kafka = (coordinators, groups, kraft, log, remote, replication, security, server)
    return tables.read(*(module.TABLE for module in kafka), fencepost_configs.BROKER)


def validate_static_configs(
    configs: Mapping[str, str], *, on_disk: bool = False
) -> ConfigError | None:
    """Whether brokers may start with these configs (``--config KEY=VALUE``); None when they may.

    The message is one line for whoever started them. ``on_disk`` says whether they keep logs in
    files.
    """
    unknown = unknown_broker_config(configs)
    return unknown or _validate_values(configs, ErrorCode.INVALID_CONFIG, on_disk=on_disk)


def validate_dynamic_configs(
    configs: Mapping[str, str], *, per_broker: bool, on_disk: bool = False
) -> ConfigError | None:
    """Whether these may be all the dynamic configs of a broker, or (not ``per_broker``) of all.

    What Kafka refuses is INVALID_REQUEST in its words; what fencepost alone refuses is
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
                hint = config_name_hint(name, table, BROKER_SYNONYMS, "broker")
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
    if name.startswith("log.retention.") and value == 0 and name in CHAINS:
        raise InvalidConfig(
            "requirement failed: log.retention.ms must be unlimited (-1) or, "
            "greater than or equal to 1"
        )
    if name == "log.roll.ms" and isinstance(value, int) and value < 1:
        raise InvalidConfig("requirement failed: log.roll.ms must be greater than or equal to 1")
