"""Clusters of three brokers in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import pytest

from fencepost.broker.server.server import Server
from tests.harness.in_process_server import make_cluster, make_server, sockets

CONFIGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
}
LANES: Final = 4
"""Clusters that are contested at the same time: a contest waits more than it works."""


async def start() -> Server:
    ports = sockets(3)
    server = make_server(make_cluster(ports, configs=CONFIGS), ports)
    await server.start()
    return server


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    started = await start()
    yield started
    await started.stop()


@pytest.fixture
async def servers() -> AsyncIterator[list[Server]]:
    started = [await start() for _ in range(LANES)]
    yield started
    for each in started:
        await each.stop()
