"""Topics and elections: each answer means that the effect is there, on every broker."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from fencepost.broker.replication.replica_manager import NEW_AT_ONCE, OPENED_IN_A_TURN
from fencepost.protocol.errors import ErrorCode
from tests.harness.control_client import Json, ok, refused
from tests.harness.typed_client import kafka, produce
from tests.harness.typed_requests import list_offsets_request

if TYPE_CHECKING:
    import httpx

    from fencepost.broker.server.server import Server


async def latest(server: Server, broker_id: int, topic: str, epoch: int) -> Json:
    """What one broker answers to ListOffsets(latest) of partition 0."""
    request = list_offsets_request(topic, current_leader_epoch=epoch)
    async with kafka(server, broker_id) as client:
        answer = await client.ask("list_offsets", 5, request)
    return answer.topics[0].partitions[0]


async def test_a_created_topic_is_there_with_every_replica_in_sync(
    server: Server, control: httpx.AsyncClient
) -> None:
    body = {
        "name": "orders",
        "partitions": 2,
        "replication_factor": 3,
        "configs": {"retention.ms": "1000"},
    }
    made = await ok(control, "POST", "/v1/topics", body)
    image = server.cluster.controller.image.topics["orders"]
    assert made == {
        "name": "orders",
        "topic_id": str(image.topic_id),
        "partitions": 2,
        "replication_factor": 3,
        "internal": False,
        "configs": {"retention.ms": "1000"},
    }
    assert await ok(control, "GET", "/v1/topics") == [made]
    for index in range(2):
        state = await ok(control, "GET", f"/v1/topics/orders/partitions/{index}")
        assert sorted(state["isr"]) == [1, 2, 3]
    for broker in server.cluster.brokers.values():
        for index in range(2):
            assert broker.replicas["orders", index].log.config.retention_ms == 1000


async def test_very_many_partitions_are_whole_when_the_answer_comes_and_others_act_meanwhile(
    control: httpx.AsyncClient, server: Server
) -> None:
    partitions = NEW_AT_ONCE + OPENED_IN_A_TURN + 1
    opened = set()

    async def look() -> None:
        while True:
            opened.add(len(server.cluster.brokers[1].replicas))
            await asyncio.sleep(0)

    looking = asyncio.ensure_future(look())
    body = {"name": "t", "partitions": partitions, "replication_factor": 3}
    answer = await ok(control, "POST", "/v1/topics", body)
    looking.cancel()
    assert opened == {0, NEW_AT_ONCE, NEW_AT_ONCE + OPENED_IN_A_TURN, partitions}
    assert answer["partitions"] == partitions
    for broker in server.cluster.brokers.values():
        assert len(broker.replicas) == partitions
        assert all(replica.leader_epoch == 0 for replica in broker.replicas.values())


async def test_assignments_say_who_leads(control: httpx.AsyncClient) -> None:
    body = {"name": "t", "assignments": [[3, 1], [2, 3]]}
    made = await ok(control, "POST", "/v1/topics", body)
    assert (made["partitions"], made["replication_factor"]) == (2, 2)
    for index, replicas in enumerate(body["assignments"]):
        state = await ok(control, "GET", f"/v1/topics/t/partitions/{index}")
        assert [replica["broker"] for replica in state["replicas"]] == replicas
        assert state["leader"] == replicas[0]


async def test_counts_that_are_left_out_are_the_brokers(
    server: Server, control: httpx.AsyncClient
) -> None:
    server.cluster.controller.set_broker_configs(
        None, {"num.partitions": "4", "default.replication.factor": "2"}
    )
    made = await ok(control, "POST", "/v1/topics", {"name": "t"})
    configs = server.cluster.brokers[1].configs
    assert made["partitions"] == configs.num_partitions
    assert made["replication_factor"] == configs.default_replication_factor
    made = await ok(control, "POST", "/v1/topics", {"name": "u", "replication_factor": 3})
    assert (made["partitions"], made["replication_factor"]) == (configs.num_partitions, 3)


async def test_topics_are_listed_by_name(control: httpx.AsyncClient) -> None:
    for name in ("b", "a", "c"):
        await ok(control, "POST", "/v1/topics", {"name": name})
    listed = await ok(control, "GET", "/v1/topics")
    assert [topic["name"] for topic in listed] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("body", "status", "code", "words"),
    [
        ({"name": "taken"}, 409, "TOPIC_ALREADY_EXISTS", "'taken' already exists"),
        ({"name": "a/b"}, 400, "INVALID_TOPIC_EXCEPTION", "'a/b'"),
        ({"name": "\ud800"}, 400, "INVALID_TOPIC_EXCEPTION", "?"),
        ({"name": "t", "partitions": 0}, 400, "INVALID_PARTITIONS", "non-positive"),
        ({"name": "t", "partitions": 10**30}, 400, "POLICY_VIOLATION", "large number"),
        ({"name": "t", "replication_factor": 4}, 400, "INVALID_REPLICATION_FACTOR", "3 broker"),
        ({"name": "t", "assignments": [[9]]}, 400, "INVALID_REPLICA_ASSIGNMENT", "broker 9"),
        ({"name": "t", "assignments": []}, 400, "INVALID_REPLICA_ASSIGNMENT", "empty"),
        ({"name": "t", "assignments": [[1]], "partitions": 1}, 400, "INVALID_REQUEST", "not both"),
        ({"name": "t", "configs": {"x.y": "1"}}, 400, "INVALID_CONFIG", "x.y"),
        ({"name": "t", "configs": {"retention.ms": "no"}}, 400, "INVALID_CONFIG", "retention.ms"),
    ],
)
async def test_a_topic_that_cannot_be_is_refused_by_kafkas_code(
    control: httpx.AsyncClient, body: Json, status: int, code: str, words: str
) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "taken"})
    answer = await control.post(
        "/v1/topics",
        content=json.dumps(body),
        headers={"content-type": "application/json"},
    )
    found = answer.json()
    assert (answer.status_code, found["error"]) == (status, code)
    assert words in found["message"]
    assert [topic["name"] for topic in await ok(control, "GET", "/v1/topics")] == ["taken"]


async def test_a_deleted_topic_is_gone_on_every_broker(
    server: Server, control: httpx.AsyncClient
) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "replication_factor": 3})
    assert await ok(control, "DELETE", "/v1/topics/t") == {}
    assert await ok(control, "GET", "/v1/topics") == []
    assert all(not broker.replicas for broker in server.cluster.brokers.values())
    assert (await refused(control, "DELETE", "/v1/topics/t"))[:2] == (
        404,
        "UNKNOWN_TOPIC_OR_PARTITION",
    )


async def test_an_election_moves_the_leader_and_raises_the_epoch(
    server: Server, control: httpx.AsyncClient
) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2, 3]]})
    await produce(server, "t", values=[b"a", b"b"])
    state = await ok(control, "POST", "/v1/topics/t/partitions/0/elect", {"leader": 2})
    assert (state["leader"], state["leader_epoch"]) == (2, 1)
    assert state == await ok(control, "GET", "/v1/topics/t/partitions/0")
    roles = {replica["broker"]: replica["role"] for replica in state["replicas"]}
    assert roles == {1: "follower", 2: "leader", 3: "follower"}
    # Every broker answers as the state says, without any waiting.
    assert (await latest(server, 2, "t", 1)).offset == 2
    assert (await latest(server, 2, "t", 0)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (await latest(server, 1, "t", -1)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert await produce(server, "t") == 2


async def test_electing_the_leader_again_raises_the_epoch_too(
    control: httpx.AsyncClient,
) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2]]})
    for epoch in (1, 2):
        state = await ok(control, "POST", "/v1/topics/t/partitions/0/elect", {"leader": 1})
        assert (state["leader"], state["leader_epoch"]) == (1, epoch)


@pytest.mark.parametrize(
    ("path", "body", "status", "code", "words"),
    [
        ("t/partitions/0", {"leader": 3}, 409, "ELIGIBLE_LEADERS_NOT_AVAILABLE", "[1, 2]"),
        ("t/partitions/0", {"leader": 9}, 409, "ELIGIBLE_LEADERS_NOT_AVAILABLE", "broker 9"),
        ("t/partitions/1", {"leader": 1}, 404, "UNKNOWN_TOPIC_OR_PARTITION", "t-1"),
        ("u/partitions/0", {"leader": 1}, 404, "UNKNOWN_TOPIC_OR_PARTITION", "u-0"),
        ("t/partitions/0", {}, 400, "INVALID_REQUEST", "leader: field required"),
    ],
)
async def test_an_election_that_cannot_be_changes_nothing(
    control: httpx.AsyncClient, path: str, body: Json, status: int, code: str, words: str
) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2]]})
    found = await refused(control, "POST", f"/v1/topics/{path}/elect", body)
    assert found[:2] == (status, code)
    assert words in found[2]
    state = await ok(control, "GET", "/v1/topics/t/partitions/0")
    assert (state["leader"], state["leader_epoch"]) == (1, 0)
