"""What the control API shows is what is."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from fencepost.broker.core.scheduler import ManualClock
from fencepost.control.cluster_state import cluster_state, partition_state
from fencepost.protocol.messages.api_versions import ApiVersionsRequest
from tests.harness.control_client import ok, refused
from tests.harness.in_process_server import make_cluster, sockets
from tests.harness.typed_client import kafka, produce

if TYPE_CHECKING:
    import httpx

    from fencepost.broker.server.server import Server


async def test_healthz(control: httpx.AsyncClient) -> None:
    assert await ok(control, "GET", "/healthz") == {"status": "ok"}


async def test_the_cluster(server: Server, control: httpx.AsyncClient) -> None:
    state = await ok(control, "GET", "/v1/cluster")
    addresses = server.cluster.options.addresses
    assert state["brokers"] == [
        {
            "id": i,
            "host": address.advertised_host,
            "port": address.port,
            "listeners": {"PLAINTEXT": f"{address.host}:{address.port}"},
            "state": "running",
            "fenced": False,
            "registered": True,
            "epoch": 1,
            "isolated_from": [],
        }
        for i, address in enumerate(addresses, start=1)
    ]
    assert state["controller"] == 1
    assert state["cluster_id"] == server.cluster.controller.image.cluster_id
    assert state["features"] == {
        "kraft.version": 1,
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "transaction.version": 2,
    }
    assert state["clock"]["mode"] == "real"
    now_ms = server.clock.wall_ms()
    assert now_ms - 10_000 < state["clock"]["now_ms"] <= now_ms


async def test_features_are_those_that_api_versions_answers(
    server: Server, control: httpx.AsyncClient
) -> None:
    request = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    async with kafka(server, 1) as client:
        answer = await client.ask("api_versions", 4, request)
    finalized = {each.name: each.max_version_level for each in answer.finalized_features}
    assert finalized
    assert (await ok(control, "GET", "/v1/cluster"))["features"] == finalized


def test_a_manual_clock_and_brokers_that_advertise_nothing() -> None:
    ports = sockets(1)
    cluster = make_cluster(ports, clock=ManualClock(7), advertised="")
    state = cluster_state(cluster, reached_host="192.0.2.9")
    for sock in ports:
        sock.close()
    assert (state.clock.mode, state.clock.now_ms) == ("manual", 7)
    assert state.brokers[0].host == "192.0.2.9"


async def test_a_partition_is_shown_whole(server: Server, control: httpx.AsyncClient) -> None:
    body = {
        "name": "t",
        "assignments": [[2, 1]],
        "configs": {"segment.bytes": "1048576", "max.message.bytes": "2000000"},
    }
    made = await ok(control, "POST", "/v1/topics", body)
    value = bytes(700_000)
    for _ in range(2):
        await produce(server, "t", values=[value])
    await ok(control, "POST", "/v1/topics/t/partitions/0/elect", {"leader": 1})
    await produce(server, "t", values=[b"a", b"b", b"c"])
    state = await ok(control, "GET", "/v1/topics/t/partitions/0")
    replicas = state.pop("replicas")
    assert state == {
        "topic": "t",
        "topic_id": made["topic_id"],
        "partition": 0,
        "leader": 1,
        "leader_epoch": 1,
        "isr": [2, 1],
        "offline": [],
        "high_watermark": 5,
        "last_stable_offset": 5,
        "log_start_offset": 0,
        "gate": {"open": True, "until_offset": 2},
        "remote": None,
        "explanation": None,
        "lost": None,
    }
    assert uuid.UUID(made["topic_id"]).int
    logs = [server.cluster.brokers[b].replicas["t", 0].log for b in (2, 1)]
    for replica, log in zip(replicas, logs, strict=True):
        assert replica.pop("segments") == [
            {"base_offset": s.base_offset, "bytes": s.size_bytes, "records": s.records}
            for s in log.segments()
        ]
        assert [s.records for s in log.segments()] == [1, 4]
    same = {
        "log_start_offset": 0,
        "local_log_start_offset": 0,
        "log_end_offset": 5,
        "high_watermark": 5,
        "epochs": [{"epoch": 0, "start_offset": 0}, {"epoch": 1, "start_offset": 2}],
        "held": False,
        "held_at": None,
        "zombie": False,
    }
    assert replicas == [
        {"broker": 2, "role": "follower", "state": "idle", "label": "idle", **same},
        {"broker": 1, "role": "leader", "state": "leading", "label": "leading", **same},
    ]


async def test_what_is_not_there_is_said_to_be_unknown(control: httpx.AsyncClient) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "partitions": 1})
    for path in ("t/partitions/1", "t/partitions/-1", f"t/partitions/{10**30}", "u/partitions/0"):
        status, code, _ = await refused(control, "GET", f"/v1/topics/{path}")
        assert (status, code) == (404, "UNKNOWN_TOPIC_OR_PARTITION")


async def test_a_replica_that_its_broker_has_not_heard_of_is_offline(
    server: Server, control: httpx.AsyncClient
) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2]]})
    del server.cluster.brokers[1].replicas["t", 0]
    state = partition_state(server.cluster, "t", 0)
    assert [(r.role, r.log_end_offset) for r in state.replicas] == [
        ("offline", -1),
        ("follower", 0),
    ]
    assert state.high_watermark == -1
