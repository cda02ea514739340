"""The test files of docs/testing.md pass, and its tables are complete."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

import pytest

from docs.generate import ROOT
from fencepost.testing.servers import ClusterOptions
from tests.harness.run import run
from tests.testing.runs import ALONE, command, environment, write

PAGE: Final = (ROOT / "docs" / "testing.md").read_text()
ASYNCIO: Final = (
    "-p",
    "asyncio",
    "-o",
    "asyncio_mode=auto",
    "-o",
    "asyncio_default_fixture_loop_scope=function",
)
ANYIO: Final = ("-p", "anyio", "-o", "anyio_mode=auto")


def block(name: str) -> str:
    found = re.search(rf"<!-- run: {name} -->\n```python\n(.*?)```", PAGE, re.DOTALL)
    assert found, f"there is no block {name}"
    return found[1]


@pytest.mark.parametrize("plugin", [ASYNCIO, ANYIO], ids=["asyncio", "anyio"])
def test_the_test_file_passes(tmp_path: Path, plugin: tuple[str, ...]) -> None:
    write(tmp_path, block("testing"))
    # anyio would run async tests on every backend that is installed.
    write(
        tmp_path,
        "import pytest\n@pytest.fixture\ndef anyio_backend(): return 'asyncio'\n",
        "conftest.py",
    )
    done = run(command(*ALONE, *plugin), cwd=tmp_path, env=environment())
    assert "4 passed" in done.out


def test_without_pytest(tmp_path: Path) -> None:
    write(tmp_path, f"import sys\n\nsys.modules['pytest'] = None\n{block('unittest')}")
    done = run([sys.executable, "-W", "error", "test_it.py"], cwd=tmp_path, env=environment())
    assert "OK" in done.err


def test_every_argument_of_the_marker_is_described() -> None:
    table = PAGE.partition("| argument |")[2].partition("\n\n")[0]
    described = re.findall(r"`(\w+)=([^`]*)`", table)
    assert {name for name, _ in described} == set(ClusterOptions.model_fields)
    for name, default in described:
        wanted = ClusterOptions().model_dump()[name]
        assert default in {repr(wanted).replace("'", '"'), "[]" if wanted == () else None}
