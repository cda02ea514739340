"""The test files of docs/languages.md, run as they stand there."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest

from docs.generate import ROOT
from tests.harness import golang
from tests.harness.cache import made_once
from tests.harness.java import jars
from tests.harness.require import tool
from tests.harness.run import run

HOME: Final = Path(__file__).parent
PAGE: Final = ROOT / "docs" / "languages.md"


def example(name: str, path: Path) -> Path:
    """A block of the page, written to a file."""
    found = re.search(rf"<!-- run: {name} -->\n```[a-z]+\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found, f"there is no block {name}"
    path.write_text(found[1])
    return path


def environment() -> dict[str, str]:
    """Where ``fencepost`` is the one of this environment."""
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }


@pytest.mark.timeout(400)
def test_junit(tmp_path: Path) -> None:
    compiler, java = tool("javac"), tool("java")
    libraries = jars(HOME / "java" / "pom.xml")
    source = example("junit", tmp_path / "OrdersTest.java")
    compilation = [compiler, "-Xlint:all", "-Werror", "-cp", f"{libraries}/*", str(source)]
    run(compilation, timeout_s=180)
    launcher = ["org.junit.platform.console.ConsoleLauncher", "execute", "--scan-class-path"]
    path = os.pathsep.join([f"{libraries}/*", str(tmp_path)])
    done = run([java, "-cp", path, *launcher, "--disable-banner"], env=environment(), timeout_s=120)
    assert re.search(r"\[ +2 tests successful +\]", done.out), done.out
    assert re.search(r"\[ +0 tests failed +\]", done.out)


@pytest.mark.timeout(400)
def test_go(tmp_path: Path) -> None:
    go = tool("go")
    source = example("go", tmp_path / "orders_test.go")

    def build(folder: Path) -> None:
        for each in (golang.HOME / "go.mod", golang.HOME / "go.sum", source):
            shutil.copy(each, folder)
        run([go, "vet", "."], cwd=folder, timeout_s=280)
        run([go, "test", "-c", "-o", "tests", "."], cwd=folder, timeout_s=280)

    inputs = [golang.HOME / "go.mod", golang.HOME / "go.sum", source]
    tests = made_once("orders", inputs, build) / "tests"
    done = run([str(tests), "-test.v"], env=environment())
    assert done.out.count("--- PASS: TestAProducer") == 2


@pytest.mark.timeout(400)
def test_node(tmp_path: Path) -> None:
    node, npm = tool("node"), tool("npm")
    packages = [HOME / "node" / "package.json", HOME / "node" / "package-lock.json"]

    def fetch(folder: Path) -> None:
        for each in packages:
            shutil.copy(each, folder)
        run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder, timeout_s=280)

    shutil.copytree(made_once("node", packages, fetch), tmp_path, dirs_exist_ok=True)
    source = example("node", tmp_path / "orders.test.js")
    done = run(
        [node, "--test", "--test-reporter=tap", str(source)], env=environment(), cwd=tmp_path
    )
    assert "# pass 2\n# fail 0\n" in done.out, done.out
