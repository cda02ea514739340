from __future__ import annotations

import pytest

from fencepost.broker.configs import tables
from fencepost.broker.configs.broker_configs import broker_configs
from fencepost.broker.configs.config_def import (
    REASONS,
    ConfigType,
    Effect,
    UpdateMode,
    Valid,
    default_value,
    parse,
)
from fencepost.broker.configs.config_entries import client_metrics_configs, group_configs
from fencepost.broker.configs.topic_configs import BROKER_SYNONYMS, topic_configs

ALL = [
    *broker_configs().values(),
    *topic_configs().values(),
    *group_configs().values(),
    *client_metrics_configs().values(),
]


def test_reads_a_row() -> None:
    (config,) = tables.read(
        "a.b LIST x,y one-of:x,y,z cluster-wide hidden inert:tls also:z\n    What it is.\n"
    ).values()
    assert (config.name, config.type, config.default) == ("a.b", ConfigType.LIST, "x,y")
    assert config.valid == Valid(one_of=("x", "y", "z"))
    assert config.mode is UpdateMode.CLUSTER_WIDE
    assert config.hidden
    assert (config.effect, config.reason, config.also) == (Effect.INERT, "tls", "z")
    assert config.doc == "What it is."


def test_reads_defaults_that_are_none_or_empty() -> None:
    read = tables.read('a STRING - acts\n    A.\nb STRING "" acts\n    B.\n')
    assert (read["a"].default, read["b"].default) == (None, "")


@pytest.mark.parametrize(
    ("word", "valid"),
    [
        (">=-1", Valid(at_least=-1)),
        ("0..0.5", Valid(at_least=0, at_most=0.5)),
        ("1..9|-1", Valid(at_least=1, at_most=9, or_else=-1)),
        ("any-case:A,B", Valid(one_of=("A", "B"), any_case=True)),
        ("non-empty", Valid(non_empty=True)),
        ("throttled-replicas", Valid(throttled_replicas=True)),
    ],
)
def test_reads_bounds(word: str, valid: Valid) -> None:
    assert tables.read(f"a INT 1 {word} acts\n    A.\n")["a"].valid == valid


def test_a_row_says_whether_it_acts_and_what_it_is() -> None:
    with pytest.raises(ValueError, match="a does not say whether it acts"):
        tables.read("a INT 1\n    A.\n")
    with pytest.raises(ValueError, match="a has no documentation"):
        tables.read("a INT 1 acts\nb INT 1 acts\n")


def test_every_reason_is_given_and_every_given_reason_is_used() -> None:
    given = {config.reason for config in ALL if config.effect is not Effect.ACTS}
    assert given == REASONS.keys()


def test_every_default_that_kafka_would_take_is_one() -> None:
    for config in ALL:
        assert default_value(config) is not None or config.default is None
        if config.default and config.name != "broker.id":
            parse(config, config.default)


def test_every_synonym_is_a_config() -> None:
    assert BROKER_SYNONYMS.keys() <= topic_configs().keys()
    assert set(BROKER_SYNONYMS.values()) <= broker_configs().keys()


def test_a_topic_config_and_its_synonym_act_together() -> None:
    topics, brokers = topic_configs(), broker_configs()
    for topic, broker in BROKER_SYNONYMS.items():
        assert topics[topic].effect is brokers[broker].effect, topic
        assert topics[topic].reason == brokers[broker].reason, topic
        assert topics[topic].type in {brokers[broker].type, ConfigType.LONG}, topic
