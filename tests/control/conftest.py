"""A cluster of three brokers in this process, served over real sockets, and its control API."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from fencepost.broker.core.scheduler import Clock
from fencepost.broker.server.event_loop import SystemClock
from fencepost.broker.server.server import Server
from tests.harness.in_process_server import control_plane, running, sockets, url


@pytest.fixture
def clock() -> Clock:
    """The cluster's; a test that wants to let time pass itself has another fixture of this name."""
    return SystemClock()


@pytest.fixture
def configs() -> dict[str, str]:
    """Its static broker configs; to be replaced as the clock is."""
    return {}


@pytest.fixture
async def server(clock: Clock, configs: dict[str, str]) -> AsyncIterator[Server]:
    async with running(clock=clock, configs=configs) as started:
        yield started


@pytest.fixture
async def control(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    (sock,) = sockets(1)
    async with (
        control_plane(server, sock),
        httpx.AsyncClient(base_url=url(sock), trust_env=False, timeout=30) as client,
    ):
        yield client
