"""The control plane of a served cluster, which costs nothing until the first connection.

The models of verbs and their routes take as long to import as a third of the rest. The port
listens from the start, so that early requests wait in its backlog. They are imported on the first
connection, or when the cluster has been up for a moment and its clients leave the time, in a thread
while the loop serves Kafka clients: each of their requests would wait for its turn meanwhile.
"""

import asyncio
import errno
import os
import socket
from asyncio import FIRST_COMPLETED
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

from fencepost.broker.server import logs
from fencepost.broker.server.idle_work import QUIET_S, Quiet
from fencepost.broker.server.server import Server
from fencepost.broker.server.trace_file import Describe
from fencepost.control.off_loop import off_loop
from fencepost.storage.files.file_system import lacks_descriptors

LOOPBACK: Final = "127.0.0.1"
"""What the control API listens on where nothing says otherwise."""
IMPORT_AFTER_S: Final = 0.5
"""How long the imports leave the first Kafka clients alone, unless a control request comes."""
IMPORT_BY_S: Final = 10.0
"""When the imports begin at the latest, however busy the Kafka clients are."""
_RETRY_AFTER_S: Final = 1.0
"""How long the imports wait where files can't be opened."""
_ServeHttp: TypeAlias = Callable[[socket.socket, asyncio.Event], Awaitable[None]]


async def serve(
    server: Server,
    sock: socket.socket,
    stop: asyncio.Event,
    *,
    host: str = LOOPBACK,
    token: str | None = None,
    log_token: bool = False,
) -> None:
    """Serve the control API of a cluster until ``stop`` is set.

    :param sock: Listens already; it is closed in the end.
    :param host: What it listens on, as ``--control-host`` names it.
    :param token: What a request has to carry, but for ``/healthz``; None where it needs nothing.
    :param log_token: Whether the log has it, because it was drawn.
    """
    if not await _wait_for_connection(sock, stop):
        sock.close()
        return
    serve_http = await _prepare_on_thread(server, stop, host, token)
    if serve_http is None:
        sock.close()
        return
    server.event_log.begin()
    if log_token:
        logs.logger("fencepost.control", part="control").info("control_token", token=token)
    await serve_http(sock, stop)


def trace_lines() -> Describe:
    """The formatter of trace lines, which takes as long to import as the rest."""
    from fencepost.control.message_json import TraceLines

    return TraceLines()


async def _wait_for_connection(sock: socket.socket, stop: asyncio.Event) -> bool:
    """Wait until a client connects or there is time for imports; False when ``stop`` is first."""
    loop = asyncio.get_running_loop()
    connected = asyncio.Event()
    waits = [asyncio.ensure_future(event.wait()) for event in (connected, stop)]
    loop.add_reader(sock, connected.set)
    quiet, end_s, wait_s = Quiet(), loop.time() + IMPORT_BY_S, IMPORT_AFTER_S
    try:
        while not (await asyncio.wait(waits, timeout=wait_s, return_when=FIRST_COMPLETED))[0]:
            if quiet.look() or loop.time() >= end_s:
                break
            wait_s = QUIET_S
    finally:
        loop.remove_reader(sock)
        for wait in waits:
            wait.cancel()
    return not stop.is_set()


async def _prepare_on_thread(
    server: Server, stop: asyncio.Event, host: str, token: str | None
) -> _ServeHttp | None:
    """Import and configure the app, again where files can't be opened; None after ``stop``."""
    while not stop.is_set():
        try:
            return await off_loop(_prepare, server, host, token)
        except (OSError, ImportError) as error:
            if not _lacks_descriptors(error):
                raise
            logs.logger("fencepost.control", part="control").warning(
                "control_api_waits", detail=str(error)
            )
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _RETRY_AFTER_S)
    return None


def _lacks_descriptors(error: Exception) -> bool:
    """Whether a module could not be read; one that is a library says so in its message alone."""
    return lacks_descriptors(error) or os.strerror(errno.EMFILE) in str(error)


def _prepare(server: Server, host: str, token: str | None) -> _ServeHttp:
    """Import and configure the app, which takes long and does not touch the cluster."""
    from fencepost.control import app

    logs.logger()  # imports what it needs, before the first event is logged
    return partial(app.serve, app.prepare(server, host, token))
