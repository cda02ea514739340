"""/metrics is what Prometheus reads, and it is true."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fencepost.broker.server.logs import NonBlockingStream
from fencepost.control import metrics as module
from fencepost.protocol.messages.api_versions import ApiVersionsRequest
from tests.harness.control_client import ok
from tests.harness.typed_client import kafka, produce
from tests.harness.typed_requests import list_offsets_request
from tests.harness.wait import eventually

if TYPE_CHECKING:
    from pathlib import Path

    import httpx
    from prometheus_client import Metric

    from fencepost.broker.server.server import Server


class Scrape:
    """All that one scrape told."""

    def __init__(self, families: dict[str, Metric]) -> None:
        self.families = families

    def __call__(self, name: str, **labels: object) -> float | None:
        """A sample's value; None where there is none of this name and these labels."""
        wanted = {key: str(value) for key, value in labels.items()}
        found = [
            sample.value
            for family in self.families.values()
            for sample in family.samples
            if sample.name == f"fencepost_{name}" and sample.labels == wanted
        ]
        assert len(found) <= 1
        return found[0] if found else None

    def number(self, name: str, **labels: object) -> float:
        """A sample's value; there is one."""
        value = self(name, **labels)
        assert value is not None
        return value

    def count(self, name: str) -> int:
        return sum(
            sample.name == f"fencepost_{name}"
            for family in self.families.values()
            for sample in family.samples
        )


async def scrape(control: httpx.AsyncClient, query: str = "") -> Scrape:
    answer = await control.get(f"/metrics{query}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = list(text_string_to_metric_families(answer.text))
    assert len({family.name for family in families}) == len(families), "a family came twice"
    assert all(family.name.startswith("fencepost_") and family.documentation for family in families)
    return Scrape({family.name: family for family in families})


async def replicated(control: httpx.AsyncClient, partitions: int = 1) -> None:
    body = {"name": "t", "assignments": [[1, 2, 3]] * partitions}
    await ok(control, "POST", "/v1/topics", body)


async def test_requests_are_counted_by_broker_and_api(
    server: Server, control: httpx.AsyncClient
) -> None:
    await replicated(control)
    request = list_offsets_request("t")
    for broker in (1, 2):
        async with kafka(server, broker) as client:
            for _ in range(2):
                await client.ask("list_offsets", 5, request)
    found = await scrape(control)
    for broker in (1, 2):
        labels = {"broker": broker, "api": "ListOffsets", "source": "clients"}
        assert found("requests_total", **labels) == 2
        assert found.number("request_bytes_total", **labels) > 2 * 30
        assert found.number("response_bytes_total", **labels) > 2 * 30
        assert found("request_seconds_count", **labels) == 2
        assert 0 < found.number("request_seconds_sum", **labels) < 10
        assert found("request_seconds_bucket", le="30.0", **labels) == 2
        assert found("request_seconds_bucket", le="+Inf", **labels) == 2
    error = {"api": "ListOffsets", "source": "clients", "error": "NOT_LEADER_OR_FOLLOWER"}
    assert found("errors_total", broker=2, **error) == 2
    assert found("errors_total", broker=1, **error) is None


async def test_requests_between_brokers_are_told_apart(
    server: Server, control: httpx.AsyncClient
) -> None:
    await replicated(control)
    labels = {"broker": 1, "api": "Fetch", "source": "brokers"}
    before = await scrape(control)
    await produce(server, "t", values=[b"x" * 1000])
    after = await scrape(control)
    assert after.number("requests_total", **labels) > before.number("requests_total", **labels)
    assert after.number("response_bytes_total", **labels) > 2000
    assert after("requests_total", broker=1, api="Fetch", source="clients") is None


async def test_partitions_and_their_replicas(server: Server, control: httpx.AsyncClient) -> None:
    await replicated(control)
    await ok(control, "POST", "/v1/topics/t/partitions/0/replicas/3/hold", {"leave_isr": True})
    await ok(control, "POST", "/v1/topics/t/partitions/0/elect", {"leader": 2})
    await produce(server, "t", values=[b"a", b"b", b"c"])
    found = await scrape(control)
    expected = {
        "leader": 2,
        "leader_epoch": 1,
        "isr_size": 2,
        "under_replicated": 1,
        "offline": 0,
        "log_start_offset": 0,
        "log_end_offset": 3,
        "high_watermark": 3,
    }
    for name, value in expected.items():
        assert found(f"partition_{name}", topic="t", partition=0) == value, name
    ends = [found("replica_log_end_offset", topic="t", partition=0, broker=b) for b in (1, 2, 3)]
    lags = [found("replica_lag", topic="t", partition=0, broker=b) for b in (1, 2, 3)]
    assert ends == [3, 3, 0]
    assert lags == [0, None, 3]
    assert (found("topics"), found("partitions"), found("partitions_left_out")) == (1, 1, 0)
    assert (found("under_replicated_partitions"), found("offline_partitions")) == (1, 0)
    assert [found("held_replicas", broker=b) for b in (1, 2, 3)] == [0, 0, 1]


async def test_a_partition_without_a_leader(server: Server, control: httpx.AsyncClient) -> None:
    await ok(control, "POST", "/v1/topics", {"name": "t", "assignments": [[3]]})
    await produce(server, "t")
    await ok(control, "POST", "/v1/brokers/3/kill")
    found = await scrape(control)
    assert found("partition_leader", topic="t", partition=0) == -1
    assert found("partition_offline", topic="t", partition=0) == 1
    assert found("partition_high_watermark", topic="t", partition=0) == -1
    assert found("replica_log_end_offset", topic="t", partition=0, broker=3) == 1
    assert found("offline_partitions") == 1
    assert found("broker_running", broker=3) == 0
    assert found("broker_fenced", broker=3) == 1
    assert found("broker_running", broker=1) == 1


async def test_what_happened_is_counted(server: Server, control: httpx.AsyncClient) -> None:
    await replicated(control)
    hold = "/v1/topics/t/partitions/0/replicas/3"
    await ok(control, "POST", f"{hold}/hold", {"leave_isr": True})
    await ok(control, "POST", f"{hold}/release")
    await ok(control, "POST", "/v1/topics/t/partitions/0/elect", {"leader": 2})
    found = await scrape(control)
    assert found("elections_total") == 1
    assert found("isr_changes_total", change="shrink") == 1
    assert found("isr_changes_total", change="expand") == 1
    assert found("isr_changes_total", change="swap") == 0
    assert found("events_total", kind="replica_held") == 1
    assert found("events_total", kind="topic_deleted") == 0
    assert found("events_total", kind="trace_started") is None, "only files have it"
    await ok(control, "POST", "/v1/reset")
    assert (await scrape(control))("elections_total") == 1, "counters only rise"


async def test_what_is_refused_for_its_expected_offset_is_counted(
    server: Server, control: httpx.AsyncClient
) -> None:
    configs = {"check.expected.offsets": "true"}
    body = {"name": "t", "assignments": [[1], [1]], "configs": configs}
    await ok(control, "POST", "/v1/topics", body)
    await produce(server, "t", 0)
    await produce(server, "t", 1)
    for index in (0, 0, 1):
        with pytest.raises(AssertionError, match="error_code=2701"):
            await produce(server, "t", index)  # its base offset is 0
    found = await scrape(control)
    assert found("publishes_refused_total", topic="t") == 3
    assert found("events_total", kind="publish_refused") == 3
    labels = {"broker": 1, "api": "Produce", "source": "clients"}
    assert found("errors_total", error="EXPECTED_OFFSET_MISMATCH", **labels) == 3


async def test_faults_and_their_hits(server: Server, control: httpx.AsyncClient) -> None:
    await replicated(control)
    fault = {"api": "ApiVersions", "count": 2, "action": {"error": "INVALID_REQUEST"}}
    await ok(control, "POST", "/v1/faults", fault)
    async with kafka(server, 1) as client:
        for _ in range(3):
            await client.ask("api_versions", 0, ApiVersionsRequest())
    found = await scrape(control)
    assert found("faults") == 1
    assert found("fault_hits_total", api="ApiVersions", action="error") == 2
    labels = {"broker": 1, "api": "ApiVersions", "source": "clients"}
    assert found("errors_total", error="INVALID_REQUEST", **labels) == 2


async def test_connections_and_the_journal(server: Server, control: httpx.AsyncClient) -> None:
    async with kafka(server, 1) as first, kafka(server, 1), kafka(server, 2):
        await first.ask("api_versions", 0, ApiVersionsRequest())
        await eventually(lambda: server.connections == {1: 2, 2: 1, 3: 0})
        found = await scrape(control)
    assert [found("connections", broker=b) for b in (1, 2, 3)] == [2, 1, 0]
    assert found("journal_exchanges") == 1
    assert found.number("journal_bytes") > 20
    await ok(control, "POST", "/v1/reset")
    assert (await scrape(control))("journal_exchanges") == 0


async def test_lines_of_the_log_that_were_dropped(
    control: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert (await scrape(control))("log_lines_dropped_total") == 0
    with (tmp_path / "log").open("wb") as file:
        stream = NonBlockingStream(file.fileno(), str)
        stream.dropped = 3
        monkeypatch.setattr(sys, "stderr", stream)
        assert (await scrape(control))("log_lines_dropped_total") == 3


async def test_only_so_many_partitions_are_told_one_by_one(
    control: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_PARTITIONS", 3)
    for name in ("b", "a", "c"):
        body = {"name": name, "assignments": [[1], [2]]}
        await ok(control, "POST", "/v1/topics", body)
    found = await scrape(control)
    assert found.count("partition_leader") == 3
    assert found("partition_leader", topic="b", partition=0) == 1
    assert found("partition_leader", topic="b", partition=1) is None
    assert (found("partitions"), found("partitions_left_out")) == (6, 3)
    found = await scrape(control, "?topic=c&topic=unknown")
    assert found.count("partition_leader") == 2
    assert found("partition_leader", topic="c", partition=1) == 2
    assert found("partitions_left_out") == 4


async def test_only_reading_is_allowed(control: httpx.AsyncClient) -> None:
    for path in ("/metrics", "/"):
        answer = await control.post(path)
        assert answer.status_code == 405
        assert answer.json()["error"] == "METHOD_NOT_ALLOWED"
