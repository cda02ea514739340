"""A Go client's own test suite, fetched by the Go proxy and built once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from tests.harness.cache import made_once
from tests.harness.require import tool
from tests.harness.run import run

HOME: Final = Path(__file__).parents[1] / "clients" / "go"


def build_tests(package: str) -> Path:
    """The tests of ``package``, at the version that ``go.mod`` pins (built in about 30 s)."""
    go = tool("go")

    def build(folder: Path) -> None:
        # A module of its own: the build must not write into the tree.
        for name in ("go.mod", "go.sum"):
            shutil.copy(HOME / name, folder)
        output = str(folder / "tests")
        run([go, "test", "-c", "-o", output, package], cwd=folder, timeout_s=280)

    inputs = [HOME / "go.mod", HOME / "go.sum"]
    return made_once(package.rsplit("/", 1)[-1], inputs, build) / "tests"


def source_dir(package: str) -> Path:
    """Where the package's sources are: its tests are run there, and some read them."""
    found = run([tool("go"), "list", "-f", "{{.Dir}}", package], cwd=HOME, timeout_s=120)
    return Path(found.out.strip())


def build_program(name: str) -> Path:
    """A program of ``tests/clients/go``, built once (about 10 s)."""
    go = tool("go")
    source = HOME / name / "main.go"

    def build(folder: Path) -> None:
        for each in ("go.mod", "go.sum"):
            shutil.copy(HOME / each, folder)
        shutil.copy(source, folder)
        run([go, "build", "-o", str(folder / "program"), "."], cwd=folder, timeout_s=280)

    return made_once(name, [HOME / "go.mod", HOME / "go.sum", source], build) / "program"
