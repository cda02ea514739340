"""The oldest versions that pyproject.toml allows, and the lock that is tested with them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.oldest import NoLowerBound, oldest_versions, runtime_requirements

ROOT = Path(__file__).parents[2]


def test_each_requirement_is_pinned_to_its_lower_bound() -> None:
    windows = "sys_platform == 'win32'"
    found = oldest_versions(["a>=1.2", "b-c == 3", "d[x]>=4,<5", f"e<9, >= 8.1 ; {windows}"])
    assert list(found) == ["a==1.2", "b-c==3", "d==4", f"e==8.1 ; {windows}"]


@pytest.mark.parametrize("requirement", ["a", "a<3"])
def test_a_requirement_without_an_oldest_version_is_refused(requirement: str) -> None:
    with pytest.raises(NoLowerBound, match=re.escape(requirement)):
        list(oldest_versions([requirement]))


@pytest.mark.parametrize(
    "lock", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda p: p.name
)
def test_a_lock_names_no_host(lock: Path) -> None:
    assert "://" not in lock.read_text()


def test_the_lock_of_what_runs_has_no_extra() -> None:
    names = {name: _locked(name) for name in ("run", "tier", "spark")}
    assert "obstore" not in names["run"]
    assert names["run"].items() <= names["tier"].items() <= names["spark"].items()
    assert names["tier"].keys() - names["run"].keys() == {"obstore"}


def _locked(name: str) -> dict[str, str]:
    """The versions of a lock, by package."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    return dict(re.findall(r"^([a-z0-9.-]+)==([^ ]+)", text, re.MULTILINE))


def test_the_lock_has_the_oldest_version_of_each() -> None:
    locked = _locked("oldest")
    for pinned in oldest_versions(runtime_requirements()):
        name, version = pinned.split(" ")[0].split("==")
        assert re.fullmatch(rf"{re.escape(version)}(\.0)*", locked[name]), pinned
