"""What the stories of docs/stories.md are played on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.stories import Stage, stage


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("stage")) as made:
        yield made


@pytest.fixture
def fresh(kept: Stage) -> Stage:
    """A cluster of three in which nothing is left of the story before."""
    kept.control.reset()
    return kept
