"""Configs of client metrics subscriptions (KIP-714): the table, validation, and what they say.

A subscription asks the clients that match all of its patterns for metrics by the prefixes of their
names. Patterns are regular expressions, which match the whole of a client's attribute.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from fencepost.broker.configs.config_def import (
    ConfigError,
    InvalidConfig,
    Table,
    parse,
)
from fencepost.broker.configs.config_table import config_tables
from fencepost.protocol.errors import ErrorCode

ALL_METRICS: Final = "*"
_METRICS: Final = "metrics"
_INTERVAL: Final = "interval.ms"
_MATCH: Final = "match"
_MIN_INTERVAL_MS: Final = 100
_MAX_INTERVAL_MS: Final = 3_600_000
ATTRIBUTES: Final = (
    *("client_id", "client_instance_id", "client_software_name", "client_software_version"),
    *("client_source_address", "client_source_port"),
)
"""What a pattern may look at."""


class Subscription(Struct, frozen=True, kw_only=True):
    """What a subscription asks for, and of which clients."""

    metrics: frozenset[str]
    """Prefixes of names; `ALL_METRICS` for each one."""
    interval_ms: int
    patterns: Mapping[str, re.Pattern[str]]
    """By attribute; a client matches all of them."""

    def matches(self, attributes: Mapping[str, str | None]) -> bool:
        """Whether a client with these attributes is asked; without patterns each one is."""
        return all(
            (text := attributes.get(name)) is not None and pattern.fullmatch(text) is not None
            for name, pattern in self.patterns.items()
        )


def client_metrics_configs() -> Table:
    """Every config of a client metrics subscription, by name."""
    return config_tables().client_metrics


def parse_subscription(configs: Mapping[str, str]) -> Subscription:
    """What valid configs say."""
    table = client_metrics_configs()
    metrics, interval_ms, match = (
        parse(table[name], configs[name]) if name in configs else table[name].default_value
        for name in (_METRICS, _INTERVAL, _MATCH)
    )
    assert isinstance(metrics, tuple)
    assert isinstance(interval_ms, int)
    assert isinstance(match, tuple)
    return Subscription(
        metrics=frozenset(metrics), interval_ms=interval_ms, patterns=_patterns(match)
    )


def validate_client_metrics_configs(configs: Mapping[str, str]) -> ConfigError | None:
    """Whether a subscription may have these configs, all of them together; None when it may."""
    table = client_metrics_configs()
    for name in configs:
        if name not in table:
            return _refused(f"Unknown client metrics configuration: {name}")
    try:
        values = {name: parse(table[name], configs[name]) for name in table if name in configs}
        interval_ms = values.get(_INTERVAL, _MAX_INTERVAL_MS)
        assert isinstance(interval_ms, int)
        if not _MIN_INTERVAL_MS <= interval_ms <= _MAX_INTERVAL_MS:
            return _refused(
                f"Invalid value {interval_ms} for {_INTERVAL}, interval must be between "
                f"{_MIN_INTERVAL_MS} and {_MAX_INTERVAL_MS} (1 hour)"
            )
        parse_subscription(configs)
    except InvalidConfig as error:
        return ConfigError(code=ErrorCode.INVALID_CONFIG, message=str(error))
    return None


def _refused(message: str) -> ConfigError:
    return ConfigError(code=ErrorCode.INVALID_REQUEST, message=message)


def _patterns(match: Iterable[str]) -> dict[str, re.Pattern[str]]:
    """Patterns by attribute; of several for one attribute the last holds."""
    patterns = {}
    for text in match:
        # As in Java's split an empty end is no part.
        attribute, _, expression = text.rstrip("=").partition("=")
        try:
            patterns[attribute.strip()] = re.compile(expression.strip())
        except re.error:
            expression = ""
        if not expression or "=" in expression or attribute.strip() not in ATTRIBUTES:
            raise InvalidConfig(f"Illegal client matching pattern: {text}")
    return patterns
