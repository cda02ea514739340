"""docs/audit.md, done by the letter; its audits run in the session that there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from typer.main import get_command

from docs.generate import ROOT
from fencepost.cli.commands import make_app
from fencepost.pipeline.audit.job import ALL_RULES
from fencepost.pipeline.audit.lineage.model import Relation
from fencepost.pipeline.audit.lineage.table import LINEAGE_SCHEMA, RowKind
from fencepost.pipeline.audit.rule import VIOLATION_SCHEMA
from tests.harness.pages import Reader, follow_in_session, reader
from tests.harness.recorded_cluster import recorded
from tests.harness.require import tool

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["reader"]

PAGE: Final = (ROOT / "docs" / "audit.md").read_text()


@pytest.mark.timeout(600)
def test_a_reader_who_follows_the_page_sees_what_it_says(
    spark: SparkSession,
    reader: Reader,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tool("kcat")
    monkeypatch.chdir(reader.folder)
    follow_in_session(PAGE, reader, capsys, "fencepost audit")


def test_every_block_is_tried() -> None:
    blocks = re.findall(r"<!-- (?:run|serve|notebook(?:: \w+)?) -->\n```[a-z]+\n", PAGE)
    # The file of suppressions is tried in test_suppressions.py.
    assert PAGE.count("```") == 2 * len(blocks) + 2


def test_every_rule_is_told_with_what_it_cannot() -> None:
    documented = dict(re.findall(r"^### ([a-z-]+)\n\n(.*?)\n\n", PAGE, re.MULTILINE | re.DOTALL))
    assert list(documented) == list(ALL_RULES)
    for name, text in documented.items():
        for part in ("*Proves* that ", "*From* the ", "*Can't tell* "):
            assert part in " ".join(text.split()), f"{name} has no {part}"
    with_trace = [name for name, rule in ALL_RULES.items() if rule.needs_trace]
    assert with_trace == list(ALL_RULES)[-len(with_trace) :]
    assert f"The last {len(with_trace)} need a trace." in " ".join(PAGE.split())


def names_in(table: str) -> list[str]:
    """What the first column of a table names, by the head of the table."""
    rows = PAGE.partition(f"| {table} |")[2].partition("\n\n")[0].splitlines()
    return [name for row in rows[1:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]


def test_every_column_is_told() -> None:
    assert names_in("column") == VIOLATION_SCHEMA.names
    assert names_in("lineage column") == LINEAGE_SCHEMA.names
    assert names_in("kind") == list(RowKind)
    (relations,) = re.findall(r"^\| `relation` .*$", PAGE, re.MULTILINE)
    assert set(Relation) <= set(re.findall(r"`(\w+)`", relations))


def test_the_python_example_makes_a_data_frame(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    there = recorded(tmp_path, seed=3, minutes=1)
    (example,) = re.findall(r"<!-- notebook -->\n```python\n(.*?)```", PAGE, re.DOTALL)
    for name, path in (("kafka", there.data), ("seen", there.trace)):
        assert f'"{name}"' in example
        example = example.replace(f'"{name}"', repr(str(path)))
    exec(compile(example, "audit.md", "exec"), {"spark": spark})
    assert capsys.readouterr().out.count("|ancestor_end|") == 2


def test_the_options_are_told() -> None:
    documented = set(re.findall(r"`(--[a-z-]+)", PAGE.partition("## Options")[2]))
    everything: Any = get_command(make_app())
    parameters = everything.commands["audit"].params
    options = {name for each in parameters for name in each.opts if name.startswith("--")}
    assert documented == options - {"--help"}
    for each in parameters:
        name = each.opts[0]
        if name.startswith("--") and name != "--help":
            assert each.envvar == f"FENCEPOST_{name[2:].upper()}"
