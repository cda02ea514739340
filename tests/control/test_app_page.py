"""The page at / needs nothing from elsewhere, and shows and does what its reader asks for."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from fencepost.broker.core.events import Kind
from fencepost.client import Client, NewRecord, Partition, TransactionalProducer
from fencepost.verbs.fault_bodies import FaultAction
from tests.control.test_routes_groups import join
from tests.harness.control_client import Json, ok
from tests.harness.typed_client import produce

if TYPE_CHECKING:
    import httpx

    from fencepost.broker.server.server import Server

DRIVER: Final = Path(__file__).with_name("page_driver.mjs")
NODE: Final = shutil.which("node")
VALUES: Final = {"error": "NOT_LEADER_OR_FOLLOWER", "disconnect": "after"}
"""What is typed for an action that takes no number."""
APIS: Final = {"stale_metadata": "Metadata", "silent": "*", "refuse": "*"}
"""The API of an action that cannot hit a Fetch."""
needs_node = pytest.mark.skipif(NODE is None, reason="the page's script runs in Node")


async def test_it_is_one_file_that_needs_no_other(control: httpx.AsyncClient) -> None:
    answer = await control.get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert not re.findall(r"(?:https?:)?//[\w.]+\.\w+|@import|\bsrc=", answer.text)
    assert len(answer.content) < 30_000


async def test_links_lead_somewhere(control: httpx.AsyncClient) -> None:
    links = set(re.findall(r'href="(/[^"]*)"', (await control.get("/")).text))
    assert links >= {"/openapi.json", "/metrics", "/v1/trace"}
    for link in links:
        assert (await control.get(link)).status_code == 200, link


async def browse(control: httpx.AsyncClient, *steps: tuple[str, ...]) -> Json:
    """What the page shows when these steps are done, by id; see the driver."""
    assert NODE is not None
    process = await asyncio.create_subprocess_exec(
        NODE,
        str(DRIVER),
        str(control.base_url).rstrip("/"),
        json.dumps(steps),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(30):
        out, problem = await process.communicate()
    assert process.returncode == 0, problem.decode()
    answer = json.loads(out)
    assert answer["problems"] == []
    assert answer["kinds"] == list(Kind)
    return answer["shown"]


@needs_node
async def test_it_shows_brokers_partitions_and_lag(
    server: Server, control: httpx.AsyncClient
) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2, 3]]})
    await ok(control, "POST", "/v1/topics/t/partitions/0/replicas/3/hold", {"leave_isr": True})
    await produce(server, "t", values=[b"a", b"b"])
    shown = await browse(control, ("wait", "partitions", "lag 2"))
    port = server.cluster.options.addresses[0].port
    assert f"127.0.0.1:{port}" in shown["brokers"]
    assert "1 partitions, replication factor 3" in shown["summary"]
    assert "held end 0 lag 2 elect release step" in shown["partitions"]
    assert "idle end 2 lag 0 elect hold step" in shown["partitions"]
    assert shown["problem"] == ""


@needs_node
async def test_its_buttons_are_verbs(server: Server, control: httpx.AsyncClient) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2]]})
    shown = await browse(
        control,
        ("wait", "partitions", "elect"),
        ("click", "partitions", "elect"),
        ("wait", "partitions", "0 2 1"),
        ("click", "brokers", "kill"),
        ("wait", "brokers", "killed"),
    )
    partition = server.cluster.controller.image.partition("t", 0)
    assert partition is not None
    assert (partition.leader, partition.leader_epoch) == (2, 1)
    assert not server.cluster.brokers[1].running
    assert "killed , fenced" in shown["brokers"]


@needs_node
async def test_groups_are_shown_with_members_state_and_lag(
    server: Server, control: httpx.AsyncClient
) -> None:
    for name, assignments in (("t", [[1], [1]]), ("__consumer_offsets", [[1]])):
        await ok(control, "POST", "/v1/topics", {"name": name, "assignments": assignments})
    await ok(control, "POST", "/v1/topics/t/records", {"partition": 0, "records": [{}, {}, {}]})
    offsets = [{"topic": "t", "partition": index, "offset": 0} for index in (0, 1)]
    await ok(control, "POST", "/v1/groups/pay%2Fments/offsets", {"offsets": offsets})
    member_id = await join(server)
    shown = await browse(control, ("wait", "groups", "shipping"))
    payments, shipping = " ".join(shown["groups"].split()).split("shipping")
    assert payments.startswith("pay/ments Empty 0 ")
    assert "t-0 at 0 lag 3 t-1 at 0 lag 0 lag 3 in total" in payments
    assert "Stable 1 " in shipping
    assert f"app {member_id} t-0 remove t-0 nothing committed" in shipping
    shown = await browse(
        control,
        ("wait", "groups", "shipping"),
        ("click", "groups", "remove"),
        ("wait", "groups", "shipping Empty 2"),
    )
    assert member_id not in shown["groups"]


@needs_node
async def test_transactions_are_aborted_and_their_markers_released(
    server: Server, control: httpx.AsyncClient
) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2]]})
    port = server.cluster.options.addresses[0].port
    async with Client(f"127.0.0.1:{port}") as client:
        producer = TransactionalProducer(client, "copier/1")
        await producer.init()
        await producer.begin()
        await producer.send(Partition(topic="t", index=0), [NewRecord(value=b"a", timestamp=0)])
        await ok(
            control, "POST", "/v1/transactions/copier%2F1/hold", {"topic": "t", "partition": 0}
        )
        shown = await browse(
            control,
            ("wait", "transactions", "Ongoing"),
            ("click", "transactions", "abort"),
            ("wait", "transactions", "PrepareAbort"),
            ("click", "transactions", "release t-0"),
            ("wait", "transactions", "CompleteAbort"),
        )
    assert shown["problem"] == ""
    assert shown["transactions"].startswith("copier/1 0 1 CompleteAbort")


@needs_node
async def test_faults_are_set_and_removed(server: Server, control: httpx.AsyncClient) -> None:
    await browse(
        control,
        ("type", "fault-api", "Fetch"),
        ("type", "fault-count", "always"),
        ("type", "fault-kind", "delay"),
        ("type", "fault-value", "20"),
        ("click", "fault-add"),
        ("wait", "faults", '{"delay":20}'),
        ("click", "faults", "remove"),
    )
    shown = await browse(
        control,
        ("type", "fault-api", "Fetsch"),
        ("type", "fault-value", "NOT_LEADER_OR_FOLLOWER"),
        ("click", "fault-add"),
        ("wait", "problem", "Fetsch"),
    )
    assert shown["problem"].startswith("INVALID_REQUEST")


@needs_node
async def test_every_kind_of_fault_is_offered_and_can_be_set(control: httpx.AsyncClient) -> None:
    kinds = list(FaultAction.model_fields)
    steps: list[tuple[str, ...]] = []
    for kind in kinds:
        value = "" if kind in FaultAction.words() else VALUES.get(kind, "5")
        steps += [
            ("type", "fault-api", APIS.get(kind, "Fetch")),
            ("type", "fault-kind", kind),
            ("type", "fault-value", value),
            ("click", "fault-add"),
            ("wait", "faults", f'{{"{kind}":'),
        ]
    shown = await browse(control, *steps)
    assert shown["fault-kind"].split() == kinds
    assert shown["problem"] == ""


async def test_the_page_names_no_kind_of_fault_by_hand() -> None:
    source = files("fencepost.control").joinpath("page.html").read_text("utf-8")
    for kind in FaultAction.model_fields:
        assert not re.search(rf"[\"'>]{kind}[\"'<]", source), kind


@needs_node
async def test_internal_topics_stand_last(control: httpx.AsyncClient) -> None:
    for name in ("__consumer_offsets", "t", "u"):
        await ok(control, "POST", "/v1/topics", {"name": name})
    shown = await browse(control, ("wait", "topic", "__consumer_offsets"))
    assert shown["topic"] == "t u __consumer_offsets"


@needs_node
async def test_a_zombie_and_a_held_leader_are_named(control: httpx.AsyncClient) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2]]})
    await ok(control, "POST", "/v1/topics/t/partitions/0/replicas/2/hold")
    await ok(control, "POST", "/v1/brokers/1/isolate", {"from": "controller"})
    shown = await browse(control, ("wait", "partitions", "zombie leader"))
    assert "held leader 2" in shown["partitions"]
    assert "two leaders: broker 2 leads in epoch 1" in shown["partitions"]


@needs_node
async def test_events_are_listed_the_newest_first(control: httpx.AsyncClient) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1]]})
    event = {"time_ms": 0, "text": "t-0: leader 1 -> 2 in epoch 1"}
    steps = [
        ("event", json.dumps({"number": number, "kind": "leader_changed", **event}))
        for number in (1, 2)
    ]
    shown = await browse(control, *steps, ("wait", "events", "1  00:00"))
    assert shown["events"].startswith(
        "2  00:00:00.000  leader_changed  t-0: leader 1 -> 2 in epoch 1"
    )
