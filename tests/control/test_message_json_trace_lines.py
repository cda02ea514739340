"""serve --trace writes what the API shows, all of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.broker.core.events import Event
from fencepost.broker.server.trace_file import Describe, Item, TraceFile
from fencepost.control.lazy_app import trace_lines
from fencepost.protocol.messages.api_versions import ApiVersionsRequest
from tests.harness.control_client import Json, ok
from tests.harness.records import batch
from tests.harness.served_cluster import serve
from tests.harness.typed_client import kafka, produce
from tests.harness.typed_requests import produce_request

if TYPE_CHECKING:
    import httpx

    from fencepost.broker.server.server import Server


def written(directory: Path) -> list[Json]:
    return [
        json.loads(line)
        for path in sorted(directory.iterdir())
        for line in path.read_text().splitlines()
    ]


async def test_lines_are_what_the_api_shows(
    server: Server, control: httpx.AsyncClient, tmp_path: Path
) -> None:
    with TraceFile(tmp_path, trace_lines) as trace:
        trace.subscribe(server)
        await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[1, 2]]})
        await produce(server, "t")
        async with kafka(server, 2) as client:
            await client.ask("api_versions", 0, ApiVersionsRequest())
        shown = await ok(control, "GET", "/v1/trace?source=all&limit=4096")
        await ok(control, "POST", "/v1/topics/t/partitions/0/elect", {"leader": 2})
    lines = written(tmp_path)
    exchanges = [line for line in lines if "event" not in line]
    assert sorted(exchanges, key=lambda each: each["number"])[: len(shown)] == shown
    events = [line["event"] for line in lines if "event" in line]
    assert [(event["number"], event["kind"]) for event in events] == [
        (0, "trace_started"),
        (1, "verb"),
        (2, "topic_created"),
        (3, "verb"),
        (4, "leader_changed"),
        (0, "trace_ended"),
    ]
    assert events[2]["details"]["leaders"] == [[1, 0]]
    assert events[4]["details"]["leader"] == 2
    assert not events[4]["details"]["unclean"]
    assert lines[-1]["newest"] == max(each["number"] for each in exchanges)


async def test_a_line_lists_all_batches_where_the_api_lists_some(
    server: Server, control: httpx.AsyncClient, tmp_path: Path
) -> None:
    configs = {"check.expected.offsets": "true"}
    new = {"name": "t", "assignments": [[1]], "configs": configs}
    await ok(control, "POST", "/v1/topics", new)
    batches = b"".join(batch((5, None, b"v"), base_offset=offset) for offset in range(101))
    with TraceFile(tmp_path, trace_lines) as trace:
        trace.subscribe(server)
        async with kafka(server, 1) as client:
            await client.ask("produce", 9, produce_request(("t", 0, batches)))
        (shown,) = await ok(control, "GET", "/v1/trace?api=Produce")
    (line,) = (each for each in written(tmp_path) if each.get("api") == "Produce")
    (short, whole) = (
        each["request"]["topic_data"][0]["partition_data"][0]["records"] for each in (shown, line)
    )
    assert [each["base_offset"] for each in whole["batches"]] == list(range(101))
    assert "batches_left_out" not in whole
    assert short["batches"] == whole["batches"][:100]
    assert short["batches_left_out"] == 1


async def test_a_trace_that_lacks_a_line_does_not_say_that_it_is_whole(
    server: Server, tmp_path: Path
) -> None:
    def lines_but_one() -> Describe:
        describe = trace_lines()

        def picky(item: Item) -> bytes:
            if not isinstance(item, Event):
                raise ZeroDivisionError
            return describe(item)

        return picky

    with TraceFile(tmp_path, lines_but_one) as trace:
        trace.subscribe(server)
        async with kafka(server, 2) as client:
            await client.ask("api_versions", 0, ApiVersionsRequest())
    assert [line["event"]["kind"] for line in written(tmp_path)] == ["trace_started"]


def test_all_is_written_when_the_cluster_has_stopped(tmp_path: Path) -> None:
    """Also a request that was still waiting for its answer."""
    directory = tmp_path / "trace"
    cluster = serve(tmp_path / "log", "--topic", "t", "--trace", str(directory), brokers=1)
    with cluster.connect() as waiting:
        partition = {"Partition": 0, "PartitionMaxBytes": 1000}
        topic = {"Topic": "t", "Partitions": [partition]}
        waiting.send("Fetch", 4, {"MaxWaitMs": 60_000, "MinBytes": 1, "Topics": [topic]})
        with cluster.connect() as other:
            for _ in range(3000):
                other.call("ApiVersions", 0, {})
        cluster.stop()
    lines = [line for line in written(directory) if "event" not in line]
    assert [line["api"] for line in lines].count("ApiVersions") == 3000
    (fetch,) = (line for line in lines if line["api"] == "Fetch")
    assert (fetch["response"], fetch["answered_ms"]) == (None, None)
    assert [line["number"] for line in lines if line is not fetch] == sorted(
        line["number"] for line in lines if line is not fetch
    )
