"""Clusters of three brokers in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Final

import pytest

from fencepost.broker.server.server import Server
from tests.harness.in_process_server import running

CONFIGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
}
LANES: Final = 4
"""Clusters that are contested at the same time: a contest waits more than it works."""


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with running(configs=CONFIGS) as started:
        yield started


@pytest.fixture
async def servers() -> AsyncIterator[list[Server]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(running(configs=CONFIGS)) for _ in range(LANES)]
