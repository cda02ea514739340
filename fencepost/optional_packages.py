"""Imports of libraries without optional packages that they would import as well."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def as_if_missing(package: str) -> Iterator[None]:
    """Import as where a package is not installed, unless it has been imported already."""
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment]  # the import system's mark for it
    try:
        yield
    finally:
        del sys.modules[package]


@contextmanager
def as_if_unused(package: str) -> Iterator[None]:
    """Import what takes names from a package and does not use them, unless it has been imported.

    The names stand for nothing: what uses one later on fails, or does not recognize an object of
    the package.
    """
    if package in sys.modules:
        yield
        return
    sys.modules[package] = _Unused(package)
    try:
        yield
    finally:
        del sys.modules[package]


class _Unused(ModuleType):
    """Has every name: numbers in capital letters, and classes."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # the import system looks for some
            raise AttributeError(name)
        return 0 if name.isupper() else type(name, (Exception,), {})
