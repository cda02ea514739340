"""Which tests coverage measures: enough to execute every branch, not every repetition.

A traced run costs two to eight times as much as an untraced one, and most of the suite's time is
repetition: the hundredth case of a table, the thousandth example of a property. Coverage measures
the import of every module, once for all workers of xdist, each test function's first cases, and no
property.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from xdist import is_xdist_worker  # type: ignore[import-untyped]  # it has no types

import fencepost

MEASURED_CASES: Final = 4
"""Of each parametrized test function."""

_unmeasured = pytest.StashKey[bool]()


@contextmanager
def untraced() -> Iterator[None]:
    """Suspend the measurement of coverage."""
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    if sys.gettrace() is None:
        return (yield)
    if not is_xdist_worker(session):  # their controller does it, which has nothing else to do
        _import_all()
    with untraced():
        return (yield)


def _import_all() -> None:
    for module in pkgutil.walk_packages(fencepost.__path__, "fencepost."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    # Where xdist is not loaded there is no such option.
    if is_xdist_worker(session) or session.config.getoption("dist", "no") == "no":
        return (yield)
    with untraced():  # the controller runs no test
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    cases = Counter[str]()
    for item in sorted(items, key=lambda item: item.nodeid):  # not in the random order
        function = item.nodeid.partition("[")[0]
        cases[function] += 1
        item.stash[_unmeasured] = (
            cases[function] > MEASURED_CASES
            or item.get_closest_marker("unmeasured") is not None
            or _is_property(item)
        )


def _is_property(item: pytest.Item) -> bool:
    """Whether hypothesis runs the test on many examples."""
    return bool(getattr(getattr(item, "obj", None), "is_hypothesis_test", False))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if not item.stash[_unmeasured]:
        return (yield)
    with untraced():
        return (yield)
