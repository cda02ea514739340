"""A cluster with a dialect says so, and its journal shows the fields of the draft."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from fencepost.broker.server.trace_file import TraceFile
from fencepost.client import Client, OffsetSpec, Partition, fetch, list_offsets
from fencepost.client.cluster import find_coordinator
from fencepost.client.groups import commit_offset, fetch_committed_offset
from fencepost.client.model import ConsumerGroupMetadata
from fencepost.control.lazy_app import trace_lines
from fencepost.protocol.codec.drafts import KIP_320_DRAFT
from fencepost.protocol.errors import ErrorCode
from tests.control.test_message_json_trace_lines import written
from tests.harness.control_client import Json, ok
from tests.harness.in_process_server import HOST, control_plane, running, sockets, url

if TYPE_CHECKING:
    from fencepost.broker.server.server import Server

T = Partition(topic="t", index=0)
TIME = 1_600_000_000_000
SHOWN = ("Fetch", "ListOffsets", "OffsetCommit", "OffsetFetch")
REQUESTED = {
    "Fetch": {
        "partition": 0,
        "fetch_offset": 7,
        "log_start_offset": -1,
        "last_fetched_epoch": 0,
        "partition_max_bytes": 1 << 20,
    },
    "ListOffsets": {"partition_index": 0, "timestamp": -1},
    "OffsetCommit": {
        "partition_index": 0,
        "committed_offset": 3,
        "timestamp": TIME,
        "committed_leader_epoch": 2,
        "committed_metadata": "",
    },
    "OffsetFetch": 0,
}
ANSWERED = {
    "Fetch": {
        "partition_index": 0,
        "error_code": 2702,
        "high_watermark": -1,
        "last_stable_offset": -1,
        "log_start_offset": -1,
        "aborted_transactions": None,
        "records": {"bytes": 0, "batches": []},
    },
    "ListOffsets": {
        "partition_index": 0,
        "offset": 0,
        "leader_epoch": 0,
        "timestamp": -1,
        "error_code": 0,
    },
    "OffsetCommit": {"partition_index": 0, "error_code": 0},
    "OffsetFetch": {
        "partition_index": 0,
        "committed_offset": 3,
        "timestamp": TIME,
        "committed_leader_epoch": 2,
        "metadata": "",
        "error_code": 0,
    },
}


async def ask_each(server: Server) -> None:
    """Each of the four versions of the draft once."""
    port = server.cluster.options.addresses[0].port
    async with Client(f"{HOST}:{port}", dialect="kip-320-draft") as client:
        connection = await client.any_broker()
        await find_coordinator(connection, "g")
        assert (await fetch(connection, T, 7, last_epoch=0)).error == ErrorCode.LOG_TRUNCATION
        await list_offsets(connection, T, OffsetSpec.LATEST)
        who = ConsumerGroupMetadata(group="g")
        await commit_offset(connection, who, T, 3, epoch=2, timestamp=TIME)
        await fetch_committed_offset(connection, "g", T)


def partition(message: Json) -> Json:
    (topic,) = message.get("responses") or message["topics"]
    (found,) = topic.get("partition_indexes") or topic["partitions"]
    return found


def check(exchanges: list[Json]) -> None:
    """That these are the four, with the fields of the draft in their order."""
    assert [each["dialect"] for each in exchanges] == ["kip-320-draft"] * 4
    for exchange in exchanges:
        for message, expected in (("request", REQUESTED), ("response", ANSWERED)):
            shown, wanted = partition(exchange[message]), expected[exchange["api"]]
            assert shown == wanted
            if isinstance(wanted, dict):
                assert list(shown) == list(wanted)


async def test_the_journal_and_the_trace_have_the_fields_of_the_draft(tmp_path: Path) -> None:
    (sock,) = sockets(1)
    async with (
        running(sockets(1), dialect=KIP_320_DRAFT) as server,
        control_plane(server, sock),
        httpx.AsyncClient(base_url=url(sock), trust_env=False, timeout=30) as control,
    ):
        await ok(control, "POST", "/v1/topics", {"name": "t"})
        with TraceFile(tmp_path, trace_lines) as trace:
            trace.subscribe(server)
            await ask_each(server)
        shown = await ok(control, "GET", "/v1/trace")
        check([each for each in shown if each["api"] in SHOWN])
        found = await ok(control, "GET", "/v1/trace?error=LOG_TRUNCATION&topic=t")
        assert [each["api"] for each in found] == ["Fetch"]
        cluster = await ok(control, "GET", "/v1/cluster")
        assert cluster["dialect"] == "kip-320-draft"
    lines = written(tmp_path)
    check([each for each in lines if each.get("api") in SHOWN])
    assert lines[0]["event"]["details"]["dialect"] == "kip-320-draft"
    asking, others = (
        [each for each in lines if each.get("api") in apis]
        for apis in (("ApiVersions",), ("FindCoordinator", "ApiVersions"))
    )
    assert [each["request"]["dialect_requested"] for each in asking] == [True]
    assert {each["dialect"] for each in others} == {None}


async def test_a_cluster_without_a_dialect_says_that(
    server: Server, control: httpx.AsyncClient, tmp_path: Path
) -> None:
    with TraceFile(tmp_path, trace_lines) as trace:
        trace.subscribe(server)
    assert (await ok(control, "GET", "/v1/cluster"))["dialect"] is None
    assert written(tmp_path)[0]["event"]["details"]["dialect"] is None
