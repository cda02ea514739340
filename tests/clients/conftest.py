"""What the stories of docs/stories.md are played on, and where clients meet faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.clients.failing_cluster import FailingCluster, failing_cluster
from tests.clients.grounds import Stand, stands
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


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Stand]]:
    """A cluster with three clients at it: ``fencepost``, or ``kafka`` behind a fault proxy."""
    with stands(tmp_path_factory.mktemp) as get:
        yield get


@pytest.fixture(scope="session")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FailingCluster]:
    """A cluster of three for applications that process exactly once."""
    with failing_cluster(tmp_path_factory.mktemp("failing")) as made:
        yield made
