"""Verbs after which a replica reads a tier in files: they answer when it has caught up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

import pytest

from fencepost.broker.node import operator_actions
from fencepost.broker.server.object_store import open_objects
from tests.harness.control_client import Json, ok
from tests.harness.in_process_server import running
from tests.harness.typed_client import produce

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from fencepost.broker.server.server import Server

PARTITION: Final = "/v1/topics/t/partitions/0"
REPLICA: Final = f"{PARTITION}/replicas/2"
BROKER: Final = "/v1/brokers/2"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    configs = {
        "remote.log.storage.system.enable": "true",
        "remote.log.manager.task.interval.ms": "2147483647",
    }
    with open_objects(f"file://{tmp_path}", at_once=False) as make_objects:
        async with running(configs=configs, make_objects=make_objects) as started:
            yield started


@pytest.fixture(autouse=True)
async def _topic(server: Server, control: httpx.AsyncClient) -> None:
    """The leader has the last of three records, the tier the others."""
    configs = {"remote.storage.enable": "true", "retention.ms": "-1"}
    body = {"name": "t", "assignments": [[1, 2]], "configs": configs}
    await ok(control, "POST", "/v1/topics", body)
    for _ in range(2):
        await produce(server, "t")
        await ok(control, "POST", f"{PARTITION}/roll")
    await produce(server, "t")
    for action in ("upload", "delete-local"):
        await ok(control, "POST", f"{PARTITION}/tier", {"action": action})


async def replica(control: httpx.AsyncClient) -> Json:
    state = await ok(control, "GET", PARTITION)
    return next(each for each in state["replicas"] if each["broker"] == 2)


@pytest.mark.parametrize(
    ("before", "verb"),
    [
        (None, f"{REPLICA}/wipe"),
        (f"{REPLICA}/hold", f"{REPLICA}/release"),
        (f"{BROKER}/kill", f"{BROKER}/start"),
        (f"{BROKER}/isolate", f"{BROKER}/rejoin"),
    ],
)
async def test_the_answer_comes_when_the_replica_is_built(
    server: Server, control: httpx.AsyncClient, before: str | None, verb: str
) -> None:
    if before is not None:
        await ok(control, "POST", before, {"from": [1]} if "isolate" in before else {})
        operator_actions.wipe(server.cluster, "t", 0, 2)
        assert (await replica(control))["log_end_offset"] <= 0
    await ok(control, "POST", verb)
    found = await replica(control)
    assert (found["log_start_offset"], found["local_log_start_offset"]) == (0, 2)
    assert (found["log_end_offset"], found["state"]) == (3, "idle")


async def test_what_a_fault_delays_is_not_waited_for(
    server: Server, control: httpx.AsyncClient
) -> None:
    fault = {"operation": "fetch", "delay_ms": 3_600_000, "count": None}
    await ok(control, "POST", "/v1/tier/faults", fault)
    await ok(control, "POST", f"{REPLICA}/wipe")
    assert (await replica(control))["state"] == "building"


async def test_a_tier_that_fails_ends_the_wait(server: Server, control: httpx.AsyncClient) -> None:
    fault = {"operation": "fetch", "error": True, "count": None}
    await ok(control, "POST", "/v1/tier/faults", fault)
    await ok(control, "POST", f"{REPLICA}/wipe")
    assert (await replica(control))["state"] == "backing_off"
