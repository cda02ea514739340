"""What a suite says of all its clusters, by a fixture of its own."""

from __future__ import annotations

import pytest

from fencepost.testing import Cluster


@pytest.fixture(scope="session")
def fencepost_options() -> dict[str, object]:
    return {"brokers": 2, "topics": ["orders:1:2"]}


def test_a_suite_has_its_own_options(fencepost: Cluster) -> None:
    assert len(fencepost.partition("orders", 0).isr) == 2


@pytest.mark.fencepost(topics=[])
def test_a_marker_stands_above_them(fencepost: Cluster) -> None:
    assert len(fencepost.cluster().brokers) == 2
    assert fencepost.topics() == []
