"""docs/load.md says what is so, and the command does it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from docs.generate import ROOT
from fencepost.cli import main
from fencepost.testing.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE: Final = (ROOT / "docs" / "load.md").read_text()
ROWS: Final = 2_000

pytestmark = [pytest.mark.fencepost(brokers=1), pytest.mark.timeout(600)]


def block(name: str) -> str:
    found = re.search(rf"<!-- run: {name} -->\n```[a-z]+\n(.*?)```", PAGE, re.DOTALL)
    assert found, f"there is no block {name}"
    return found[1]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fencepost: Cluster) -> Path:
    """A folder with the page's files, and the page's addresses."""
    (tmp_path / "orders").mkdir()
    table = pa.table({"id": [f"o{n}" for n in range(ROWS)], "total": list(range(ROWS))})
    pq.write_table(table, tmp_path / "orders" / "part-0.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FENCEPOST_BOOTSTRAP", fencepost.bootstrap)
    monkeypatch.setenv("FENCEPOST_CONTROL", fencepost.control)
    return tmp_path


def commands() -> list[list[str]]:
    lines = [line for line in block("load").splitlines() if line.startswith("$ fencepost ")]
    return [line.split()[2:] for line in lines]


def test_the_commands(here: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    create, load = commands()
    assert main(create) == 0
    capsys.readouterr()
    assert main(load) == 0
    said = capsys.readouterr().out
    expected = rf"{ROWS} rows were appended; all {ROWS} are there: "
    assert re.fullmatch(expected + r"(orders-\d 0-\d+(, )?){4}\n", said)
    assert main([*load, "--quiet"]) == 0
    assert capsys.readouterr().out == said.replace(f"{ROWS} rows", "0 rows", 1)
    # Other rows at the same place.
    assert main([*load, "--quiet", "--value", "total"]) == 1
    expected = r"(fencepost load: |; )orders-\d has something else at offset 0 than the source"
    assert re.match(expected, capsys.readouterr().err)


def test_the_python_example(
    here: Path, spark: SparkSession, fencepost: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(commands()[0]) == 0
    example = block("load-python").replace("127.0.0.1:9092", fencepost.bootstrap)
    exec(compile(example, "load.md", "exec"), {})
    assert capsys.readouterr().out.splitlines()[-1] == f"{ROWS} 0"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["orders", "--format", "xml"], "there is no xml, only parquet, csv, json"),
        (["none"], "--format is missing: by their names the files are nothing that is known"),
        (["a.csv", "b.json"], "--format is missing: by their names the files are csv and json"),
        (["orders", "--read", "sep"], "'sep' is not NAME=VALUE"),
        (["orders", "--compression", "best"], "there is no best, only none, gzip"),
        (["orders", "--key", "none"], "there is no column none, but id, total"),
        (["none.csv"], "none.csv"),
    ],
)
def test_what_is_asked_wrongly(
    here: Path,
    spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    why: str,
) -> None:
    assert main(commands()[0]) == 0
    assert main(["load", *arguments, "--topic", "orders"]) == 2
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1
