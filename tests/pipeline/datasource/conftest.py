"""Directories to read."""

from __future__ import annotations

import pytest

from tests.pipeline.datasource.leaving import Left, leave


@pytest.fixture(scope="session")
def left(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """What three brokers left that were killed."""
    return leave(tmp_path_factory.mktemp("left"))
