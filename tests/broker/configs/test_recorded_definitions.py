"""The table of configs is that of Apache Kafka 4.3.1: names, types, defaults, bounds, modes.

``definitions.tsv`` is what `KafkaDefinitions.java` printed with Kafka 4.3.1's jars as its class
path: ``java -cp 'JARS/*' KafkaDefinitions.java``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from fencepost.broker.configs.config_def import ConfigDef, Table, UpdateMode
from fencepost.broker.configs.config_table import config_tables, own_configs

ROWS: Final = [
    line.split("\t")
    for line in Path(__file__).with_name("definitions.tsv").read_text().splitlines()
]
NOT_DEFINED: Final = {
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}
"""Dynamic broker configs that Kafka takes, and defines beside the others."""
BOUNDED_HERE: Final = {
    "broker.session.timeout.ms",
    "replica.high.watermark.checkpoint.interval.ms",
    "replica.lag.time.max.ms",
    "replica.selector.class",
}
"""What Kafka takes and can do nothing with: periods of 0 ms, and classes."""
FIXED: Final = {"controller.quorum.bootstrap.servers", "controller.quorum.voters"}
"""Lists that are not to be empty, and that fencepost alone sets."""
MODES: Final = {
    UpdateMode.READ_ONLY: None,
    UpdateMode.PER_BROKER: "per-broker",
    UpdateMode.CLUSTER_WIDE: "cluster-wide",
}


def rows(kind: str) -> list[list[str]]:
    return [parts for each, *parts in ROWS if each == kind]


def kafkas(table: Table) -> Mapping[str, ConfigDef]:
    return {name: config for name, config in table.items() if name not in own_configs()}


def pairs(kind: str) -> dict[str, str]:
    return {parts[0]: parts[1] for parts in rows(kind)}


@pytest.mark.parametrize("kind", ["broker", "topic", "group", "client-metrics"])
def test_every_config_has_kafkas_type_default_and_visibility(kind: str) -> None:
    table = kafkas(getattr(config_tables(), kind.replace("-", "_")))
    defined = {
        name: (type_, None if default == "none" else default[1:], bool(internal))
        for name, type_, default, _, internal in rows(kind)
    }
    ours = {
        name: (config.type.name, config.default, config.hidden)
        for name, config in table.items()
        if name not in NOT_DEFINED
    }
    assert ours == defined


@pytest.mark.parametrize("kind", ["broker", "topic"])
def test_every_config_has_kafkas_bounds(kind: str) -> None:
    table = kafkas(getattr(config_tables(), kind))
    for name, _, _, validator, _ in rows(kind):
        if name not in BOUNDED_HERE | FIXED:
            assert shown(table[name]) == words(validator), name


def words(validator: str) -> set[str]:
    """The numbers and names of a validator as Kafka shows it."""
    if "partitionId" in validator:
        return {"throttled"}
    if validator.startswith("non-empty"):
        return {"non-empty"}
    if validator == "non-null string":
        return set()
    text = validator.replace("...", " ").replace("case insensitive", "")
    return set(re.findall(r"-?[\w.]+", text)) - {"or"}


def shown(config: ConfigDef) -> set[str]:
    valid = config.valid
    if valid is None:
        return set()
    if valid.throttled_replicas:
        return {"throttled"}
    if valid.non_empty:
        return {"non-empty"}
    numbers = (valid.at_least, valid.at_most, valid.or_else)
    return {str(number) for number in numbers if number is not None} | set(valid.one_of)


def test_configs_change_at_run_time_as_in_kafka() -> None:
    modes = pairs("mode")
    by_listener = {name for (name,) in rows("by-listener")}
    for name, config in kafkas(config_tables().broker).items():
        assert MODES[config.mode] == modes.get(name), name
        assert config.by_listener == (name in by_listener), name


def test_topic_configs_take_their_defaults_from_the_same_broker_configs() -> None:
    synonyms = pairs("synonym")
    ours = {
        name: config.synonym
        for name, config in kafkas(config_tables().topic).items()
        if config.synonym
    }
    assert ours == synonyms
