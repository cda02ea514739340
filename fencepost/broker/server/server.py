"""A served cluster: listeners, the loop's driver, the journal, and an orderly end."""

import asyncio
import socket
from collections.abc import Callable, Iterator

from fencepost.broker.cluster import Cluster
from fencepost.broker.replica import Replica
from fencepost.broker.scheduler import Clock
from fencepost.broker.server.connection import Connection
from fencepost.broker.server.driver import LoopDriver
from fencepost.broker.server.journal import Journal
from fencepost.broker.server.listener import Listener
from fencepost.broker.server.reclaim import Reclaimer
from fencepost.broker.server.wakefulness import Wakefulness

IDLE_CHECK_S = 1.0


class Server:
    """A cluster on its ports.

    :param sockets: Listening ones, by broker id from 1.
    """

    def __init__(self, cluster: Cluster, clock: Clock, sockets: list[socket.socket]) -> None:
        self.cluster = cluster
        self.clock = clock
        self.journal = Journal()
        self._sockets = sockets
        self._listeners: list[Listener] = []
        self._flushes: dict[Connection, None] = {}
        self.stay_awake: Callable[[], None] = lambda: None
        self._loop: asyncio.AbstractEventLoop
        self._driver: LoopDriver
        self._reclaimer: Reclaimer
        self._idle_check: asyncio.TimerHandle

    async def start(self) -> None:
        """Accept connections on every port."""
        self._loop = asyncio.get_running_loop()
        self._driver = LoopDriver(self.cluster.scheduler, self._loop)
        self._reclaimer = Reclaimer(self._loop)
        self.stay_awake = Wakefulness(self._loop).prolong
        for broker in self.cluster.brokers.values():
            broker.discard = self._reclaim
        for broker, sock in zip(self.cluster.brokers.values(), self._sockets, strict=True):
            listener = Listener(self, broker, sock)
            self._listeners.append(listener)
            await listener.start(self._loop)
        self._check_idle()

    def reset(self) -> None:
        """Take the cluster back to how it started; connections stay.

        It is quick however much there was: what the cluster held is freed later, bit by bit.
        """
        self._reclaimer.add(self.journal.clear())
        self.cluster.reset()

    def flush_soon(self, connection: Connection) -> None:
        """Send a connection's answers at the end of this turn, all in one write."""
        if not self._flushes:
            self._loop.call_soon(self._flush)
        self._flushes[connection] = None

    @property
    def connections(self) -> dict[int, int]:
        """How many connections each broker has."""
        return {x.broker.broker_id: x.connections for x in self._listeners}

    async def stop(self) -> None:
        """Close every port and connection."""
        self._idle_check.cancel()
        self._driver.stop()
        self._reclaimer.stop()
        for listener in self._listeners:
            await listener.stop()
        await asyncio.sleep(0)  # lets the transports send what they hold and close

    def _flush(self) -> None:
        flushes, self._flushes = self._flushes, {}
        for connection in flushes:
            connection.flush()

    def _reclaim(self, replicas: list[Replica]) -> None:
        self._reclaimer.add(_dismantled(replicas))

    def _check_idle(self) -> None:
        now_ms = self.clock.now_ms()
        for listener in self._listeners:
            listener.close_idle(now_ms)
        self._idle_check = self._loop.call_later(IDLE_CHECK_S, self._check_idle)


def _dismantled(replicas: list[Replica]) -> Iterator[None]:
    """Frees replicas that are gone, a little with each step."""
    while replicas:
        yield from replicas.pop().log.dismantle()
        yield
