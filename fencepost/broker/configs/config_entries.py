"""What DescribeConfigs answers for each kind of resource: entries with value, source and synonyms.

Entries are in the order of their names. Those that are fencepost's own are among all only where
they are set: tools know Kafka's. A sensitive config has no value, in its synonyms neither.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from fencepost.broker.configs.broker_configs import broker_configs, find_broker_config
from fencepost.broker.configs.client_metrics_configs import client_metrics_configs
from fencepost.broker.configs.config_def import (
    ConfigDef,
    ConfigType,
    UpdateMode,
    Value,
    parse,
    to_text,
)
from fencepost.broker.configs.config_layers import ConfigLayers, ConfigSource, ConfigSynonym
from fencepost.broker.configs.config_table import own_configs
from fencepost.broker.configs.group_configs import group_configs, group_value
from fencepost.broker.configs.topic_configs import topic_configs
from fencepost.broker.core.log_levels import LogLevels
from fencepost.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)

Entries = Iterator[DescribeConfigsResourceResult]


def topic_entries(
    broker: ConfigLayers, configs: Mapping[str, str], keys: Collection[str] | None
) -> Entries:
    """The configs of a topic with these dynamic ones; all of them where ``keys`` is None."""
    values = broker.topic_values(configs)
    defaults, own = _default_topic_entries(broker), own_configs()
    for name, config in topic_configs().items():
        if keys is None and name in own and name not in configs and not _is_set(broker, config):
            continue
        if keys is not None and name not in keys:
            continue
        if name in configs:
            found = list(broker.synonyms(config.synonym)) if config.synonym else []
            text = to_text(values[name]) or ""
            found.insert(0, ConfigSynonym(name, text, ConfigSource.DYNAMIC_TOPIC_CONFIG))
            yield _entry(config, values[name], found, read_only=False)
        elif not config.hidden:
            yield defaults[name]


def _is_set(broker: ConfigLayers, config: ConfigDef) -> bool:
    return config.synonym is not None and broker.is_set(config.synonym)


@lru_cache(maxsize=8)
def _default_topic_entries(broker: ConfigLayers) -> Mapping[str, DescribeConfigsResourceResult]:
    """The entries of a topic without configs of its own: the same for all that it has."""
    return {
        name: _entry(
            config,
            broker.topic_defaults[name],
            broker.synonyms(config.synonym) if config.synonym else (),
            read_only=False,
        )
        for name, config in topic_configs().items()
    }


def broker_entries(broker: ConfigLayers, keys: Collection[str] | None) -> Entries:
    """The configs of a broker; all of them where ``keys`` is None."""
    table, own = broker_configs(), own_configs()
    for name, config in table.items():
        if keys is None and name in own and not broker.is_set(name):
            continue
        if keys is None or name in keys:
            found = broker.synonyms(name)
            if config.hidden and not found:
                continue
            read_only = config.mode is UpdateMode.READ_ONLY
            yield _entry(config, broker.value(name), found, read_only=read_only)
    for name in sorted(broker.names - table.keys()):
        if keys is None or name in keys:
            yield _entry_of_plugin(name, _texts_with_base(broker, name))


def cluster_default_entries(broker: ConfigLayers, keys: Collection[str] | None) -> Entries:
    """The dynamic configs that every broker has by default: only those that are set."""
    table = broker_configs()
    for name, text in sorted(broker.cluster_default.items()):
        if keys is None or name in keys:
            found = ConfigSynonym(name, text, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
            config = table.get(name)
            yield (
                _entry_of_plugin(name, [found])
                if config is None
                else _entry(config, parse(config, text), [found], read_only=False)
            )


def group_entries(
    broker: ConfigLayers, configs: Mapping[str, str], keys: Collection[str] | None
) -> Entries:
    """The configs of a group with these dynamic ones: broker configs give the defaults."""
    for name, config in group_configs().items():
        if keys is not None and name not in keys:
            continue
        value = group_value(name, configs, broker)
        if config.synonym:
            found = list(broker.synonyms(config.synonym))
        else:
            found = [ConfigSynonym(name, config.default or "", ConfigSource.DEFAULT_CONFIG)]
        if name in configs:
            text = to_text(value) or ""
            found.insert(0, ConfigSynonym(name, text, ConfigSource.GROUP_CONFIG))
        yield _entry(config, value, found, read_only=False)


def client_metrics_entries(configs: Mapping[str, str], keys: Collection[str] | None) -> Entries:
    """The configs of a client metrics subscription that has these; defaults have no synonyms."""
    for name, config in client_metrics_configs().items():
        if keys is not None and name not in keys:
            continue
        value = parse(config, configs[name]) if name in configs else config.default_value
        found = ConfigSynonym(name, to_text(value) or "", ConfigSource.CLIENT_METRICS_CONFIG)
        yield _entry(config, value, [found] if name in configs else [], read_only=False)


def logger_entries(levels: LogLevels, keys: Collection[str] | None) -> Entries:
    """The loggers of a broker with their levels."""
    for name, level in levels.by_name().items():
        if keys is None or name in keys:
            yield DescribeConfigsResourceResult(
                name=name,
                value=level.name,
                config_source=ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
                config_type=ConfigType.UNKNOWN,
            )


def _texts_with_base(broker: ConfigLayers, name: str) -> list[ConfigSynonym]:
    """The texts of a name with a listener's prefix, and those of the config behind that."""
    base = find_broker_config(name)
    found = broker.texts_of(name) + ([] if base is None else broker.texts_of(base.name))
    found.sort(key=lambda synonym: synonym.source)
    first = next(place for place, synonym in enumerate(found) if synonym.name == name)
    return found[first:]


def _entry_of_plugin(name: str, found: Collection[ConfigSynonym]) -> DescribeConfigsResourceResult:
    """A name that no broker config has: what its value is for is not known, so it is secret.

    With a listener's prefix it has the type of the config behind that.
    """
    base = find_broker_config(name)
    text = next(iter(found)).text
    config = (
        replace(base, name=name)
        if base
        else ConfigDef(name=name, type=ConfigType.UNKNOWN, default=None, doc="")
    )
    return _entry(config, text, found, read_only=True)


def _entry(
    config: ConfigDef, value: Value, found: Collection[ConfigSynonym], *, read_only: bool
) -> DescribeConfigsResourceResult:
    source = next(iter(found)).source if found else ConfigSource.DEFAULT_CONFIG
    return DescribeConfigsResourceResult(
        name=config.name,
        value=None if config.sensitive else to_text(value),
        read_only=read_only,
        config_source=source,
        is_sensitive=config.sensitive,
        synonyms=tuple(
            DescribeConfigsSynonym(
                name=setting.name,
                value=None if config.sensitive else setting.text,
                source=setting.source,
            )
            for setting in found
        ),
        config_type=config.type,
        documentation=config.doc,
    )
