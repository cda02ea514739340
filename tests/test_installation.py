"""What an installation needs, and what it says where something is not installed."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from fencepost.broker.server.remote_urls import RemoteUnavailable, open_remote
from tests.harness.served_cluster import serving

ROOT: Final = Path(__file__).parents[1]
WITHOUT_OBSTORE: Final = """
import runpy, sys
sys.modules["obstore"] = None
sys.argv[0] = "fencepost"
runpy.run_module("fencepost", run_name="__main__")
"""


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9-]", each, maxsplit=1)[0].lower() for each in requirements}


def test_the_page_says_what_each_package_is_for() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text().partition("| package | extra |")[2]
    described: dict[str, set[str]] = {}
    for packages, extra in re.findall(r"^\| ([a-z0-9, -]+) \| ([a-z]*) ?\|", page, re.MULTILINE):
        described.setdefault(extra, set()).update(packages.split(", "))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].items()
    assert described == {
        "": names(project["dependencies"]),
        **{extra: names(packages) for extra, packages in extras},
    }


def test_the_locks_differ_by_the_extra_tier() -> None:
    texts = ((ROOT / "requirements" / name).read_text() for name in ("run.txt", "tier.txt"))
    run, tier = (set(re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE)) for text in texts)
    assert tier - run == {"obstore"}
    assert run <= tier


def test_without_obstore_a_tier_elsewhere_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    for url in (tmp_path.as_uri(), "s3://bucket"):
        with pytest.raises(
            RemoteUnavailable, match=r"install it with \S*python\S* -m pip install .*\[tier\]'$"
        ):
            open_remote(url, {})


def test_without_obstore_a_tier_in_memory_works(tmp_path: Path) -> None:
    options = ("--remote", "memory:", "--topic", "t:1:1,remote.storage.enable=true")
    program = ("-c", WITHOUT_OBSTORE)
    with serving(tmp_path / "log", *options, brokers=1, program=program) as cluster:
        assert cluster.append("t", (0, None, b"v")) == 0


def strings(path: Path) -> Iterator[str]:
    """The texts in a module that are no docstrings."""
    tree = ast.parse(path.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docstrings:
            assert isinstance(node, ast.Constant)
            yield str(node.value)


def test_no_message_names_a_page_that_an_installation_does_not_have() -> None:
    found = [
        (path.name, text)
        for path in sorted((ROOT / "fencepost").rglob("*.py"))
        for text in strings(path)
        if "docs/" in text or ".md" in text
    ]
    assert found == []
