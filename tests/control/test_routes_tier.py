"""The remote tier by its verbs: an answer comes when the tier is done, and says what came of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import pytest

from fencepost.broker.core.events import Event, Kind
from fencepost.broker.core.scheduler import ManualClock
from fencepost.storage.tier.object_store import MemoryObjectStore
from tests.control.test_metrics import scrape
from tests.harness.control_client import Json, ok, refused
from tests.harness.typed_client import produce
from tests.harness.wait import eventually

if TYPE_CHECKING:
    import httpx

    from fencepost.broker.server.server import Server

PARTITION: Final = "/v1/topics/t/partitions/0"
FAULTS: Final = "/v1/tier/faults"
CONFIGS: Final[dict[str, str]] = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "2147483647",
}
"""A tier that is left alone unless a verb says otherwise."""
NOTHING: Final = {
    "start_offset": -1,
    "last_tiered_offset": -1,
    "pending_upload_offset": -1,
    "segments": [],
}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def configs() -> dict[str, str]:
    return CONFIGS


@pytest.fixture(autouse=True)
async def _topic(server: Server, control: httpx.AsyncClient) -> None:
    """Broker 1 leads; a segment of two records is closed, one more record is behind it."""
    body = {
        "name": "t",
        "assignments": [[1, 2, 3]],
        "configs": {"remote.storage.enable": "true", "message.timestamp.type": "LogAppendTime"},
    }
    await ok(control, "POST", "/v1/topics", body)
    await produce(server, "t")
    await produce(server, "t")
    await ok(control, "POST", f"{PARTITION}/roll")
    await produce(server, "t")


async def tier(control: httpx.AsyncClient, action: str) -> Json:
    return await ok(control, "POST", f"{PARTITION}/tier", {"action": action})


async def remote(control: httpx.AsyncClient) -> Json:
    return (await ok(control, "GET", PARTITION))["remote"]


async def local_starts(control: httpx.AsyncClient) -> list[int]:
    state = await ok(control, "GET", PARTITION)
    return [each["local_log_start_offset"] for each in state["replicas"]]


def stored(server: Server) -> dict[str, bytes]:
    """What is in the tier, by key."""
    store = server.cluster.objects
    assert isinstance(store, MemoryObjectStore)
    return store.objects


def hear(server: Server) -> list[Event]:
    heard: list[Event] = []
    server.cluster.events.listeners.append(heard.append)
    return heard


async def test_an_upload_tells_what_is_in_the_tier_then(
    server: Server, control: httpx.AsyncClient
) -> None:
    assert await remote(control) == NOTHING
    heard = hear(server)
    answer = await tier(control, "upload")
    (segment,) = answer["uploaded"]
    assert (segment["start_offset"], segment["end_offset"]) == (0, 1)
    assert segment["epochs"] == [{"epoch": 0, "start_offset": 0}]
    assert answer["remote"] == await remote(control)
    assert answer["remote"] == {
        "start_offset": 0,
        "last_tiered_offset": 1,
        "pending_upload_offset": 2,
        "segments": [segment],
    }
    (event,) = (each for each in heard if each.kind is Kind.SEGMENT_UPLOADED)
    assert dict(event.details) == segment
    assert (event.topic, event.partition, event.broker) == ("t", 0, 1)
    assert any(segment["id"] in key for key in stored(server))
    assert (await tier(control, "upload"))["uploaded"] == []


async def test_the_examples_are_accepted(control: httpx.AsyncClient) -> None:
    document = await ok(control, "GET", "/openapi.json")
    examples = document["components"]["schemas"]["TierBody"]["examples"]
    assert examples
    for example in examples:
        await ok(control, "POST", f"{PARTITION}/tier", example)


async def test_only_a_partition_with_a_leader_and_a_tier_has_these_verbs(
    control: httpx.AsyncClient,
) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "plain", "assignments": [[1]]})
    place = "/v1/topics/plain/partitions/0"
    assert (await ok(control, "GET", place))["remote"] is None
    for action in ("upload", "delete-local", "expire", "forget", "lose"):
        status, code, message = await refused(control, "POST", f"{place}/tier", {"action": action})
        assert (status, code) == (400, "INVALID_REQUEST")
        assert "remote.storage.enable" in message
    for broker in (1, 2, 3):
        await ok(control, "POST", f"/v1/brokers/{broker}/stop")
    assert await remote(control) is None
    _, code, _ = await refused(control, "POST", f"{PARTITION}/tier", {"action": "upload"})
    assert code == "LEADER_NOT_AVAILABLE"


async def test_all_replicas_let_go_of_what_is_tiered_and_of_no_more(
    control: httpx.AsyncClient,
) -> None:
    deleted = (await tier(control, "delete-local"))["deleted_locally"]
    assert [each["segments"] for each in deleted] == [0, 0, 0]
    await tier(control, "upload")
    assert (await tier(control, "delete-local"))["deleted_locally"] == [
        {"broker": broker, "segments": 1, "local_log_start_offset": 2} for broker in (1, 2, 3)
    ]
    assert await local_starts(control) == [2, 2, 2]


async def test_a_replica_on_a_broker_that_is_down_keeps_what_it_has(
    control: httpx.AsyncClient,
) -> None:
    await tier(control, "upload")
    await ok(control, "POST", "/v1/brokers/3/stop")
    deleted = (await tier(control, "delete-local"))["deleted_locally"]
    assert [each["broker"] for each in deleted] == [1, 2]
    assert await local_starts(control) == [2, 2, 0]


async def test_the_leader_comes_first_whoever_it_is(control: httpx.AsyncClient) -> None:
    await ok(control, "POST", f"{PARTITION}/elect", {"leader": 2})
    deleted = (await tier(control, "delete-local"))["deleted_locally"]
    assert [each["broker"] for each in deleted] == [2, 1, 3]


async def test_a_leader_that_has_forgotten_learns_again_when_its_task_runs(
    server: Server, control: httpx.AsyncClient
) -> None:
    known = (await tier(control, "upload"))["remote"]
    heard = hear(server)
    assert (await tier(control, "forget"))["remote"] == NOTHING
    assert [each.kind for each in heard] == [Kind.VERB, Kind.TIER_FORGOTTEN]
    assert await remote(control) == NOTHING
    answer = await tier(control, "upload")
    assert (answer["uploaded"], answer["remote"]) == ([], known)


async def test_what_the_tier_loses_nobody_is_told(
    server: Server, control: httpx.AsyncClient
) -> None:
    known = (await tier(control, "upload"))["remote"]
    await tier(control, "delete-local")
    answer = await tier(control, "lose")
    assert (answer["lost_objects"], answer["remote"]) == (6, known)
    assert stored(server) == {}
    # Until its task looks: then the log begins where there is something.
    await tier(control, "upload")
    state = await ok(control, "GET", PARTITION)
    assert (state["log_start_offset"], state["remote"]["segments"]) == (2, [])


async def test_what_is_old_enough_expires(clock: ManualClock, control: httpx.AsyncClient) -> None:
    await tier(control, "upload")
    assert (await tier(control, "expire"))["expired"] == []
    clock.move_to(clock.now_ms() + 8 * 24 * 3_600_000)
    (segment,) = (await tier(control, "expire"))["expired"]
    assert segment["end_offset"] == 1
    assert (await ok(control, "GET", PARTITION))["log_start_offset"] == 2


# Faults


async def test_a_fault_lets_an_operation_fail_so_often(
    server: Server, control: httpx.AsyncClient
) -> None:
    heard = hear(server)
    fault = await ok(control, "POST", FAULTS, {"operation": "upload", "error": "no space left"})
    assert (fault["hits"], fault["left"], fault["delay_ms"]) == (0, 1, None)
    status, code, message = await refused(
        control, "POST", f"{PARTITION}/tier", {"action": "upload"}
    )
    assert (status, code) == (400, "KAFKA_STORAGE_ERROR")
    assert "no space left" in message
    (shown,) = await ok(control, "GET", FAULTS)
    assert shown == {**fault, "hits": 1, "left": 0}
    assert len((await tier(control, "upload"))["uploaded"]) == 1
    kinds = [each.kind for each in heard]
    assert kinds.index(Kind.TIER_FAULT_ADDED) < kinds.index(Kind.TIER_FAULT_HIT)
    hit = next(each for each in heard if each.kind is Kind.TIER_FAULT_HIT)
    assert (hit.details["operation"], hit.details["error"]) == ("upload", "no space left")


async def test_a_fault_lets_an_operation_wait_for_the_clock(
    server: Server, control: httpx.AsyncClient
) -> None:
    await ok(control, "POST", FAULTS, {"operation": "upload", "delay_ms": 500})
    uploading = asyncio.ensure_future(tier(control, "upload"))
    await eventually(lambda: server.cluster.tier_faults.all()[0].hits == 1)
    for ms, done in ((499, False), (1, True)):
        assert not uploading.done()
        await ok(control, "POST", "/v1/clock/advance", {"ms": ms})
        assert bool((await remote(control))["segments"]) is done
    assert len((await uploading)["uploaded"]) == 1


async def test_an_upload_that_nobody_waits_for_any_more_goes_on(
    server: Server, control: httpx.AsyncClient
) -> None:
    await ok(control, "POST", FAULTS, {"operation": "upload", "delay_ms": 500})
    uploading = asyncio.ensure_future(tier(control, "upload"))
    await eventually(lambda: server.cluster.tier_faults.all()[0].hits == 1)
    uploading.cancel()
    await ok(control, "POST", "/v1/clock/advance", {"ms": 500})
    assert len((await remote(control))["segments"]) == 1


async def test_an_upload_ends_with_its_leader(server: Server, control: httpx.AsyncClient) -> None:
    await ok(control, "POST", FAULTS, {"operation": "upload", "delay_ms": 500})
    uploading = asyncio.ensure_future(
        refused(control, "POST", f"{PARTITION}/tier", {"action": "upload"})
    )
    await eventually(lambda: server.cluster.tier_faults.all()[0].hits == 1)
    await ok(control, "POST", f"{PARTITION}/elect", {"leader": 2})
    _, code, _ = await uploading
    assert code == "KAFKA_STORAGE_ERROR"


async def test_faults_are_removed_one_by_one_or_all(control: httpx.AsyncClient) -> None:
    added = [
        await ok(control, "POST", FAULTS, {"operation": "fetch", "delay_ms": n, "count": None})
        for n in range(3)
    ]
    assert await ok(control, "DELETE", f"{FAULTS}/{added[1]['id']}") == added[1]
    assert await ok(control, "GET", FAULTS) == [added[0], added[2]]
    status, code, _ = await refused(control, "DELETE", f"{FAULTS}/{added[1]['id']}")
    assert (status, code) == (404, "RESOURCE_NOT_FOUND")
    assert await ok(control, "DELETE", FAULTS) == {}
    assert await ok(control, "GET", FAULTS) == []


async def test_a_reset_takes_faults_and_the_tier_with_it(
    server: Server, control: httpx.AsyncClient
) -> None:
    await tier(control, "upload")
    await ok(control, "POST", FAULTS, {"operation": "fetch", "error": True})
    await ok(control, "POST", "/v1/reset")
    assert await ok(control, "GET", FAULTS) == []
    await eventually(lambda: stored(server) == {})


# Metrics


async def test_what_went_to_the_tier_is_counted(server: Server, control: httpx.AsyncClient) -> None:
    await ok(control, "POST", FAULTS, {"operation": "upload", "error": True})
    place = {"topic": "t", "partition": 0}
    found = await scrape(control)
    assert found("partition_remote_copy_lag_segments", **place) == 1
    assert found("partition_remote_last_tiered_offset", **place) == -1
    await refused(control, "POST", f"{PARTITION}/tier", {"action": "upload"})
    (segment,) = (await tier(control, "upload"))["uploaded"]
    found = await scrape(control)
    assert found("remote_copy_requests_total") == 2
    assert found("remote_copy_errors_total") == 1
    assert found("remote_copy_bytes_total") == segment["bytes"]
    assert found("partition_remote_copy_lag_segments", **place) == 0
    assert found("partition_remote_last_tiered_offset", **place) == 1
    assert found("partition_remote_segments", **place) == 1
    assert found("partition_remote_log_size_bytes", **place) == segment["bytes"]
    assert server.cluster.remote_storage_metrics.fetch_requests == 0
