"""Broker configs: the table, their synonyms, and validation of static and dynamic ones.

A broker's configs come in layers, the first that has a text wins: dynamic ones of this broker,
dynamic ones of the whole cluster (the default), static ones from the start, and Kafka's defaults.

As at a real broker a name that no config has is taken: plugins read configs of their own. Strict
validation refuses it, and every config that has no effect here.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from fencepost.broker.configs.config_def import (
    ConfigDef,
    ConfigError,
    InvalidConfig,
    Table,
    UpdateMode,
    parse,
    require_effect,
)
from fencepost.broker.configs.config_table import config_tables
from fencepost.broker.configs.topic_configs import broker_synonyms, topic_configs
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.lookup import config_name_hint

_OF_LISTENER: Final = re.compile(r"listener\.name\.[^.]*\.(.*)", re.DOTALL)
_OF_MECHANISM: Final = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)
"""What a listener may have for each SASL mechanism, whose name then stands before it."""
_OF_PLUGINS: Final = ("config.providers.", "listener.name.", "rlmm.config.", "rsm.config.")
"""How names begin that a Kafka does not define, and yet reads."""


def broker_configs() -> Table:
    """Every broker config, by name."""
    return config_tables().broker


def find_broker_config(name: str) -> ConfigDef | None:
    """The config that a name means, without its listener's prefix; None where there is none."""
    table = broker_configs()
    listener = _OF_LISTENER.fullmatch(name)
    if name in table or listener is None:
        return table.get(name)
    base = listener[1]
    return table.get(next((each for each in _OF_MECHANISM if base.endswith(each)), base))


def unit_synonyms() -> Mapping[str, Mapping[str, int]]:
    """Broker configs that say the same in other units (``log.retention.*``), by each of the names.

    Milliseconds a unit by name; the first that has a text holds.
    """
    return config_tables().unit_synonyms


def validate_static_configs(
    configs: Mapping[str, str], *, on_disk: bool = False, strict: bool = False
) -> ConfigError | None:
    """Whether brokers may start with these configs (``--config KEY=VALUE``); None when they may.

    The message is one line for a person. A name that looks like a slip is refused. ``on_disk`` says
    whether they keep logs in files.
    """
    for name in configs:
        hint = _hint(name)
        if hint if not strict else name not in broker_configs():
            return _unknown(name, hint)
    return _type_problem(configs, ErrorCode.INVALID_CONFIG) or _effect_problem(
        configs, on_disk=on_disk, strict=strict
    )


def validate_dynamic_configs(
    configs: Mapping[str, str], *, per_broker: bool, on_disk: bool = False, strict: bool = False
) -> ConfigError | None:
    """Whether these may be all the dynamic configs of a broker, or (not ``per_broker``) of all.

    A set that Kafka refuses is INVALID_REQUEST in its words; one that fencepost alone refuses is
    INVALID_CONFIG.
    """
    unknown = unknown_broker_config(configs) if strict else None
    return (
        unknown
        or _mode_problem(configs)
        or _type_problem(configs, ErrorCode.INVALID_REQUEST)
        or (None if per_broker else _level_problem(configs))
        or _effect_problem(configs, on_disk=on_disk, strict=strict)
    )


def unknown_broker_config(names: Iterable[str]) -> ConfigError | None:
    """The error for the first name that no broker config has; None when there is none."""
    for name in names:
        if name not in broker_configs():
            return _unknown(name, _hint(name))
    return None


def unknown_name_reason(name: str) -> str:
    """Why a name that no broker config has does nothing, with the config that may be meant."""
    if name.startswith(_OF_PLUGINS[1]):
        return "a broker has one listener, and its configs take no prefix"
    return f"there is no such config{_hint(name)}"


def _unknown(name: str, hint: str) -> ConfigError:
    if name.startswith(_OF_PLUGINS[1]):
        hint = f"; {unknown_name_reason(name)}"
    return ConfigError(code=ErrorCode.INVALID_CONFIG, message=f"Unknown config name: {name}{hint}")


def _hint(name: str) -> str:
    """A clause with the config that was probably meant, empty where no name is near."""
    if name in broker_configs() or name.startswith(_OF_PLUGINS):
        return ""
    hint = config_name_hint(name, broker_configs(), broker_synonyms(), "broker")
    return hint or ("; it is a config of topics alone" if name in topic_configs() else "")


def _mode_problem(configs: Mapping[str, str]) -> ConfigError | None:
    """What may not change while a broker runs."""
    known = [config for name in configs if (config := broker_configs().get(name)) is not None]
    fixed = [config.name for config in known if config.mode is UpdateMode.READ_ONLY]
    if fixed:
        return _refused(f"Cannot update these configs dynamically: {_listed(fixed)}")
    secured = [config.name for config in known if config.by_listener]
    if secured:
        return _refused(
            "These security configs can be dynamically updated only per-listener using the "
            f"listener prefix: {_listed(secured)}"
        )
    return None


def _level_problem(configs: Mapping[str, str]) -> ConfigError | None:
    """What may not be set for all brokers at once."""
    own_only = [name for name in configs if _is_per_broker(name)]
    if not own_only:
        return None
    return _refused(
        "Cannot update these configs at default cluster level, broker id must be specified: "
        f"{_listed(own_only)}"
    )


def _is_per_broker(name: str) -> bool:
    config = broker_configs().get(name)
    if config is not None:
        return config.mode is UpdateMode.PER_BROKER
    listener = _OF_LISTENER.fullmatch(name)
    return listener is not None and listener[1] not in (
        "max.connections",
        "max.connection.creation.rate",
        "num.network.threads",
    )


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(sorted(names))}]"


def _refused(message: str) -> ConfigError:
    return ConfigError(code=ErrorCode.INVALID_REQUEST, message=message)


def _type_problem(configs: Mapping[str, str], code: ErrorCode) -> ConfigError | None:
    try:
        for name, text in configs.items():
            config = find_broker_config(name)
            if config is not None:
                _require_time(config.name, parse(config, text))
    except InvalidConfig as error:
        return ConfigError(code=code, message=str(error))
    return None


def _effect_problem(
    configs: Mapping[str, str], *, on_disk: bool, strict: bool
) -> ConfigError | None:
    if not strict:
        return None
    table = broker_configs()
    try:
        for name, text in configs.items():
            require_effect(table[name], text, parse(table[name], text), on_disk=on_disk)
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
