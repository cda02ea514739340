"""Files that share a fixture which takes long to make run in one worker, each other file in any."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from tests.harness.distribution import SHARED, Scheduling, long_ones_first, share


class Item:
    """As much of a test as is looked at."""

    def __init__(self, file: str, *fixtures: str, limit: float = 0) -> None:
        self.path = Path(file)
        self.fixturenames = fixtures
        self.marks = {"timeout": pytest.mark.timeout(limit).mark} if limit else {}

    def add_marker(self, marker: pytest.MarkDecorator) -> None:
        self.marks[marker.name] = marker.mark

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self.marks.get(name)

    @property
    def group(self) -> object:
        mark = self.marks.get("xdist_group")
        return None if mark is None else mark.args[0]


def listed(*items: Item) -> list[pytest.Item]:
    return cast("list[pytest.Item]", list(items))


@pytest.mark.parametrize("fixture", SHARED)
def test_files_that_need_the_same_are_one_group(fixture: str) -> None:
    items = [Item("a", "tmp_path", fixture), Item("a"), Item("b", fixture), Item("c", "tmp_path")]
    share(listed(*items))
    assert [item.group for item in items] == [fixture, fixture, fixture, None]


def test_a_file_that_needs_two_goes_with_the_first() -> None:
    items = [Item("a", SHARED[1]), Item("a", SHARED[0]), Item("b", SHARED[1])]
    share(listed(*items))
    assert [item.group for item in items] == [SHARED[0], SHARED[0], SHARED[1]]


def test_a_file_that_names_its_group_stays_there() -> None:
    item = Item("a", SHARED[0])
    item.add_marker(pytest.mark.xdist_group("own"))
    share(listed(item))
    assert item.group == "own"


def test_the_group_of_the_longest_begins() -> None:
    a, b, c, d = Item("a"), Item("b", SHARED[0]), Item("c", limit=400), Item("d", SHARED[0])
    d.marks["timeout"] = pytest.mark.timeout(600).mark
    share(listed(a, b, c, d))
    items = listed(a, b, c, d)
    long_ones_first(items)
    assert items == [b, d, c, a]


@pytest.mark.parametrize(
    ("nodeid", "scope"),
    [
        ("tests/a.py::test_it", "tests/a.py"),
        ("tests/a.py::test_it[x::y@z]", "tests/a.py"),
        ("tests/a.py::test_it@spark", "spark"),
        ("tests/a.py::test_it[x@y]@spark", "spark"),
    ],
)
def test_a_group_is_one_unit_and_so_is_a_file(nodeid: str, scope: str) -> None:
    assert Scheduling.__new__(Scheduling)._split_scope(nodeid) == scope
