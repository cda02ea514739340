"""Files that share a fixture which takes long to make run in one worker, each other file in any."""

from __future__ import annotations

from typing import Final, cast

import pytest

from docs.generate import ROOT
from tests.harness.distribution import GROUPS, LONG, SHARED, Scheduling, long_ones_first, unit

SPARK: Final = "tests/pipeline/load/test_load.py::test_it"


class Item:
    """As much of a test as is looked at."""

    def __init__(self, nodeid: str, limit: float = 0) -> None:
        self.nodeid = nodeid
        self._limit = limit

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return pytest.mark.timeout(self._limit).mark if self._limit else None


def test_every_file_that_shares_a_fixture_is_in_a_group(request: pytest.FixtureRequest) -> None:
    """Of the files that this run collects: of all, when it is whole."""
    sharing = {
        item.nodeid
        for item in request.session.items
        if not set(SHARED).isdisjoint(getattr(item, "fixturenames", ()))
    }
    assert [nodeid for nodeid in sharing if unit(nodeid).endswith(".py")] == []


@pytest.mark.parametrize("start", [start for start, _ in GROUPS])
def test_every_group_has_files(start: str) -> None:
    assert list(ROOT.glob(f"{start}*"))


def test_the_group_of_the_longest_begins() -> None:
    short, long = Item("tests/a.py::test_it"), Item("tests/b.py::test_it", 400)
    first, longest = Item(SPARK), Item("tests/pipeline/stream/test_page.py::test_it", 600)
    items = cast("list[pytest.Item]", [short, long, first, longest])
    long_ones_first(items)
    assert items == cast("list[pytest.Item]", [first, longest, long, short])


@pytest.mark.parametrize("name", LONG)
def test_what_takes_long_in_all_begins_before_the_others(name: str) -> None:
    paths = [start for start, group in GROUPS if group == name] or [name]
    assert all(list(ROOT.glob(f"{path}*")) for path in paths)
    short, long = Item("tests/a.py::test_it", 300), Item(f"{paths[0]}::test_it")
    items = cast("list[pytest.Item]", [short, long])
    long_ones_first(items)
    assert items == cast("list[pytest.Item]", [long, short])


def test_a_group_is_one_unit_and_so_is_a_file() -> None:
    scheduling = Scheduling.__new__(Scheduling)
    assert scheduling._split_scope(SPARK) == "spark"
    assert scheduling._split_scope("tests/a.py::test_it[x::y]") == "tests/a.py"
