"""What is public: there by its name, and nothing imported before it is asked for."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Final

import pytest

import fencepost.client
from docs.generate import ROOT

PAGE: Final = (ROOT / "docs" / "client.md").read_text()


def test_every_public_name_is_there() -> None:
    for name in fencepost.client.__all__:
        found = getattr(fencepost.client, name)
        assert found.__name__ == name
        assert found.__module__.startswith("fencepost.client.")
    assert sorted(fencepost.client._MODULE_OF) == sorted(fencepost.client.__all__)


def test_any_other_is_not() -> None:
    name = "Producer"
    with pytest.raises(AttributeError, match="has no attribute 'Producer'"):
        getattr(fencepost.client, name)


def test_it_costs_nothing_to_import() -> None:
    code = "import sys, fencepost.client; print(*(m for m in sys.modules if 'fencepost' in m))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert run.stdout.split() == ["fencepost", "fencepost.client"]


@pytest.mark.parametrize("name", fencepost.client.__all__)
def test_every_public_name_is_in_the_page(name: str) -> None:
    assert re.search(rf"\b{name}\b", PAGE)
