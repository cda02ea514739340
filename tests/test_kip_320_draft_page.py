"""docs/kip-320-draft.md, done by the letter: what it says to type does what it shows."""

from __future__ import annotations

import re
from typing import Final

import pytest

from docs.generate import ROOT
from fencepost.scenario.loader import shipped
from tests.harness.pages import Reader, reader

__all__ = ["reader"]

PAGE: Final = (ROOT / "docs" / "kip-320-draft.md").read_text()


@pytest.mark.timeout(300)
def test_the_commands_of_the_page_print_what_it_shows(reader: Reader) -> None:
    reader.follow(PAGE)


def test_every_block_is_tried() -> None:
    blocks = re.findall(r"<!-- run -->\n```[a-z]+\n", PAGE)
    assert PAGE.count("```") == 2 * len(blocks)


def test_each_claim_of_the_table_names_a_scenario_that_ships() -> None:
    rows = re.findall(r"^\| (?!---| \|).*\| (.*) \|$", PAGE, re.MULTILINE)[1:]
    assert len(rows) == 9
    for row in rows:
        named = re.findall(r"`([^`]+)`", row)
        assert named
        assert set(named) <= set(shipped())


def test_every_scenario_of_the_draft_is_played_or_named() -> None:
    drafted = {name for name in shipped() if name.startswith("kip-320-draft-")}
    written = re.sub(
        r"(\S+-)\{(\S+)\}", lambda m: " ".join(m[1] + each for each in m[2].split(",")), PAGE
    )
    assert drafted <= set(re.findall(r"kip-320-draft-[\w-]+", written))
