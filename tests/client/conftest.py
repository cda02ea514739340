"""A cluster of three brokers in this process, and a client of it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import pytest

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.server.server import Server
from fencepost.client.client import Client
from tests.harness.in_process_server import HOST, running, sockets

TOPICS = (
    NewTopic(name="orders", assignments=((1, 2, 3),), configs={}),
    NewTopic(name="many", partitions=4, replication_factor=3, configs={}),
)


@pytest.fixture
def ports() -> list[socket.socket]:
    return sockets(3)


@pytest.fixture
def bootstrap(ports: list[socket.socket]) -> str:
    return ",".join(f"{HOST}:{sock.getsockname()[1]}" for sock in ports)


@pytest.fixture
async def server(ports: list[socket.socket], bootstrap: str) -> AsyncIterator[Server]:
    configs = {"group.initial.rebalance.delay.ms": "0"}
    async with running(ports, topics=TOPICS, configs=configs) as started:
        yield started


@pytest.fixture
async def client(server: Server, bootstrap: str) -> AsyncIterator[Client]:
    async with Client(bootstrap, client_id="tests") as made:
        yield made
