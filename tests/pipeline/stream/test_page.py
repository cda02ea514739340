"""docs/stream.md, done by the letter; its queries run in the session that there is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pytest
from typer.main import get_command

from docs.generate import ROOT
from fencepost.cli.commands import make_app
from tests.harness.pages import Reader, follow_in_session, reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["reader"]

PAGE: Final = (ROOT / "docs" / "stream.md").read_text()
PLACES: Final = ("lake", "well", "counting")
"""The folders of the page."""


@pytest.mark.timeout(600)
def test_a_reader_who_follows_the_page_sees_what_it_says(
    spark_with_kafka: SparkSession,
    reader: Reader,
    capsys: pytest.CaptureFixture[str],
) -> None:
    follow_in_session(PAGE, reader, capsys, "fencepost stream", PLACES)


def test_every_block_is_tried() -> None:
    blocks = re.findall(r"<!-- (?:run|serve|file: \S+) -->\n```[a-z]+\n", PAGE)
    assert PAGE.count("```") == 2 * len(blocks)


def test_the_options_are_told() -> None:
    table = PAGE.partition("## Options")[2]
    documented = set(re.findall(r"`(--[a-z-]+)", table))
    everything: Any = get_command(make_app())
    stream = everything.commands["stream"]
    options = {
        name
        for command in stream.commands.values()
        for parameter in command.params
        for name in parameter.opts
        if name.startswith("--")
    }
    assert documented == options - {"--help"}
