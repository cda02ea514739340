"""A cluster in this process, served over real sockets on the test's own event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.core.scheduler import Clock
from fencepost.broker.metadata.image import Address
from fencepost.broker.node.cluster import Cluster, ClusterOptions, MakeObjectStore
from fencepost.broker.server.event_loop import SystemClock
from fencepost.broker.server.journal import AnyExchange
from fencepost.broker.server.listener import bind
from fencepost.broker.server.server import Server
from fencepost.control import lazy_app
from fencepost.protocol.codec.drafts import Draft

HOST: Final = "127.0.0.1"


def sockets(count: int) -> list[socket.socket]:
    """Listening ones, on free ports."""
    return [bind(HOST, 0, 100) for _ in range(count)]


def url(sock: socket.socket) -> str:
    return f"http://{HOST}:{sock.getsockname()[1]}"


def make_cluster(
    ports: Sequence[socket.socket],
    *,
    topics: tuple[NewTopic, ...] = (),
    configs: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    advertised: str = HOST,
    dialect: Draft | None = None,
    make_objects: MakeObjectStore | None = None,
) -> Cluster:
    addresses = tuple(
        Address(host=HOST, port=sock.getsockname()[1], advertised_host=advertised) for sock in ports
    )
    options = ClusterOptions(
        addresses=addresses, topics=topics, configs=configs or {}, dialect=dialect
    )
    return Cluster(options, clock or SystemClock(), make_objects=make_objects)


def make_server(cluster: Cluster, ports: list[socket.socket]) -> Server:
    return Server(cluster, cluster.scheduler.clock, ports)


def asked_by_clients(server: Server) -> list[AnyExchange]:
    """What is in the journal of clients' requests, the newest first."""
    return list(server.journal.newest_first(brokers=False))


@asynccontextmanager
async def running(
    ports: Sequence[socket.socket] | None = None,
    *,
    topics: tuple[NewTopic, ...] = (),
    configs: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    dialect: Draft | None = None,
    make_objects: MakeObjectStore | None = None,
) -> AsyncIterator[Server]:
    """A server of one broker for each listening socket, three of them without any given."""
    ports = sockets(3) if ports is None else list(ports)
    cluster = make_cluster(
        ports,
        topics=topics,
        configs=configs,
        clock=clock,
        dialect=dialect,
        make_objects=make_objects,
    )
    server = make_server(cluster, ports)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def control_plane(
    server: Server, sock: socket.socket, *, host: str = HOST, token: str | None = None
) -> AsyncIterator[None]:
    """The control API of a server on a listening socket; at the end it has stopped."""
    stop = asyncio.Event()
    serving = asyncio.ensure_future(lazy_app.serve(server, sock, stop, host=host, token=token))
    try:
        yield
    finally:
        stop.set()
        async with asyncio.timeout(10):
            await serving
