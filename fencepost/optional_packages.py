"""Imports of libraries without optional packages that they would import as well."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


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
