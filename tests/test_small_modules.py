"""A module under 50 lines has a reason to be one, in ``tests/small_modules.txt``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tools.structure import PACKAGE, small_modules

ROOT: Final = Path(__file__).parents[1]
LIST: Final = ROOT / "tests" / "small_modules.txt"
MOST: Final = 20


def reasons() -> dict[str, str]:
    lines = LIST.read_text(encoding="utf-8").splitlines()
    pairs = (line.partition(": ") for line in lines if not line.startswith("#"))
    return {path: reason for path, _, reason in pairs}


def test_every_small_module_is_listed_with_its_reason_and_no_other_is() -> None:
    assert sorted(reasons()) == list(small_modules(ROOT / PACKAGE))
    assert all(reasons().values())


def test_the_list_is_short() -> None:
    assert len(reasons()) <= MOST
