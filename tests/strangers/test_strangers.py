"""Four changes of a stranger, kept as patches: each touches few files, and none of them can be
forgotten in silence.

A patch is applied to a copy of the project. With all of its files the checks of the change pass;
without any one of them a check fails. ``FENCEPOST_STRANGERS=all`` leaves out each file in turn;
without it the last of each change.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent.parent
HERE: Final = Path(__file__).parent
COPIED: Final = ("fencepost", "tests", "tools", "docs", "README.md", "pyproject.toml")
PYTEST: Final = (
    *(sys.executable, "-m", "pytest", "-q", "-x"),
    *("-p", "no:cacheprovider", "-p", "pytest_asyncio.plugin", "-p", "pytest_timeout"),
)
GENERATED: Final = frozenset({"README.md", "docs/control.md"})
"""Pages whose tables ``make docs`` writes."""
GENERATED_TABLES: Final = "tests/test_readme.py::test_generated_tables_are_up_to_date"


@dataclass(frozen=True, kw_only=True)
class Change:
    """A patch, and the checks that tell whether it is whole."""

    name: str
    files: int
    """The most that it may touch, without its tests and generated pages."""
    checks: tuple[str, ...]
    """Ids for pytest, its own test among them."""
    types: tuple[str, ...] = ()
    """Modules for the type checker."""

    @property
    def patch(self) -> Path:
        return HERE / f"{self.name}.patch"

    @property
    def touched(self) -> list[str]:
        return re.findall(r"^\+\+\+ b/(.+)$", self.patch.read_text(), re.MULTILINE)


CHANGES: Final = (
    Change(
        name="list_offsets_version",
        files=3,
        checks=(
            "tests/broker/server/test_log_start_draft.py",
            "tests/protocol/test_messages.py",
            "tests/test_everything_has_a_test.py::test_every_draft",
        ),
    ),
    Change(
        name="fault_kind",
        files=3,
        checks=(
            "tests/broker/faults/test_duplicate.py",
            "tests/test_everything_has_a_test.py::test_every_kind_of_fault",
            "tests/test_four_ways.py::test_every_kind_of_fault_and_every_selector_has_a_row",
            f"{GENERATED_TABLES}[control.md]",
        ),
        types=("fencepost/broker/server/connection.py",),
    ),
    Change(
        name="new_api",
        files=4,
        checks=(
            "tests/broker/handlers/test_share_group_describe.py",
            "tests/protocol/test_apis.py",
            "tests/test_everything_has_a_test.py::test_every_api",
            f"{GENERATED_TABLES}[README.md]",
        ),
    ),
    Change(
        name="audit_rule",
        files=2,
        checks=(
            "tests/pipeline/audit/test_future_records.py",
            "tests/pipeline/audit/test_rules.py",
            "tests/pipeline/audit/test_page.py::test_every_rule_is_told_with_what_it_cannot",
        ),
    ),
)
BY_NAME: Final = {change.name: change for change in CHANGES}
EACH_FILE: Final = os.environ.get("FENCEPOST_STRANGERS") == "all"
LEFT_OUT: Final = [
    (change.name, path)
    for change in CHANGES
    for path in (change.touched if EACH_FILE else change.touched[-1:])
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project: one for all changes, so that Python compiles it once."""
    target = tmp_path_factory.mktemp("strangers") / "project"
    target.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "node_modules", "target")
            shutil.copytree(ROOT / name, target / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, target / name)
    return target


@pytest.fixture
def copy(project: Path) -> Iterator[Path]:
    """The copy, in which a patch can do no harm: what a patch touched is copied again."""
    yield project
    for path in {path for change in CHANGES for path in change.touched}:
        if (ROOT / path).exists():
            shutil.copy(ROOT / path, project / path)
        else:
            (project / path).unlink(missing_ok=True)


def apply(change: Change, copy: Path, *, without: str | None = None) -> None:
    left_out = [] if without is None else [f"--exclude={without}"]
    subprocess.run(["git", "apply", *left_out, str(change.patch)], cwd=copy, check=True)


def problems(change: Change, copy: Path) -> Iterator[str]:
    """The checks that fail, with what they printed."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(copy),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # most plugins take long to load and have no use
    }
    environment.pop("PYTEST_ADDOPTS", None)
    present = [check for check in change.checks if (copy / check.partition("::")[0]).exists()]
    command = [*PYTEST, *present]
    run = subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=250
    )
    if run.returncode:
        yield run.stdout
    for module in change.types:
        checked = subprocess.run(
            [sys.executable, "-m", "mypy", "--follow-imports=silent", module],
            cwd=copy,
            env={**environment, "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache")},
            capture_output=True,
            text=True,
            timeout=250,
        )
        if checked.returncode:
            yield checked.stdout


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_change_touches_few_files(change: Change) -> None:
    product = [
        path for path in change.touched if not path.startswith("tests/") and path not in GENERATED
    ]
    assert len(product) <= change.files, product


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_change_that_is_whole_passes(change: Change, copy: Path) -> None:
    apply(change, copy)
    assert list(problems(change, copy)) == []


@pytest.mark.parametrize(("name", "path"), LEFT_OUT)
def test_a_file_that_is_left_out_is_noticed(name: str, path: str, copy: Path) -> None:
    change = BY_NAME[name]
    apply(change, copy, without=path)
    assert next(problems(change, copy), None) is not None
