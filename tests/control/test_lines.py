"""serve --trace writes what the API shows, all of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.broker.server.tracefile import TraceFile
from fencepost.control.plane import lines_of_trace
from fencepost.protocol.messages.api_versions import ApiVersionsRequest
from tests.control.served import Json, kafka, ok, produce
from tests.harness.cluster import serve

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
    with TraceFile(tmp_path, lines_of_trace) as trace:
        trace.follow(server)
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
        (1, "topic_created"),
        (2, "leader_changed"),
    ]
    assert events[1]["details"]["leader"] == 2


def test_all_is_written_when_the_cluster_has_stopped(tmp_path: Path) -> None:
    """Also a request that was still waiting for its answer."""
    directory = tmp_path / "trace"
    cluster = serve(tmp_path / "log", "--topic", "t", "--trace", str(directory), brokers=1)
    assert cluster.process is not None
    with cluster.connect() as waiting:
        partition = {"Partition": 0, "PartitionMaxBytes": 1000}
        topic = {"Topic": "t", "Partitions": [partition]}
        waiting.send("Fetch", 4, {"MaxWaitMs": 60_000, "MinBytes": 1, "Topics": [topic]})
        with cluster.connect() as other:
            for _ in range(3000):
                other.call("ApiVersions", 0, {})
        cluster.process.stop(expect=0)
    lines = [line for line in written(directory) if "event" not in line]
    assert [line["api"] for line in lines].count("ApiVersions") == 3000
    (fetch,) = (line for line in lines if line["api"] == "Fetch")
    assert (fetch["response"], fetch["answered_ms"]) == (None, None)
    assert [line["number"] for line in lines if line is not fetch] == sorted(
        line["number"] for line in lines if line is not fetch
    )
