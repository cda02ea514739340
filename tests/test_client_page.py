"""docs/client.md, done by the letter: what it says to type does what it shows."""

from __future__ import annotations

import re
from typing import Final

import pytest

from docs.generate import ROOT
from tests.harness.pages import Reader, reader

__all__ = ["reader"]

PAGE: Final = (ROOT / "docs" / "client.md").read_text()


@pytest.mark.timeout(300)
def test_whoever_follows_the_page_sees_what_it_says(reader: Reader) -> None:  # the fixture
    reader.follow(PAGE)
    assert reader.served is not None


def test_every_block_is_tried() -> None:
    blocks = re.findall(r"<!-- (?:run|serve|file: \S+) -->\n```[a-z]+\n", PAGE)
    assert PAGE.count("```") == 2 * len(blocks)
