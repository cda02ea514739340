"""The rules about traces read the frames of the dialect kip-320-draft by its schemas."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fencepost.client import OffsetSpec, Partition, connect, fetch, list_offsets
from fencepost.client.groups import commit_offset, fetch_committed_offset
from fencepost.client.model import ConsumerGroupMetadata
from fencepost.pipeline.datasource.trace_files import read_trace_directory
from fencepost.protocol.errors import ErrorCode
from tests.pipeline.audit.tracing import TOPIC, Traced, audit, batch, traced

DIALECT = "kip-320-draft"
T = Partition(topic=TOPIC, index=0)
TIME = 1_600_000_000_000
VERSIONS = {"Fetch": 9, "ListOffsets": 4, "OffsetCommit": 6, "OffsetFetch": 5}


async def consume(leader: tuple[str, int], coordinator: tuple[str, int], epoch: int) -> None:
    """Read three records of an epoch, and commit."""
    connection = await connect(*leader, "draft", dialect=DIALECT)
    found = await list_offsets(connection, T, OffsetSpec.LATEST)
    assert (found.offset, found.epoch) == (6, epoch)
    assert (await fetch(connection, T, 3, last_epoch=0)).error == 0
    assert (await fetch(connection, T, 9, last_epoch=0)).error == ErrorCode.LOG_TRUNCATION
    await connection.close()
    connection = await connect(*coordinator, "draft", dialect=DIALECT)
    who = ConsumerGroupMetadata(group="g")
    done = await commit_offset(connection, who, T, 6, epoch=epoch, timestamp=TIME)
    assert done.error == 0
    await fetch_committed_offset(connection, "g", T)
    await connection.close()


def play(cluster: Traced) -> None:
    """A consumer of the draft, at a leader in epoch 1."""
    cluster.create(TOPIC, 1, 2)
    cluster.send(1, batch(0))
    cluster.elect(2)
    cluster.send(2, batch(3))
    coordinator = cluster.coordinator("g")
    addresses = cluster.served.cluster.addresses
    asyncio.run(consume(addresses[1], addresses[coordinator - 1], 1))
    cluster.stop()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("drafted")
    with traced(place, brokers=2, dialect=DIALECT) as cluster:
        play(cluster)
    return place


def test_rows_have_what_the_draft_says(place: Path) -> None:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in read_trace_directory(place / "trace").to_pylist():
        if row["api"] in VERSIONS and row["client_id"] == "draft":
            assert row["version"] == VERSIONS[row["api"]]
            found.setdefault(row["api"], []).append(row)
    fetches = [
        (r["fetch_offset"], r["asked_epoch"], r["current_leader_epoch"], r["error"])
        for r in found["Fetch"]
    ]
    assert fetches == [(3, 0, -1, 0), (9, 0, -1, ErrorCode.LOG_TRUNCATION)]
    (listed,) = found["ListOffsets"]
    assert (listed["offset"], listed["epoch"], listed["current_leader_epoch"]) == (6, 1, -1)
    for api in ("OffsetCommit", "OffsetFetch"):
        (row,) = found[api]
        assert (row["group"], row["offset"], row["epoch"], row["error"]) == ("g", 6, 1, 0)


def test_nothing_is_found_of_a_sound_cluster(place: Path) -> None:
    assert audit(place) == []


def test_an_epoch_that_a_commit_lost_is_found(tmp_path: Path) -> None:
    with traced(tmp_path, "commits-without-epoch", brokers=2, dialect=DIALECT) as cluster:
        play(cluster)
    (found,) = audit(tmp_path)
    assert (found.rule, found.offset) == ("committed-offsets", 6)
