"""A rule is a module, and is followed because it is there: on executors too."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Final

import pytest

from fencepost.pipeline.audit import directory_rules, rules
from fencepost.pipeline.audit.directory_rules import DIRECTORY_RULES
from fencepost.pipeline.audit.job import ALL_RULES
from fencepost.pipeline.audit.rules import RULES
from fencepost.pipeline.session import write_package
from tests.harness.run import run

OWN: Final = Path(__file__)
FOLDER: Final = Path(rules.__file__).parent
PRINT_RULES: Final = (
    "import sys; sys.path.insert(0, {!r})\n"
    "from fencepost.pipeline.audit import rules\n"
    "print(rules.__file__, *rules.RULES, sep='\\n')"
)


def rules_of(package: Path) -> list[str]:
    """The rules that the package has where it is imported from a zip file."""
    printed = run(
        [sys.executable, "-I", "-c", PRINT_RULES.format(str(package))], cwd=package.parent
    ).out
    where, *names = printed.splitlines()
    assert where == f"{package}/fencepost/pipeline/audit/rules/__init__.py"
    return names


def add_rule(package: Path, module: str, like: str, **fields: str) -> None:
    """Put a rule's module into the zip file: that of another one, with some fields changed."""
    text = (FOLDER / f"{like}.py").read_text()
    head, _, declared = text.rpartition("RULE: Final = ")
    for field, value in fields.items():
        lines = [
            f"    {field}={value}," if line.startswith(f"    {field}=") else line
            for line in declared.splitlines()
        ]
        declared = "\n".join(lines)
    with zipfile.ZipFile(package, "a") as opened:
        name = f"fencepost/pipeline/audit/rules/{module}.py"
        opened.writestr(name, f"{head}RULE: Final = {declared}\n")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return write_package(tmp_path / "fencepost.zip")


def test_an_executor_has_the_same_rules_in_the_same_order(package: Path) -> None:
    assert rules_of(package) == list(RULES)


def test_each_module_is_a_rule_of_its_name() -> None:
    modules = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    assert {name.replace("-", "_") for name in RULES} == modules


def test_each_module_about_directories_is_a_rule_of_its_name() -> None:
    folder = Path(directory_rules.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert {name.replace("-", "_") for name in DIRECTORY_RULES} == modules
    assert list(ALL_RULES) == [*DIRECTORY_RULES, *RULES]


def test_each_rule_is_named_by_a_test_of_what_it_finds() -> None:
    tests = [path.read_text() for path in OWN.parent.glob("test_*.py") if path != OWN]
    assert [name for name in ALL_RULES if not any(f'"{name}"' in text for text in tests)] == []


def test_a_new_module_is_followed_in_its_place(package: Path) -> None:
    add_rule(package, "a_new_one", like="torn_tail", name="'a-new-one'", order="1")
    add_rule(package, "b_new_one", like="fetched_share", name="'b-new-one'")
    present = list(RULES)
    assert rules_of(package) == ["a-new-one", *present[:-1], "b-new-one", present[-1]]
