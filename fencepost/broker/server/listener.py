"""One broker's port."""

import asyncio
import socket
from collections import Counter
from typing import TYPE_CHECKING

from fencepost.broker.broker import Broker
from fencepost.broker.server.answers import Answers
from fencepost.broker.server.connection import Connection

if TYPE_CHECKING:
    from fencepost.broker.server.server import Server


class PortUnavailable(OSError):
    """A port that can't be listened on; the message is one readable line."""


def bind(host: str, port: int, backlog: int) -> socket.socket:
    """A socket that listens; port 0 picks a free one.

    :raises PortUnavailable: When the address is in use, or not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(backlog)
    except OSError as error:
        sock.close()
        reason = error.strerror or str(error)
        raise PortUnavailable(f"can't listen on {host}:{port}: {reason.lower()}") from error
    sock.setblocking(False)
    return sock


class Listener:
    """Accepts the connections of one broker."""

    def __init__(self, server: "Server", broker: Broker, sock: socket.socket) -> None:
        self.server = server
        self.broker = broker
        self.answers = Answers()
        self._sock = sock
        self._asyncio_server: asyncio.Server | None = None
        self._connections: set[Connection] = set()
        self._per_host: Counter[str] = Counter()

    async def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to accept."""
        self._asyncio_server = await loop.create_server(
            lambda: Connection(self),
            sock=self._sock,
            backlog=self.broker.configs.socket_listen_backlog_size,
        )

    def admit(self, connection: Connection) -> bool:
        """Count a connection, if ``max.connections`` and ``max.connections.per.ip`` let it in."""
        configs, host = self.broker.configs, connection.peer.host
        room = len(self._connections) < configs.max_connections
        if not room or self._per_host[host] >= configs.max_connections_per_ip:
            return False
        self._connections.add(connection)
        self._per_host[host] += 1
        return True

    def forget(self, connection: Connection) -> None:
        """A connection is gone."""
        if connection in self._connections:
            self._connections.discard(connection)
            self._per_host[connection.peer.host] -= 1
            self._per_host += Counter()  # drops hosts without connections

    def close_idle(self, now_ms: int) -> None:
        """Close what has been silent for ``connections.max.idle.ms``."""
        limit = now_ms - self.broker.configs.connections_max_idle_ms
        for connection in tuple(self._connections):
            if connection.last_active_ms < limit:
                connection.close()

    async def stop(self) -> None:
        """Stop accepting and close all connections, their ready answers sent."""
        if self._asyncio_server is not None:
            self._asyncio_server.close()
        for connection in tuple(self._connections):
            connection.close()

    @property
    def connections(self) -> int:
        """How many there are now."""
        return len(self._connections)
