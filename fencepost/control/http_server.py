"""Serves an ASGI application on a listening socket, in the event loop that runs."""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final

from fencepost.control.http_connection import HttpConnection, Serving, log

GRACE_S: Final = 1
"""How long a request that is being answered may take when the cluster stops."""
_BACKLOG: Final = 2048


async def serve(
    serving: Serving, sock: socket.socket, stop: asyncio.Event, stopping: Callable[[], None]
) -> None:
    """Serve until ``stop`` is set; then end all connections.

    :param sock: Listens already; it is closed in the end.
    :param stopping: Called before the end: it lets the requests that wait be answered.
    """
    accepting = await asyncio.get_running_loop().create_server(
        lambda: HttpConnection(serving), sock=sock, backlog=_BACKLOG
    )
    await stop.wait()
    stopping()
    accepting.close()
    sock.close()
    for connection in list(serving.connections):
        connection.shut_down()
    try:
        async with asyncio.timeout(GRACE_S):
            await _all_ended(serving)
    except TimeoutError:
        await _end_all(serving)


async def _end_all(serving: Serving) -> None:
    """End the requests that are not answered in time, and the connections of slow clients."""
    late = len(serving.tasks)
    if late:
        log(logging.ERROR, f"requests that are not answered {GRACE_S} s after the stop: {late}")
    for task in serving.tasks:
        task.cancel()
    for connection in list(serving.connections):
        connection.abort()
    await _all_ended(serving)


async def _all_ended(serving: Serving) -> None:
    while serving.connections or serving.tasks:
        serving.changed.clear()
        await serving.changed.wait()
