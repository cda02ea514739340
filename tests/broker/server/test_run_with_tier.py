"""A served cluster with its tier in a folder: what happens when, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.harness.served_cluster import Cluster, serving

T = 1_700_000_000_000
TIERED = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "1000",
    "retention.ms": "-1",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "tier"


@pytest.fixture
def standing_still(folder: Path, tmp_path: Path) -> Iterator[Cluster]:
    with serving(
        tmp_path / "log", "--remote", f"file://{folder}", "--clock", "manual", brokers=1
    ) as cluster:
        yield cluster


def advance(cluster: Cluster, ms: int) -> None:
    url = f"{cluster.control}/v1/clock/advance"
    assert httpx.post(url, json={"ms": ms}, timeout=60, trust_env=False).status_code == 200


def append(cluster: Cluster, topic: str, count: int) -> None:
    for number in range(count):
        cluster.append(topic, (T + number, None, b"x" * 400))


def test_when_time_has_been_advanced_all_is_in_the_tier_that_was_due(
    standing_still: Cluster, folder: Path
) -> None:
    topic = standing_still.create_topic(configs=TIERED, replication_factor=1)
    append(standing_still, topic, 9)
    advance(standing_still, 29_999)
    assert not list(folder.glob(f"{topic}-*/0/*.log"))
    advance(standing_still, 1)
    names = sorted(path.name for path in folder.glob(f"{topic}-*/0/*.log"))
    assert [int(name[:20]) for name in names] == [0, 2, 4, 6]
    assert all('"COPY_SEGMENT_FINISHED"' in path.read_text() for path in folder.rglob("*.json"))
    append(standing_still, topic, 2)
    advance(standing_still, 30_000)
    assert len(list(folder.glob(f"{topic}-*/0/*.log"))) == 5


def test_a_reset_leaves_nothing_in_the_tier(standing_still: Cluster, folder: Path) -> None:
    topic = standing_still.create_topic(configs=TIERED, replication_factor=1)
    append(standing_still, topic, 9)
    advance(standing_still, 30_000)
    assert list(folder.rglob("*.log"))
    reset = httpx.post(f"{standing_still.control}/v1/reset", json={}, trust_env=False)
    assert reset.status_code == 200
    advance(standing_still, 1)
    assert not [path for path in folder.rglob("*") if path.is_file()]
