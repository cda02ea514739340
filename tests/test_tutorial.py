"""docs/tutorial.md, done by the letter: what it says to type does what it shows."""

from __future__ import annotations

from typing import Final

import pytest

from docs.generate import ROOT
from tests.harness.pages import BLOCK, Reader, is_as_shown, reader

__all__ = ["reader"]

PAGE: Final = (ROOT / "docs" / "tutorial.md").read_text()


@pytest.mark.timeout(600)
def test_a_newcomer_who_follows_the_page_sees_what_it_says(reader: Reader) -> None:
    reader.follow(PAGE)
    assert reader.served is not None


def test_the_page_installs_serves_breaks_and_survives() -> None:
    kinds = [kind for kind, _ in BLOCK.findall(PAGE)]
    assert kinds[:4] == ["run", "serve", "file: shop.py", "file: count.py"]
    assert PAGE.count("```") == 2 * len(kinds), "a block is not tried"


@pytest.mark.parametrize(
    ("printed", "shown", "same"),
    [
        ("", "", True),
        ("a", "", False),
        ("a", "a\n", True),
        ("a\nb", "a\n", False),
        ("a\nb\nc", "a\n...\n", True),
        ("a\nb\nc", "...\nb\n...\n", True),
        ("a\nb\nc", "...\nb\n", False),
        ("", "...\n", True),
        ("a   b  ", "a b\n", True),
        ("a bc", "a b\n", False),
        ("a bc", "a b...\n", True),
        ("a 1, 2", "a 1, ...\n", True),
        ("a 2, 1", "a 1, ...\n", False),
    ],
)
def test_the_comparison_itself(printed: str, shown: str, *, same: bool) -> None:
    assert is_as_shown(printed, shown) is same
