"""The order services, each copied to an empty folder, pass their ten failure tests."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest

from docs.generate import ROOT
from tests.harness.cache import made_once
from tests.harness.java import jars
from tests.harness.process_guard import starts_a_process
from tests.harness.require import tool
from tests.harness.run import run

HOME: Final = ROOT / "examples" / "order_service"
LANGUAGES: Final = ROOT / "tests" / "languages" / "java" / "pom.xml"
ONE_LIFE: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")


def environment() -> dict[str, str]:
    """Where ``fencepost`` is the one of this environment."""
    programs = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": os.pathsep.join([programs, os.environ["PATH"]])}


@pytest.mark.timeout(200)
def test_the_one_in_python(tmp_path: Path) -> None:
    starts_a_process()
    service = tmp_path / "service"
    shutil.copytree(HOME / "python", service, ignore=shutil.ignore_patterns("__pycache__"))
    # What this environment has besides pytest, a project of a user's own need not have.
    without = ("cacheprovider", "schemathesis", "hypothesispytest", "xdist", "asyncio", "cov")
    plugins = [part for name in without for part in ("-p", f"no:{name}")]
    pytest_of_its_own = [sys.executable, "-m", "pytest", "-q", "--rootdir", "."]
    done = run([*pytest_of_its_own, *plugins], cwd=service, env=environment(), timeout_s=150)
    assert "10 passed" in done.out


@pytest.mark.timeout(400)
def test_the_one_in_java(tmp_path: Path) -> None:
    compiler, java = tool("javac"), tool("java")
    service = HOME / "java"
    sources = sorted((service / "src").rglob("*.java"))
    (console,) = jars(LANGUAGES).glob("junit-platform-console-standalone-*.jar")
    libraries = f"{jars(service / 'pom.xml')}/*{os.pathsep}{console}"

    def compile_sources(folder: Path) -> None:
        options = ["-Xlint:all", "-Werror", "-cp", libraries, "-d", str(folder)]
        run([compiler, *options, *map(str, sources)], timeout_s=180)

    classes = made_once(
        "order-service", [service / "pom.xml", LANGUAGES, *sources], compile_sources
    )
    path = os.pathsep.join([libraries, str(classes)])
    launcher = ["org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner"]
    tests = [f"--scan-class-path={classes}"]
    done = run(
        [java, *ONE_LIFE, "-cp", path, *launcher, *tests],
        cwd=tmp_path,
        env=environment(),
        timeout_s=150,
    )
    assert re.search(r"\[ +10 tests successful +\]", done.out), done.out
    assert re.search(r"\[ +0 tests failed +\]", done.out)


@pytest.mark.parametrize(
    ("tests", "is_one"),
    [
        ("python/test_failures.py", r"^def test_"),
        ("java/src/test/java/orders/FailuresTest.java", r"@Test$"),
    ],
)
def test_each_has_ten_tests_which_the_page_names(tests: str, is_one: str) -> None:
    page = (HOME / "README.md").read_text()
    text = (HOME / tests).read_text()
    assert len(re.findall(is_one, text, re.MULTILINE)) == 10
    names = re.findall(r"^def (test_\w+)|@Test\n  void (\w+)", text, re.MULTILINE)
    for name in map("".join, names):
        assert f"`{name}`" in page
