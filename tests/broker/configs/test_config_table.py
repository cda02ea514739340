from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from subprocess import run

import pytest

import fencepost
from fencepost.broker.configs.broker_configs import broker_configs
from fencepost.broker.configs.client_metrics_configs import client_metrics_configs
from fencepost.broker.configs.config_def import (
    ConfigType,
    Effect,
    UpdateMode,
    Valid,
    parse,
)
from fencepost.broker.configs.config_table import (
    FENCEPOST_CONFIGS,
    KAFKA_CONFIGS,
    config_tables,
    data_file,
    parse_tables,
    read_sections,
)
from fencepost.broker.configs.group_configs import group_configs
from fencepost.broker.configs.topic_configs import topic_configs

ALL = [
    *broker_configs().values(),
    *topic_configs().values(),
    *group_configs().values(),
    *client_metrics_configs().values(),
]


def test_reads_a_row() -> None:
    config = parse_tables(
        "[broker]\n# Comments are left out.\n"
        "a.b LIST x,y one-of:x,y,z cluster-wide hidden inert:tls also:z\n    What it is.\n"
        "\n[reasons]\ntls\n    TLS is not served\n"
    ).broker["a.b"]
    assert (config.name, config.type, config.default) == ("a.b", ConfigType.LIST, "x,y")
    assert config.valid == Valid(one_of=("x", "y", "z"))
    assert config.mode is UpdateMode.CLUSTER_WIDE
    assert config.hidden
    assert (config.effect, config.reason) == (Effect.INERT, "TLS is not served")
    assert config.also == "z"
    assert config.doc == "What it is."
    assert config.synonym is None


def test_reads_defaults_that_are_none_or_empty() -> None:
    read = parse_tables('[broker]\na STRING - acts\n    A.\nb STRING "" acts\n    B.\n').broker
    assert (read["a"].default, read["b"].default) == (None, "")


def test_a_topic_config_is_like_its_synonym_but_for_what_its_row_says() -> None:
    tables = parse_tables(
        "[broker]\nlog.a LONG - >=0 cluster-wide on-disk:flush\n    Of all logs.\n"
        "[topic]\na synonym:log.a\nb synonym:log.a default:7 >=1\n    Of one log.\n"
        "[reasons]\nflush\n    it is in memory\n"
    )
    like, own = tables.topic["a"], tables.topic["b"]
    assert (like.name, like.type, like.default) == ("a", ConfigType.LONG, None)
    assert (like.valid, like.doc) == (Valid(at_least=0), "Of all logs.")
    assert (like.effect, like.reason) == (Effect.ON_DISK, "it is in memory")
    assert like.synonym == own.synonym == "log.a"
    assert like.mode is UpdateMode.READ_ONLY
    assert (own.name, own.default, own.valid) == ("b", "7", Valid(at_least=1))
    assert (own.effect, own.doc) == (Effect.ON_DISK, "Of one log.")


def test_reads_synonyms_in_other_units() -> None:
    read = parse_tables("[synonyms]\na.ms a.minutes*60000\nb.ms c.ms*1\n").unit_synonyms
    assert list(read["a.minutes"].items()) == [("a.ms", 1), ("a.minutes", 60_000)]
    assert read["a.ms"] is read["a.minutes"]
    assert read["c.ms"] == {"b.ms": 1, "c.ms": 1}


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
    read = parse_tables(f"[broker]\na INT 1 {word} acts\n    A.\n").broker
    assert read["a"].valid == valid


def test_a_row_says_whether_it_acts_and_what_it_is() -> None:
    with pytest.raises(ValueError, match="a does not say whether it acts"):
        parse_tables("[broker]\na INT 1\n    A.\n").broker["a"]
    with pytest.raises(ValueError, match="a has no documentation"):
        parse_tables("[broker]\na INT 1 acts\nb INT 1 acts\n    B.\n").broker["a"]
    with pytest.raises(KeyError, match="unheard"):
        parse_tables("[broker]\na INT 1 inert:unheard\n    A.\n").broker["a"]


def test_every_config_is_declared_once() -> None:
    for file in (KAFKA_CONFIGS, FENCEPOST_CONFIGS):
        text = data_file(file)
        rows = [line for line in text.splitlines() if line and line[0] not in "# ["]
        assert len(rows) == sum(map(len, read_sections(text).values()))
    kafka, own = (read_sections(data_file(file)) for file in (KAFKA_CONFIGS, FENCEPOST_CONFIGS))
    assert not any(kafka[title].keys() & rows.keys() for title, rows in own.items())


def test_the_data_files_are_read_from_a_zip_file_too(tmp_path: Path) -> None:
    package = Path(fencepost.__file__).parent
    with zipfile.ZipFile(tmp_path / "fencepost.zip", "w") as made:
        for path in package.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                made.write(path, path.relative_to(package.parent))
    code = (
        "import fencepost.broker.configs.config_table as read; assert '.zip' in read.__file__;"
        "print(len(read.config_tables().broker))"
    )
    ran = run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(tmp_path / "fencepost.zip")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(ran.stdout) == len(broker_configs())


def test_every_reason_is_given_and_every_given_reason_is_used() -> None:
    given = {config.reason for config in ALL if config.effect is not Effect.ACTS}
    assert given == set(config_tables().reasons.values())


def test_every_default_that_kafka_would_take_is_one() -> None:
    for config in ALL:
        assert config.default_value is not None or config.default is None
        if config.default and config.name != "broker.id":
            parse(config, config.default)
