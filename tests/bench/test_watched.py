"""A server with a pulse on its loop, and connections that keep it busy."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import busy, servers, watched, wire
from tests.harness.served_cluster import Cluster, serving
from tests.harness.wait import eventually, wait_until

BUSY_S = 0.2
"""Processor time of the loop between two pulses."""


@pytest.fixture(scope="module")
def pulses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("watched") / "pulses"


@pytest.fixture(scope="module")
def watched_cluster(pulses: Path) -> Iterator[Cluster]:
    program = ("-m", "bench.watched", str(pulses))
    with serving(pulses.with_name("log"), "--topic", "bench:3:1", program=program) as cluster:
        yield cluster


@pytest.fixture
def server(watched_cluster: Cluster) -> servers.Server:
    launch = servers.Launch(directory=Path(), port=watched_cluster.addresses[0][1])
    return servers.Server(kind=servers.Fencepost(), pid=0, launch=launch, first_metadata_s=0.0)


def test_pulses_are_written_while_the_server_lives(watched_cluster: Cluster, pulses: Path) -> None:
    assert watched_cluster.process is not None
    begin = time.monotonic()
    wait_until("a pulse", lambda: any(each.at_s > begin for each in watched.read(pulses)))
    newest = list(watched.read(pulses))[-1]
    assert newest.tasks >= 1
    assert newest.busy_ms >= 0


async def test_a_turn_of_the_loop_that_computes_is_seen_as_a_pause() -> None:
    loop, out = asyncio.get_running_loop(), io.StringIO()
    watched.Pulse(loop, out)
    loop.call_soon(compute)
    await eventually(lambda: bool(out.getvalue()))
    seen = json.loads(out.getvalue())
    assert seen["busy_ms"] >= 1e3 * BUSY_S
    assert seen["pause_ms"] >= 1e3 * (BUSY_S - watched.PERIOD_S)


def compute() -> None:
    begin = time.thread_time()
    while time.thread_time() < begin + BUSY_S:
        pass


def test_busy_connections_get_what_they_have_produced(server: servers.Server) -> None:
    with busy.clients(server, 7, 100) as clients:
        assert busy.rounds(clients, 50) > 0
    with server.connect_to_leader("bench", 0) as connection:
        end = wire.decode_list_offsets(connection.ask(wire.list_offsets_request("bench", 0)))
    assert end >= 50 // 3
