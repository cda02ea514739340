"""Servers with a data directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.harness.durable_cluster import DurableCluster

Serve = Callable[..., DurableCluster]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Makes a server; it ends with the test."""
    with ExitStack() as stack:

        def make(*options: str, brokers: int = 3, directory: Path | None = None) -> DurableCluster:
            made = DurableCluster(
                directory or tmp_path / "data", tmp_path / "log", brokers=brokers, options=options
            )
            stack.callback(made.close)
            return made

        yield make
