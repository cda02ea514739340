"""``python -m tools.structure``: what it counts, and which files a request passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import structure
from tools.passed_files import passed_files

ROOT = Path(__file__).parents[2]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    package = tmp_path / "fencepost"
    sizes = {
        "__init__.py": 1,
        "__main__.py": 5,
        "small.py": 49,
        "large.py": 50,
        "room/__init__.py": 3,
        "room/tiny.py": 1,
        "broker/handlers/metadata.py": 20,
        "protocol/messages/metadata.py": 30,
        "room/data.yaml": 1,
    }
    for name, lines in sizes.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("pass\n" * lines)
    return package


def test_small_modules_are_those_that_do_not_grow_with_the_apis(package: Path) -> None:
    assert list(structure.small_modules(package)) == ["room/tiny.py", "small.py"]


def test_the_table_counts_files_and_lines(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    structure.main(["--static", "--checkout", str(package.parent)])
    assert capsys.readouterr().out == (
        "| | count |\n"
        "| --- | ---: |\n"
        "| files under fencepost/ | 8 |\n"
        "| lines | 159 |\n"
        "| modules under 50 lines | 2 |\n"
    )


def test_the_files_that_a_request_passes_are_those_in_which_its_functions_run() -> None:
    passed = passed_files(ROOT)
    fetch, produce = passed["Fetch v13"], passed["Produce v9, acks=all, RF 3"]
    fault, step = passed["`fault add`"], passed["a scenario's step (produce)"]
    server = {"broker/server/connection.py", "broker/server/asyncio_connection.py"}
    assert fetch >= server | {"broker/handlers/fetch.py", "broker/server/event_loop.py"}
    assert produce >= server | {"broker/handlers/produce.py", "broker/replication/replica.py"}
    assert "broker/handlers/fetch.py" in produce, "the followers fetch"
    assert "broker/handlers/produce.py" not in fetch
    assert fault >= {"cli/__init__.py", "broker/faults/registry.py"}
    assert step >= server | {"scenario/player.py", "broker/handlers/produce.py"}
    for files in passed.values():
        assert all((ROOT / "fencepost" / path).is_file() for path in files)
        assert not any(path.startswith("protocol/messages/") for path in files), "only imported"
