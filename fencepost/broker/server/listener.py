"""One broker's port and its connections, or the controller's.

A broker that is down refuses connections and keeps its port: a socket that is bound and does not
listen holds it, so that no other process gets it. So does one that a fault lets refuse them.
"""

import asyncio
import errno
import socket
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from fencepost.broker.core.sampled_rate import SampledRate
from fencepost.broker.faults.registry import Fault
from fencepost.broker.metadata.image import Address
from fencepost.broker.node.broker import Broker
from fencepost.broker.server.asyncio_connection import AsyncioConnection
from fencepost.broker.server.connection import ListeningNode
from fencepost.broker.server.resources import (
    DESCRIPTORS,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_PER_IP,
)
from fencepost.broker.server.response_cache import ResponseCache

if TYPE_CHECKING:
    from fencepost.broker.server.server import Server


BROKER_DOWN: Final = "broker_down"
REFUSED: Final = "refused_by_fault"
UNLIMITED: Final = 2**31 - 1
"""Kafka's default of ``max.connection.creation.rate``."""
_LOOPBACKS: Final = ("127.0.0.1", "::1")


class PortUnavailable(OSError):
    """A port that can't be listened on; the message is one readable line."""


def bind(host: str, port: int, backlog: int, *, advice: str = "") -> socket.socket:
    """A socket that listens; port 0 picks a free one.

    :param advice: How another port is chosen, which the error says of one that is in use.
    :raises PortUnavailable: When the address is in use, or not this machine's.
    """
    sock = socket.socket(_family(host), socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(backlog)
    except OSError as error:
        sock.close()
        raise _unavailable(host, port, error, advice) from error
    sock.setblocking(False)
    return sock


def _hold(host: str, port: int) -> socket.socket | None:
    """A socket that reserves a port and refuses connections; None if another process has it."""
    sock = socket.socket(_family(host), socket.SOCK_STREAM)
    try:
        # Old connections in TIME_WAIT must not prevent the bind; other processes must not share it.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    except OSError:
        sock.close()
        return None
    sock.setblocking(False)
    return sock


def _listen_again(held: socket.socket, host: str, port: int, backlog: int) -> None:
    """Let the socket that reserves a port listen.

    :raises PortUnavailable: When another process listens there as well; the socket is closed.
    """
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.listen(backlog)
    except OSError as error:
        held.close()
        raise _unavailable(host, port, error) from error


def _unavailable(host: str, port: int, error: OSError, advice: str = "") -> PortUnavailable:
    reason = (error.strerror or str(error)).lower()
    hint = f"; {advice}" if error.errno == errno.EADDRINUSE and advice else ""
    return PortUnavailable(f"can't listen on {host}:{port}: {reason}{hint}")


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens on a host; False for a name but localhost."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@lru_cache
def _limits(overrides: str) -> Mapping[str, int]:
    """``max.connections.per.ip.overrides`` by address."""
    # A late import: start-up time counts, and few brokers have any.
    from fencepost.broker.configs.broker_rules import parse_overrides

    limits = {}
    for host, limit in parse_overrides(overrides).items():
        for address in _LOOPBACKS if host == "localhost" else (host,):
            limits[address] = limit
    return limits


class ConnectionQuotas:
    """How many connections one broker has, on all its listeners, or the controller."""

    def __init__(self, broker: ListeningNode) -> None:
        self._broker = broker
        self._count = 0
        self._per_host: Counter[str] = Counter()
        configs = broker.configs
        self._creation_rate = SampledRate(
            configs.quota_window_num, configs.quota_window_size_seconds * 1000
        )

    def exceeded(self, host: str) -> str | None:
        """The limit that one more connection from a host would exceed; None where there is room."""
        if self._count >= self._broker.configs.max_connections:
            return MAX_CONNECTIONS
        if self._per_host[host] >= self._limit_of(host):
            return MAX_CONNECTIONS_PER_IP
        return None

    def add(self, host: str) -> None:
        """Count a connection from a host."""
        self._count += 1
        self._per_host[host] += 1

    def remove(self, host: str) -> None:
        """Count one less."""
        self._count -= 1
        self._per_host[host] -= 1
        self._per_host += Counter()  # drops hosts without connections

    def delay_ms(self, now_ms: int) -> int:
        """How long a connection that was just accepted waits; 0 for not at all."""
        limit = self._broker.configs.max_connection_creation_rate
        if limit == UNLIMITED:
            return 0
        self._creation_rate.record(1, now_ms)
        return self._creation_rate.delay_ms(limit, now_ms)

    def _limit_of(self, host: str) -> int:
        configs = self._broker.configs
        overrides = configs.max_connections_per_ip_overrides
        if not overrides:
            return configs.max_connections_per_ip
        return _limits(overrides).get(host, configs.max_connections_per_ip)


class Listener:
    """Accepts the connections of one broker, or of the controller, which is never down.

    :param address: Where it listens.
    :param sock: A socket that listens there.
    :param quotas: The broker's, which its listeners share.
    """

    def __init__(
        self,
        server: "Server",
        broker: ListeningNode,
        address: Address,
        sock: socket.socket,
        quotas: ConnectionQuotas | None = None,
    ) -> None:
        self.server = server
        self.broker = broker
        self.name = address.listener
        self.response_cache = ResponseCache()
        self.is_down = False
        """Whether connections are refused, because the broker is down."""
        self._is_refusing = False
        """Whether connections are refused, because a fault says so."""
        self._address = (address.host, address.port)
        self._sock: socket.socket | None = sock
        """Listens; None where it is the server's that accepts, or closed."""
        self._held: socket.socket | None = None
        self._asyncio_server: asyncio.Server | None = None
        self._connections: set[AsyncioConnection] = set()
        self._silent: dict[AsyncioConnection, Fault] = {}
        """Connections that nothing is read from, because of a fault."""
        self._quotas = quotas or ConnectionQuotas(broker)

    async def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to accept connections, unless a fault refuses them."""
        if self._is_refusing:
            return
        sock, self._sock = self._sock, None
        assert sock is not None, "it listens, and nothing accepts yet"
        self._asyncio_server = await loop.create_server(
            lambda: AsyncioConnection(self),
            sock=sock,
            backlog=self.broker.configs.socket_listen_backlog_size,
        )

    def stop_listening(self, *, abruptly: bool) -> None:
        """Refuse new connections and close the present ones; keep the port.

        :param abruptly: Reset the connections; else their ready responses are sent first.
        """
        if self.is_down:
            return
        self.is_down = True
        self._end(abruptly=abruptly)
        self._hold_port()

    def listen(self) -> None:
        """Listen again, on the same port; `start` accepts the connections.

        :raises PortUnavailable: When another process took the port.
        """
        if self.is_down and not self._is_refusing:
            self._listen()
        self.is_down = False

    async def refuse(self, loop: asyncio.AbstractEventLoop, *, refuses: bool) -> None:
        """Refuse new connections, as a fault says, or accept them; those that are open stay.

        :raises PortUnavailable: When another process took the port meanwhile.
        """
        if refuses is self._is_refusing:
            return
        if not self.is_down and refuses:
            self._close_port()
            self._hold_port()
        elif not self.is_down:
            self._listen()
        self._is_refusing = refuses
        if not self.is_down:
            await self.start(loop)

    def _hold_port(self) -> None:
        if self._held is None:
            self._held = _hold(*self._address)

    def _listen(self) -> None:
        host, port = self._address
        backlog = self.broker.configs.socket_listen_backlog_size
        held, self._held = self._held, None
        if held is None:
            held = bind(host, port, backlog)
        else:
            _listen_again(held, host, port, backlog)
        self._sock = held

    def admit(self, connection: AsyncioConnection) -> str | None:
        """Add a connection, or say why it is refused: the limit that is reached, or BROKER_DOWN."""
        if self.is_down:
            return BROKER_DOWN
        if self._is_refusing:
            return REFUSED
        exceeded = self._quotas.exceeded(connection.peer.host)
        if exceeded is not None:
            return exceeded
        if not self.server.descriptors.admit():
            return DESCRIPTORS
        self._connections.add(connection)
        self._quotas.add(connection.peer.host)
        return None

    def hold_back(self, connection: AsyncioConnection) -> None:
        """Count a connection that is admitted, and let it wait if there are too many a second."""
        scheduler = self.server.cluster.scheduler
        now_ms = scheduler.now_ms()
        delay_ms = self._quotas.delay_ms(now_ms)
        if delay_ms:
            connection.hold()
            scheduler.at(now_ms + delay_ms, connection.release)

    def silence(self, connection: AsyncioConnection) -> None:
        """Read nothing from a new connection, if a fault says so."""
        broker = self.broker
        fault = broker.faults.accept(broker.broker_id) if isinstance(broker, Broker) else None
        if fault is not None:
            self._silent[connection] = fault
            connection.hold()

    def end_silence(self) -> None:
        """Read from the connections whose fault was removed."""
        for connection, fault in tuple(self._silent.items()):
            if not self.broker.faults.is_set(fault):
                del self._silent[connection]
                connection.release()

    def close_silent(self) -> None:
        """Close the connections that nothing was read from."""
        for connection in tuple(self._silent):
            connection.close()

    def on_closed(self, connection: AsyncioConnection) -> None:
        """Remove a connection that is gone."""
        self._silent.pop(connection, None)
        if connection in self._connections:
            self._connections.discard(connection)
            self.server.descriptors.release()
            self._quotas.remove(connection.peer.host)
            if isinstance(self.broker, Broker):
                self.broker.client_metrics.on_disconnected(connection.peer.connection_id)

    def close_idle(self, now_ms: int) -> None:
        """Close connections that sent nothing for ``connections.max.idle.ms``."""
        limit = now_ms - self.broker.configs.connections_max_idle_ms
        for connection in tuple(self._connections):
            if connection.last_active_ms < limit:
                connection.close()

    def stop(self) -> None:
        """Release the port and close all connections, after their ready responses are sent."""
        self._end(abruptly=False)
        if self._held is not None:
            self._held.close()

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._connections)

    def _close_port(self) -> None:
        if self._asyncio_server is not None:
            self._asyncio_server.close()
            self._asyncio_server = None
        elif self._sock is not None:
            self._sock.close()
            self._sock = None

    def _end(self, *, abruptly: bool) -> None:
        self._close_port()
        for connection in tuple(self._connections):
            if abruptly:
                connection.abort()
            else:
                connection.close()
