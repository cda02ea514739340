"""Imports go one way: between rooms, and between modules with few exceptions.

import-linter checks the rooms (see pyproject.toml). Here every import counts, also one that is
within a function or for the type checker alone.
"""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = ROOT / "fencepost"
LARGEST_CYCLE: Final = 3
"""Modules that may import each other: a thing and its parts."""
MAY_NAME_BROKER: Final = ("node", "data_dir", "server")
"""The rooms of ``fencepost.broker`` that need the class; the others declare Protocols."""


def module_names(package: Path) -> dict[str, Path]:
    """The modules of a package, by their full names."""
    names = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def imported_modules(tree: ast.AST, modules: Mapping[str, Path]) -> Iterator[str]:
    """What a module imports: of ``from a import b`` the module ``a.b``, where there is one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                submodule = f"{node.module}.{each.name}"
                yield submodule if submodule in modules else node.module


def import_graph(modules: Mapping[str, Path]) -> dict[str, list[str]]:
    """The modules of a package that each of them imports."""
    return {
        name: sorted(
            modules.keys() & set(imported_modules(ast.parse(path.read_text()), modules)) - {name}
        )
        for name, path in modules.items()
    }


def cycles(graph: Mapping[str, list[str]]) -> list[list[str]]:
    """The strongly connected components of more than one module (Tarjan's algorithm)."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(module: str) -> None:
        numbers[module] = lowest[module] = len(numbers)
        stack.append(module)
        for other in graph[module]:
            if other not in numbers:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], numbers[other])
        if lowest[module] == numbers[module]:
            component = stack[stack.index(module) :]
            del stack[-len(component) :]
            if len(component) > 1:
                found.append(sorted(component))

    for module in graph:
        if module not in numbers:
            visit(module)
    return found


def test_few_modules_import_each_other() -> None:
    modules = module_names(PACKAGE)
    assert len(modules) > 300, "the package was not found"
    found = cycles(import_graph(modules))
    assert [cycle for cycle in found if len(cycle) > LARGEST_CYCLE] == []


def test_a_cycle_is_found_wherever_its_imports_are(tmp_path: Path) -> None:
    package = tmp_path / "p"
    package.mkdir()
    sources = {
        "__init__": "",
        "a": "from p.b import name",
        "b": "def f():\n    from p import c",
        "c": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import p.d",
        "d": "import p.a",
        "e": "import p.a",
    }
    for name, source in sources.items():
        (package / f"{name}.py").write_text(source)
    assert cycles(import_graph(module_names(package))) == [["p.a", "p.b", "p.c", "p.d"]]


# -- rooms --------------------------------------------------------------------------------------


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contract of the broker's rooms in a copy of the package."""
    command = [
        *(sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"),
        *("--no-cache", "--contract", "broker-rooms", "--config", str(ROOT / "pyproject.toml")),
    ]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240
    )


@pytest.mark.parametrize(
    ("module", "line", "named"),
    [
        (
            "metadata/image.py",
            "from fencepost.broker.core.waits import Wait",
            "fencepost.broker.metadata is not allowed to import fencepost.broker.core",
        ),
        (
            "tiering/remote_segments.py",
            "def f():\n    from fencepost.broker.node.broker import Broker",
            "fencepost.broker.tiering is not allowed to import fencepost.broker.node",
        ),
    ],
)
def test_a_room_that_imports_one_above_it_breaks_the_contract(
    tmp_path: Path, module: str, line: str, named: str
) -> None:
    copied = shutil.copytree(
        PACKAGE, tmp_path / "fencepost", ignore=shutil.ignore_patterns("__pycache__")
    )
    path = copied / "broker" / module
    path.write_text(f"{path.read_text()}\n\n{line}\n")
    checked = lint(tmp_path)
    assert (checked.returncode, named in checked.stdout) == (1, True), checked.stdout


def names_in(source: str) -> set[str]:
    """Every name that a module uses or imports, also in annotations that are strings."""
    found = set()
    nodes = list(ast.walk(ast.parse(source)))
    # The parts of an f-string are no annotations.
    texts = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if node in texts:
            continue
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.add(node.name.rpartition(".")[2])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= _names_in_annotation(node.value)
    return found


def _names_in_annotation(text: str) -> set[str]:
    try:
        expression = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return set()
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}


def test_only_the_last_rooms_of_the_broker_name_its_class() -> None:
    rooms = [path for path in sorted((PACKAGE / "broker").iterdir()) if path.is_dir()]
    modules = [
        module
        for room in rooms
        if room.name not in MAY_NAME_BROKER
        for module in sorted(room.rglob("*.py"))
    ]
    assert len(modules) > 100, "the modules were not found"
    found = [str(m.relative_to(PACKAGE)) for m in modules if "Broker" in names_in(m.read_text())]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "from fencepost.broker.node.broker import Broker",
        "def f(broker: Broker) -> None: ...",
        'def f(broker: "Broker | None") -> None: ...',
        "from fencepost.broker.node import broker\ndef f(b: broker.Broker) -> None: ...",
    ],
)
def test_what_names_the_class(source: str) -> None:
    assert "Broker" in names_in(source)


def test_text_names_no_class() -> None:
    assert "Broker" not in names_in('"""A Broker."""\nERROR = "Broker id must not be empty"')
    assert "Broker" not in names_in('ERROR = f"Broker-level {name} cannot be altered"')
