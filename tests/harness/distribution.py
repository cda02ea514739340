"""Which worker of pytest-xdist runs a test, and in which order.

A file's tests run in one worker, and so do all files that share a fixture which takes long to make:
each worker that has such a test would make its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest
from xdist.scheduler import LoadGroupScheduling

SHARED: Final = ("kafka_wrote", "spark", "fencepost_answers")
"""Fixtures that one worker makes. A file that needs more than one of them goes with the first."""


def share(items: Sequence[pytest.Item]) -> None:
    """Mark the tests of files that need a fixture of `SHARED`: their group is its name.

    A file that names a group of its own stays in that: where what it does beside takes so long that
    the others would end after all else.
    """
    wanted: dict[object, set[str]] = {}
    for item in items:
        wanted.setdefault(item.path, set()).update(getattr(item, "fixturenames", ()))
    for item in items:
        fixture = next((name for name in SHARED if name in wanted[item.path]), None)
        if fixture is not None and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(fixture))


def long_ones_first(items: list[pytest.Item]) -> None:
    """Let what has long tests, those that set a time limit, begin first: else it may end alone."""
    limits: dict[str, float] = {}
    for item in items:
        limit = item.get_closest_marker("timeout")
        if limit is not None and limit.args:
            unit = _unit(item)
            limits[unit] = max(limits.get(unit, 0), limit.args[0])
    items.sort(key=lambda item: -limits.get(_unit(item), 0))


def _unit(item: pytest.Item) -> str:
    """What runs in one worker: a group, or a file."""
    group = item.get_closest_marker("xdist_group")
    return str(item.path if group is None else group.args[0])


class Scheduling(LoadGroupScheduling):
    """``--dist loadgroup``, but tests that are in no group go by file."""

    def _split_scope(self, nodeid: str) -> str:
        scope: str = super()._split_scope(nodeid)
        return scope.split("::", 1)[0]
