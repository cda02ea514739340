"""The programs of docs/conditional-publish.md, run as they stand there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.clients.grounds import Fencepost, fencepost, stored
from tests.clients.test_conditional import PAGE
from tests.harness import golang, java
from tests.harness.cache import made_once
from tests.harness.require import tool
from tests.harness.run import run
from tests.harness.served_cluster import unique

TEXT: Final = PAGE.read_text(encoding="utf-8")


def block(name: str) -> str:
    found = re.search(rf"<!-- run: {name} -->\n```[a-z]+\n(.*?)```", TEXT, re.DOTALL)
    assert found, f"there is no block {name}"
    return found[1]


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fencepost]:
    with fencepost(tmp_path_factory.mktemp("examples")) as made:
        yield made


@pytest.fixture
def topic(ground: Fencepost) -> str:
    """A new one, made by the command of the page."""
    name = unique("orders")
    command = block("conditional-topic").removeprefix("$ ").replace("orders", name)
    assert name in command
    run(
        ["bash", "-c", command.replace("curl -s", "curl -sf", 1)],
        env={**os.environ, "CONTROL": ground.verbs.remote.url},
    )
    (made,) = [each for each in ground.verbs.topics() if each.name == name]
    assert made.configs["check.expected.offsets.source"] == "header"
    return name


def _java(folder: Path, bootstrap: str, topic: str) -> list[str]:
    source = folder / "Append.java"
    source.write_text(block("conditional-java"))
    return java.java(str(source), bootstrap, topic).lines


def _python(folder: Path, bootstrap: str, topic: str) -> list[str]:
    source = folder / "append.py"
    source.write_text(block("conditional-python"))
    return run([sys.executable, str(source), bootstrap, topic]).lines


def _go(folder: Path, bootstrap: str, topic: str) -> list[str]:
    go = tool("go")
    source = folder / "main.go"
    source.write_text(block("conditional-go"))
    modules = [golang.HOME / "go.mod", golang.HOME / "go.sum"]

    def build(at: Path) -> None:
        for each in (*modules, source):
            shutil.copy(each, at)
        run([go, "vet", "."], cwd=at, timeout_s=280)
        run([go, "build", "-o", "program", "."], cwd=at, timeout_s=280)

    program = made_once("conditional-example", [*modules, source], build) / "program"
    return run([str(program), bootstrap, topic]).lines


@pytest.mark.timeout(600)  # the first builds a Go program and fetches jars
@pytest.mark.parametrize("example", [_java, _python, _go], ids=["java", "python", "go"])
def test_an_example_does_what_the_page_says(
    ground: Fencepost,
    topic: str,
    tmp_path: Path,
    example: Callable[[Path, str, str], list[str]],
) -> None:
    first, second, refused, last = example(tmp_path, ground.cluster.bootstrap, topic)
    assert [first, second, last] == ["created is at 0", "paid is at 1", "shipped is at 2"]
    assert refused.startswith("cancelled: ")
    assert f"`{refused}`" in " ".join(TEXT.split())
    assert stored(ground.cluster, topic) == "created paid shipped"


def test_the_kcat_commands_do_what_the_page_says(ground: Fencepost, topic: str) -> None:
    tool("kcat")
    said: list[str] = []
    codes: list[int] = []
    environment = {**os.environ, "BOOTSTRAP": ground.cluster.bootstrap, "TOPIC": topic}
    for line in block("conditional-kcat").splitlines():
        if line.startswith("$ "):
            done = subprocess.run(
                ["bash", "-c", line.removeprefix("$ ")],
                check=False,
                capture_output=True,
                text=True,
                env=environment,
                timeout=60,
            )
            said += [line, *(done.stdout + done.stderr).split("\n")]
            codes.append(done.returncode)
    assert [line for line in said if line] == block("conditional-kcat").splitlines()
    assert codes == [0, 0, 1, 0]
    assert stored(ground.cluster, topic) == "created paid shipped"
