"""The page of the harness names every part, and its examples call what the parts have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
PAGE: Final = (HERE / "README.md").read_text()
_ROW: Final = re.compile(r"^\| \[(\w+)\]\((\w+\.py)\) \| (.+) \| `(.+)` \|$", re.MULTILINE)
ROWS: Final = _ROW.findall(PAGE)
MODULES: Final = sorted(path.name for path in HERE.glob("*.py") if path.name[:5] != "test_")


def test_every_module_has_one_row() -> None:
    assert sorted(file for _, file, _, _ in ROWS) == MODULES
    assert [f"{name}.py" for name, *_ in ROWS] == [file for _, file, *_ in ROWS]


@pytest.mark.parametrize(("file", "example"), [(row[1], row[3]) for row in ROWS])
def test_an_example_uses_its_module(file: str, example: str) -> None:
    source = (HERE / file).read_text()
    names = re.findall(r"^ *(?:async )?(?:def|class) (\w+)", source, re.MULTILINE)
    assert set(re.findall(r"\w+", example)) & set(names), f"{example} uses nothing of {file}"
