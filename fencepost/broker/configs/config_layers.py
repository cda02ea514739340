"""Where a broker's configs come from: the layers, the value that holds, and all its synonyms.

Of a broker config's texts the first wins: the dynamic one of this broker, the dynamic one for the
whole cluster, the static one from the start, Kafka's default. A topic config that a topic does not
have takes the value of its broker synonym.
"""

from collections.abc import Mapping
from enum import IntEnum
from functools import cached_property
from types import MappingProxyType
from typing import Final, NamedTuple

from fencepost.broker.configs.broker_configs import broker_configs, unit_synonyms
from fencepost.broker.configs.config_def import ConfigError, Value, parse
from fencepost.broker.configs.topic_configs import (
    broker_synonyms,
    topic_configs,
    topic_defaults,
    validate_topic_configs,
)

NO_CONFIGS: Final[Mapping[str, str]] = MappingProxyType({})


class ConfigSource(IntEnum):
    """Where a value comes from, numbered as DescribeConfigs answers it."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class ConfigSynonym(NamedTuple):
    """One place where a config, or a synonym of it, has a text."""

    name: str
    text: str
    source: ConfigSource


class ConfigLayers:
    """One broker's configs, as they are at one moment; all of them have been validated.

    ``static`` are those it was started with, ``cluster_default`` the dynamic ones for all brokers,
    ``own`` the dynamic ones for this one. ``defaults`` are defaults that are not Kafka's.
    """

    def __init__(
        self,
        *,
        static: Mapping[str, str] = NO_CONFIGS,
        cluster_default: Mapping[str, str] = NO_CONFIGS,
        own: Mapping[str, str] = NO_CONFIGS,
        defaults: Mapping[str, str] = NO_CONFIGS,
        strict: bool = False,
    ) -> None:
        self.strict = strict
        """Whether a config without effect is refused (``--strict-configs``)."""
        self.static = static
        self.cluster_default = cluster_default
        self.own = own
        self._layers = (
            (own, ConfigSource.DYNAMIC_BROKER_CONFIG),
            (cluster_default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (static, ConfigSource.STATIC_BROKER_CONFIG),
            (defaults, ConfigSource.DEFAULT_CONFIG),
        )
        self._defaults = defaults
        self._texts = {**defaults, **static, **cluster_default, **own}

    def value(self, name: str) -> Value:
        """The value of a broker config by itself: its synonyms in other units are not looked at.

        :raises KeyError: When there is no such config.
        """
        config = broker_configs()[name]
        text = self._texts.get(name)
        return config.default_value if text is None else parse(config, text)

    def has_text(self, name: str) -> bool:
        """Whether a broker config has a text of its own; else `value` is Kafka's default."""
        return name in self._texts

    def with_dynamic(self, configs: Mapping[str, str], *, per_broker: bool) -> "ConfigLayers":
        """The same with other dynamic configs of this broker, or else of the whole cluster."""
        if per_broker:
            return self.replaced(cluster_default=self.cluster_default, own=configs)
        return self.replaced(cluster_default=configs, own=self.own)

    def replaced(
        self, *, cluster_default: Mapping[str, str], own: Mapping[str, str]
    ) -> "ConfigLayers":
        """The same with other dynamic configs."""
        return ConfigLayers(
            static=self.static,
            cluster_default=cluster_default,
            own=own,
            defaults=self._defaults,
            strict=self.strict,
        )

    def is_set(self, name: str) -> bool:
        """Whether a broker config was set, at the start or later."""
        return name in self.static or self.is_dynamic(name)

    def is_dynamic(self, name: str) -> bool:
        """Whether a broker config was set while the broker ran."""
        return name in self.own or name in self.cluster_default

    @cached_property
    def on_disk(self) -> bool:
        """Whether logs are kept in files."""
        return self.value("log.dirs") is not None

    @cached_property
    def has_tier(self) -> bool:
        """Whether the broker serves tiered storage."""
        return self.value("remote.log.storage.system.enable") is True

    @cached_property
    def topic_defaults(self) -> Mapping[str, Value]:
        """The value of every topic config for a topic that has none of its own."""
        return {name: self._topic_default(name, value) for name, value in topic_defaults().items()}

    @cached_property
    def problem_of_defaults(self) -> ConfigError | None:
        """Why a topic may not have the defaults alone."""
        return self.topic_problem({})

    def topic_problem(
        self, configs: Mapping[str, str | None], before: Mapping[str, str] = NO_CONFIGS
    ) -> ConfigError | None:
        """Why a topic may not have these configs, all of them together; None when it may.

        :param before: The configs that the topic has so far.
        """
        return validate_topic_configs(
            configs,
            self.topic_defaults,
            tiered=self.has_tier,
            on_disk=self.on_disk,
            strict=self.strict,
            before=before,
        )

    def topic_values(self, configs: Mapping[str, str]) -> Mapping[str, Value]:
        """The value of every topic config for a topic with these dynamic configs."""
        table = topic_configs()
        own = {name: parse(table[name], text) for name, text in configs.items()}
        return {**self.topic_defaults, **own}

    def synonyms(self, name: str) -> tuple[ConfigSynonym, ...]:
        """The texts of a broker config and of its synonyms in other units; the first holds.

        As at a real broker the list begins with the config itself. It is empty where only synonyms
        have a text, although the value is then theirs.
        """
        names = tuple(unit_synonyms().get(name, (name,)))
        found = [synonym for each in names for synonym in self.texts_of(each)]
        for place, synonym in enumerate(found):
            if synonym.name == name:
                return tuple(found[place:])
        return ()

    def texts_of(self, name: str) -> list[ConfigSynonym]:
        """The texts of one name, which need not be a config; the first holds."""
        found = [
            ConfigSynonym(name, layer[name], source)
            for layer, source in self._layers
            if name in layer
        ]
        config = None if name in self._defaults else broker_configs().get(name)
        if config is not None and config.default is not None and not config.hidden:
            found.append(ConfigSynonym(name, config.default, ConfigSource.DEFAULT_CONFIG))
        return found

    @property
    def names(self) -> frozenset[str]:
        """Every name that has a text, be it a config or not."""
        return frozenset(name for layer, _ in self._layers for name in layer)

    def _topic_default(self, topic_config: str, value: Value) -> Value:
        name = broker_synonyms().get(topic_config)
        if name is None:
            return value
        for synonym, factor in unit_synonyms().get(name, {name: 1}).items():
            found = self.value(synonym)
            if found is not None:
                return _in_ms(synonym, found, factor)
        return value


def _in_ms(name: str, value: Value, factor: int) -> Value:
    """A value in the unit of its first synonym; every negative retention is -1, as in Kafka."""
    if name not in unit_synonyms() or not isinstance(value, int):
        return value
    return -1 if value < 0 else value * factor
