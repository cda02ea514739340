"""Group configs: the table, and whether a group may have a set of them.

A group's configs must lie within the bounds that the broker sets for each of them, as
``group.consumer.min.session.timeout.ms`` does for ``consumer.session.timeout.ms``.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from fencepost.broker.configs.config_def import (
    ConfigError,
    InvalidConfig,
    Table,
    Value,
    parse,
)
from fencepost.broker.configs.config_layers import ConfigLayers
from fencepost.broker.configs.config_table import config_tables
from fencepost.protocol.errors import ErrorCode

_PROTOCOLS: Final = ("consumer", "share", "streams")
_BOUNDED: Final = (
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "consumer.assignment.interval.ms",
    "share.heartbeat.interval.ms",
    "share.session.timeout.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.session.timeout.ms",
    "streams.num.standby.replicas",
    "streams.assignment.interval.ms",
)
"""In the order in which Kafka checks their bounds."""
_ONLY_WHERE_SET: Final = "assignment.interval.ms"
"""The end of the configs whose defaults are not checked."""
_MAX_STANDBYS: Final = "group.streams.max.standby.replicas"
_RESET: Final = "share.auto.offset.reset"
_DURATION: Final = re.compile(
    r"(?P<sign>[-+]?)P(?=T?[-+\d])(?:(?P<days>[-+]?\d+)D)?"
    r"(?:T(?=[-+\d])(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?"
    r"(?:(?P<seconds>[-+]?\d+(?:[.,]\d{0,9})?)S)?)?",
    re.ASCII | re.IGNORECASE,
)
"""As Java's ``Duration.parse`` takes it."""
_SECONDS: Final = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}


def group_configs() -> Table:
    """Every group config, by name."""
    return config_tables().group


def validate_group_configs(configs: Mapping[str, str], broker: ConfigLayers) -> ConfigError | None:
    """Whether a group may have these dynamic configs, all of them together; None when it may."""
    message = _problem(configs, broker)
    return None if message is None else ConfigError(code=ErrorCode.INVALID_CONFIG, message=message)


def group_value(name: str, configs: Mapping[str, str], broker: ConfigLayers) -> Value:
    """The value of a config for a group with these dynamic ones, all of which are valid."""
    config = group_configs()[name]
    if name in configs:
        return parse(config, configs[name])
    return broker.value(config.synonym) if config.synonym else config.default_value


def _problem(configs: Mapping[str, str], broker: ConfigLayers) -> str | None:
    table = group_configs()
    for name in configs:
        if name not in table:
            return f"Unknown group config name: {name}"
    try:
        for name in config_tables().group_order:
            if name in configs:
                _check(name, parse(table[name], configs[name]))
    except InvalidConfig as error:
        return str(error)
    values = {name: group_value(name, configs, broker) for name in table}
    return next(_out_of_bounds(configs, values, broker), None)


def _check(name: str, value: Value) -> None:
    if name == _RESET and not _is_reset_strategy(str(value)):
        raise InvalidConfig(
            f"Invalid value {value} for configuration {name}: Invalid value `{value}` for "
            f"configuration {name}. The value must be either 'earliest', 'latest' or of the format "
            "'by_duration:<PnDTnHnMn.nS>'."
        )


def _out_of_bounds(
    configs: Mapping[str, str], values: Mapping[str, Value], broker: ConfigLayers
) -> Iterator[str]:
    for name in _BOUNDED:
        if name.endswith(_ONLY_WHERE_SET) and name not in configs:
            continue
        value, (low, high) = _number(values[name]), _bounds(name)
        if low is not None and value < _number(broker.value(low)):
            yield f"{name} must be greater than or equal to {low}"
        if value > _number(broker.value(high)):
            yield f"{name} must be less than or equal to {high}"
    for protocol in _PROTOCOLS:
        session, beat = f"{protocol}.session.timeout.ms", f"{protocol}.heartbeat.interval.ms"
        if _number(values[session]) <= _number(values[beat]):
            yield f"{session} must be greater than {beat}"


def _bounds(name: str) -> tuple[str | None, str]:
    """The broker configs with the lowest, if there is one, and the highest value of a config."""
    if name == "streams.num.standby.replicas":
        return None, _MAX_STANDBYS
    protocol, _, rest = name.partition(".")
    return f"group.{protocol}.min.{rest}", f"group.{protocol}.max.{rest}"


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _is_reset_strategy(text: str) -> bool:
    if text in ("earliest", "latest"):
        return True
    strategy, _, duration = text.partition(":")
    found = _DURATION.fullmatch(duration)
    if strategy != "by_duration" or found is None:
        return False
    seconds = sum(
        float((found[unit] or "0").replace(",", ".")) * factor for unit, factor in _SECONDS.items()
    )
    return (-seconds if found["sign"] == "-" else seconds) >= 0
