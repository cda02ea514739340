"""The core reads no clock, draws from no global randomness, touches no environment.

import-linter keeps whole modules out (see pyproject.toml); this looks at single names, which the
core could reach through modules that it may use, such as ``uuid.uuid4`` or ``datetime.now``.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

PACKAGE: Final = Path(__file__).resolve().parent.parent / "fencepost"
CORE: Final = ("protocol", "storage", "broker", "client/consumer")
EDGE: Final = PACKAGE / "broker" / "server"

FORBIDDEN: Final = frozenset(
    {
        "__import__",
        "datetime.date.today",
        "datetime.datetime.now",
        "datetime.datetime.today",
        "datetime.datetime.utcnow",
        "input",
        "open",
        "os.environ",
        "os.getenv",
        "os.getpid",
        "os.urandom",
        "print",
        "random.SystemRandom",
        "uuid.uuid1",
        "uuid.uuid4",
    }
)
"""The core is handed a clock, a random.Random and a storage instead."""


def imported_names(tree: ast.AST) -> dict[str, str]:
    """What each imported name stands for, in full."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                bound = each.asname or each.name.partition(".")[0]
                names[bound] = each.name if each.asname else bound
        elif isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                names[each.asname or each.name] = f"{node.module}.{each.name}"
    return names


def dotted(node: ast.expr) -> str | None:
    """``a.b.c`` of an attribute's expression, None for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None


def is_forbidden(name: str) -> bool:
    module, _, member = name.partition(".")
    shared_randomness = module == "random" and member and not member.startswith("Random")
    return name in FORBIDDEN or bool(shared_randomness)


def violations(source: str) -> Iterator[str]:
    """``line: name`` for each use of something forbidden."""
    tree = ast.parse(source)
    imported = imported_names(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name | ast.Attribute):
            continue
        written = dotted(node)
        if written is None:
            continue
        head, dot, rest = written.partition(".")
        name = f"{imported.get(head, head)}{dot}{rest}"
        if is_forbidden(name):
            yield f"{node.lineno}: {name}"


def core_modules() -> list[Path]:
    found = [path for room in CORE for path in (PACKAGE / room).rglob("*.py")]
    return sorted(path for path in found if not path.is_relative_to(EDGE))


def test_the_core_takes_time_and_chance_as_they_are_given() -> None:
    modules = core_modules()
    assert len(modules) > 20, "the core was not found"
    found = [
        f"{path.relative_to(PACKAGE)}:{violation}"
        for path in modules
        for violation in violations(path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import uuid\nuuid.uuid4()", ["2: uuid.uuid4"]),
        ("from uuid import uuid4 as new\nnew()", ["2: uuid.uuid4"]),
        ("import random\nrandom.random()", ["2: random.random"]),
        ("from random import choice\nchoice([1])", ["2: random.choice"]),
        ("import datetime as d\nd.datetime.now()", ["2: datetime.datetime.now"]),
        ("from datetime import datetime\ndatetime.now()", ["2: datetime.datetime.now"]),
        ("from os import environ\nenviron['A']", ["2: os.environ"]),
        ("def f():\n    import os\n    os.urandom(4)", ["3: os.urandom"]),
        ("print(1)", ["1: print"]),
        ("from random import Random\nRandom(7).random()", []),
        ("import random\ndef f(rng: random.Random): rng.random()", []),
        ("import uuid\nuuid.UUID(int=1)", []),
        ("def f(now): now.open()", []),
    ],
)
def test_what_counts_as_a_violation(source: str, found: list[str]) -> None:
    assert list(violations(source)) == found
