"""A served cluster: its listeners, the driver of the event loop, the journal, and shutdown.

Operations on whole brokers (stop, kill, start) are here and not in the core alone, because they
also close and open ports.
"""

import asyncio
import socket
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain

from fencepost.broker.controller import Fence
from fencepost.broker.core.errors import ControllerError
from fencepost.broker.core.events import Kind
from fencepost.broker.core.scheduler import Clock, ManualClock, advance
from fencepost.broker.node import operator_actions
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.server import logs
from fencepost.broker.server.asyncio_connection import AsyncioConnection
from fencepost.broker.server.event_log import EventLog
from fencepost.broker.server.event_loop import (
    BusyPoll,
    DeferredFree,
    LoopDriver,
    collect_garbage,
)
from fencepost.broker.server.journal import Journal
from fencepost.broker.server.listener import ConnectionQuotas, Listener, PortUnavailable
from fencepost.broker.server.request_metrics import EventMetrics
from fencepost.broker.server.resources import DescriptorBudget
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.frames import RequestMemory

IDLE_CHECK_S = 1.0
WORTH_COLLECTING = 400
"""Replicas that resets have dropped: a few MiB of garbage, for a pause of some 5 ms."""
REPORT_S = 1.0
"""How long refusals are counted before the log tells of them in one line."""


class Server:
    """A cluster on its ports.

    :param sockets: Listening sockets: those of the first listener in the order of broker ids, then
        those of the next.
    :param controller_socket: The controller's; None where the cluster has none for it.
    :param max_request_bytes: What requests that arrive or wait may take together.
    :param descriptors: Admits connections; None admits all.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        sockets: list[socket.socket],
        *,
        controller_socket: socket.socket | None = None,
        max_request_bytes: int = sys.maxsize,
        descriptors: DescriptorBudget | None = None,
    ) -> None:
        self.cluster = cluster
        self.clock = clock
        self.journal = Journal()
        self.descriptors = descriptors or DescriptorBudget()
        self.refusals: Counter[str] = Counter()
        """Connections that were closed because a limit was reached, by the limit."""
        self._reported: Counter[str] = Counter()
        """Those of them that the log has told of."""
        self.request_memory = RequestMemory(max_request_bytes)
        self.event_metrics = EventMetrics()
        cluster.network.observe = self.journal.observe
        cluster.events.newest_request = lambda: self.journal.newest
        self.event_log = EventLog(cluster.events)
        cluster.events.listeners += (
            self.event_metrics.record,
            self.journal.deleted_topics.record,
            self.event_log.record,
        )
        self._sockets = sockets
        self._listeners: dict[int, list[Listener]] = {}
        """Those of each broker, by its id, the first one's first."""
        self._controller_socket = controller_socket
        self._controller_listener: Listener | None = None
        self._flushes: dict[AsyncioConnection, None] = {}
        self.stay_awake: Callable[[], None] = lambda: None
        self._loop: asyncio.AbstractEventLoop
        self._driver: LoopDriver
        self._busy_poll: BusyPoll
        self._deferred_free: DeferredFree
        self._idle_check: asyncio.TimerHandle | None = None
        self._refusals_report: asyncio.TimerHandle | None = None
        self._dropped_replicas = 0
        """By resets since garbage was collected."""
        self._ports = asyncio.Lock()
        """Held while a port opens, which takes some turns of the loop."""

    async def start(self) -> None:
        """Accept connections on every port."""
        self._loop = asyncio.get_running_loop()
        self._driver = LoopDriver(self.cluster.scheduler, self._loop)
        self._deferred_free = DeferredFree(self._loop)
        self._busy_poll = BusyPoll(self._loop, self.journal.count_if_many)
        self.stay_awake = self._busy_poll.extend
        self.request_memory.on_wanted = self._make_memory_ready_when_idle
        self.cluster.log_memory.reclaim = self._deferred_free.run_until
        for broker in self.cluster.brokers.values():
            broker.storage.free_logs = self._deferred_free.add
        self._listeners = self._make_listeners()
        self._controller_listener = self._make_controller_listener()
        for listener in self._all_listeners():
            await listener.start(self._loop)
        if not isinstance(self.clock, ManualClock):  # a manual clock does not measure idle clients
            self._check_idle()

    def _make_memory_ready_when_idle(self) -> None:
        self._busy_poll.on_idle = self._make_memory_ready

    def _make_memory_ready(self) -> None:
        if not self.request_memory.make_ready():
            self._busy_poll.on_idle = self.journal.count_if_many

    def _make_listeners(self) -> dict[int, list[Listener]]:
        brokers = self.cluster.brokers.values()
        made: dict[int, list[Listener]] = {}
        for index, broker in enumerate(brokers):
            addresses = self.cluster.addresses[broker.broker_id]
            sockets = self._sockets[index :: len(brokers)]
            quotas = ConnectionQuotas(broker)
            made[broker.broker_id] = [
                Listener(self, broker, address, sock, quotas)
                for address, sock in zip(addresses, sockets, strict=True)
            ]
        return made

    def _make_controller_listener(self) -> Listener | None:
        controller, sock = self.cluster.controller_server, self._controller_socket
        address = self.cluster.options.controller_address
        if controller is None or sock is None or address is None:
            return None
        return Listener(self, controller, address, sock)

    async def reset(self, prepare: Callable[[], None] | None = None) -> None:
        """Restore the cluster's initial state; every broker runs, connections stay open.

        Its time does not depend on the amount of data, which is freed later in slices.

        :param prepare: Called before the next request of a client, such as one that would create a
            topic by itself. What it raises is raised after the reset.
        :raises ControllerError: BROKER_NOT_AVAILABLE when another process has the port of a broker
            that is down; the cluster is unchanged then.
        """
        async with self._ports:
            with self._opening(chain.from_iterable(self._listeners.values())) as opened:
                self._deferred_free.add(self.journal.clear())
                self._count_replicas()
                operator_actions.restore(self.cluster)
                for listener in chain.from_iterable(self._listeners.values()):
                    listener.close_silent()
                self.cluster.reset()
                self._collect_many_replicas()
            try:
                if prepare is not None:
                    prepare()
            finally:
                await self._accept(opened)
                await self._apply_faults()

    def _count_replicas(self) -> None:
        """Count those that a reset is about to drop."""
        self._dropped_replicas += sum(len(each.replicas) for each in self.cluster.brokers.values())

    def _collect_many_replicas(self) -> None:
        """Have the garbage collected that is in cycles, once the memory of dropped logs is freed.

        The interpreter scans what has lived for a while too seldom to notice. After that there is
        little else to scan: before, the logs themselves take ten microseconds each.
        """
        if self._dropped_replicas >= WORTH_COLLECTING:
            self._dropped_replicas = 0
            self._deferred_free.add(collect_garbage())

    async def apply_faults(self) -> None:
        """Let ports refuse, and connections be silent, as the faults say that are set now.

        :raises ControllerError: BROKER_NOT_AVAILABLE when another process took the port of a broker
            that refused connections; it goes on refusing them.
        """
        async with self._ports:
            await self._apply_faults()

    async def _apply_faults(self) -> None:
        faults = self.cluster.faults
        for broker_id, listeners in self._listeners.items():
            refuses = faults.refuses_connections(broker_id)
            for listener in listeners:
                listener.end_silence()
                try:
                    await listener.refuse(self._loop, refuses=refuses)
                except PortUnavailable as error:
                    problem = f"{error}, and broker {broker_id} goes on refusing connections"
                    raise ControllerError(ErrorCode.BROKER_NOT_AVAILABLE, problem) from error

    # -- brokers --------------------------------------------------------------------------------

    async def stop_broker(self, broker_id: int) -> None:
        """Shut a broker down: it hands its leaderships over, sends ready responses and closes.

        :raises ControllerError: When there is no such broker, or it does not run.
        """
        async with self._ports:
            await self._run(operator_actions.stopping(self.cluster, broker_id))
            self._stop_listening(broker_id, abruptly=False)

    async def kill_broker(self, broker_id: int, fence: Fence) -> None:
        """Kill a broker: its connections are reset, and it sends nothing more.

        :raises ControllerError: When there is no such broker, or it does not run.
        """
        async with self._ports:
            self._stop_listening(broker_id, abruptly=True)  # first, so that no effects are sent
            await self._run(operator_actions.killing(self.cluster, broker_id, fence))

    async def start_broker(self, broker_id: int) -> None:
        """Start a broker that is down, on its port, with its replicas caught up.

        :raises ControllerError: When there is no such broker, or it runs; BROKER_NOT_AVAILABLE when
            another process has its port, and it stays down.
        """
        async with self._ports:
            with self._opening(self._listeners.get(broker_id, ())) as opened:
                await self._run(operator_actions.starting(self.cluster, broker_id))
            await self._accept(opened)

    async def isolate_broker(
        self, broker_id: int, *, from_controller: bool, brokers: Collection[int], fence: Fence
    ) -> None:
        """Cut a broker off: see `operator_actions.isolate`.

        :raises ControllerError: When there is no such broker, or it does not run.
        """
        await self._run(
            operator_actions.isolating(
                self.cluster,
                broker_id,
                from_controller=from_controller,
                brokers=brokers,
                fence=fence,
            )
        )

    async def rejoin_broker(self, broker_id: int) -> None:
        """Restore every link of a broker.

        :raises ControllerError: When there is no such broker.
        """
        await self._run(operator_actions.rejoining(self.cluster, broker_id))

    async def _run(self, steps: Iterator[None]) -> None:
        """Run the steps of a verb, and what is due after each, while clients are served.

        :raises ControllerError: When it is refused.
        """
        for _ in steps:
            await self.run_due()

    async def run_due(self) -> None:
        """Run what is due, in turns of the loop of their own."""
        await self._driver.finish()

    def _stop_listening(self, broker_id: int, *, abruptly: bool) -> None:
        for listener in self._listeners.get(broker_id, ()):
            listener.stop_listening(abruptly=abruptly)

    @contextmanager
    def _opening(self, listeners: Iterable[Listener]) -> Iterator[list[Listener]]:
        """Let the listeners that are down listen; if that or the body fails, they stay down.

        :raises ControllerError: BROKER_NOT_AVAILABLE when another process has a port.
        """
        opened: list[Listener] = []
        try:
            for listener in listeners:
                if listener.is_down:
                    listener.listen()
                    opened.append(listener)
            yield opened
        except (ControllerError, PortUnavailable) as error:
            for listener in opened:
                listener.stop_listening(abruptly=True)
            if isinstance(error, ControllerError):
                raise
            problem = f"{error}, and the broker of this port stays down"
            raise ControllerError(ErrorCode.BROKER_NOT_AVAILABLE, problem) from error

    async def _accept(self, opened: Iterable[Listener]) -> None:
        for listener in opened:
            await listener.start(self._loop)

    def advance(self, by_ms: int) -> None:
        """Advance a manual clock, and run all callbacks that become due, in order.

        :raises ControllerError: INVALID_REQUEST when the clock is the real one.
        """
        if not isinstance(self.clock, ManualClock):
            raise ControllerError(
                ErrorCode.INVALID_REQUEST,
                "the clock is the real one, which can't be advanced; start the cluster with "
                "--clock manual",
            )
        end_ms = self.clock.now_ms() + by_ms
        while self.clock.now_ms() < end_ms:
            try:
                advance(self.cluster.scheduler, self.clock, end_ms - self.clock.now_ms())
            except Exception:  # noqa: BLE001  # a bug in one callback must not end the others
                logs.logger().exception("callback_failed")
        self.cluster.events.emit(Kind.CLOCK_ADVANCED, ms=by_ms)

    # -- the loop -------------------------------------------------------------------------------

    def flush_soon(self, connection: AsyncioConnection) -> None:
        """Send a connection's ready responses at the end of this turn, in one write."""
        if not self._flushes:
            self._loop.call_soon(self._flush)
        self._flushes[connection] = None

    def count_refusal(self, limit: str) -> None:
        """Count a connection that is closed because a limit is reached."""
        self.refusals[limit] += 1
        if self._refusals_report is None and self._listeners:
            self._refusals_report = self._loop.call_later(REPORT_S, self._report_refusals)

    def _report_refusals(self) -> None:
        """Log how many connections were refused since the last line that told of some."""
        if self._refusals_report is not None:
            self._refusals_report.cancel()
            self._refusals_report = None
        counts = dict(self.refusals - self._reported)
        if counts:
            self._reported = self.refusals.copy()
            is_open = sum(self.connections.values())
            logs.logger().warning("connections_refused", limits=counts, open=is_open)

    @property
    def connections(self) -> dict[int, int]:
        """The number of connections by broker."""
        return {
            broker_id: sum(each.connections for each in own)
            for broker_id, own in self._listeners.items()
        }

    async def stop(self) -> None:
        """Close every port and connection."""
        if self._idle_check is not None:
            self._idle_check.cancel()
        self._report_refusals()
        self._driver.stop()
        self._deferred_free.stop()
        for listener in self._all_listeners():
            listener.stop()
        await asyncio.sleep(0)  # lets the transports send their buffers and close

    def _flush(self) -> None:
        flushes, self._flushes = self._flushes, {}
        for connection in flushes:
            connection.flush()

    def _all_listeners(self) -> Iterator[Listener]:
        yield from chain.from_iterable(self._listeners.values())
        if self._controller_listener is not None:
            yield self._controller_listener

    def _check_idle(self) -> None:
        now_ms = self.clock.now_ms()
        for listener in self._all_listeners():
            listener.close_idle(now_ms)
        self._idle_check = self._loop.call_later(IDLE_CHECK_S, self._check_idle)
