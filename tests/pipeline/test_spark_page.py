"""docs/spark.md says what is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from docs.generate import ROOT
from fencepost.pipeline import requirements
from fencepost.pipeline.requirements import MIN_JAVA_VERSION, SPARK_VERSION
from tests.harness import spark_standalone
from tests.harness.confluent import delivered, send
from tests.harness.served_cluster import serve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE: Final = (ROOT / "docs" / "spark.md").read_text()


def block(name: str) -> str:
    found = re.search(rf"<!-- run: {name} -->\n```[a-z]+\n(.*?)```", PAGE, re.DOTALL)
    assert found, f"there is no block {name}"
    return found[1]


def test_the_python_example_sums_sizes(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "kafka"
    served = serve(tmp_path / "log", "--data-dir", str(data), "--topic", "orders:2:3")
    delivered(send(served, "orders", [b"a post"] * 7, partitions=2))
    served.stop()

    example = block("spark-python")
    exec(compile(example.replace('"kafka"', repr(str(data))), "spark.md", "exec"), {})
    rows = re.findall(r"\|orders\|\s+(\d)\|\s+(\d)\|\s+\d+\|\s+(\d)\|", capsys.readouterr().out)
    assert rows == [
        *(("0", broker, "4") for broker in "123"),
        *(("1", broker, "3") for broker in "123"),
    ]


def test_a_cluster_is_started_as_the_tests_do() -> None:
    classes = re.findall(r"bin/spark-class (\S+) --host", block("spark-cluster"))
    assert classes == [spark_standalone.MASTER, spark_standalone.WORKER]


def test_versions_and_places_are_those_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"Spark {SPARK_VERSION} itself" in PAGE
    assert f"Java {MIN_JAVA_VERSION} or later" in PAGE
    for name in (requirements.JARS_VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    assert str(requirements.jars_folder()).replace("/home/me", "~") in PAGE
    assert f"`{requirements.JARS_VARIABLE}`" in PAGE
    assert requirements.SETUP_COMMAND in block("spark-setup")
