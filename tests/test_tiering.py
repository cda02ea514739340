"""docs/tiering.md, done by the letter: what it says to type does what it shows."""

from __future__ import annotations

import re
from typing import Final

import pytest

from docs.generate import ROOT
from tests.harness.pages import Reader, reader
from tests.harness.require import tool

__all__ = ["reader"]

PAGE: Final = (ROOT / "docs" / "tiering.md").read_text()


@pytest.mark.timeout(300)
def test_whoever_follows_the_page_sees_what_it_says(reader: Reader) -> None:  # the fixture
    tool("kcat")
    reader.follow(PAGE)
    assert reader.served is not None


def test_every_block_is_tried() -> None:
    blocks = re.findall(r"<!-- (?:run|serve) -->\n```console\n", PAGE)
    assert PAGE.count("```") == 2 * len(blocks)
