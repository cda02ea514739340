"""What the event loop runs besides connections: due callbacks, busy polling, deferred freeing.

`LoopDriver` drives the core's scheduler with one timer, for its earliest deadline. A manual clock
has no timer: its time stands still until a caller advances it and runs what is due.

`BusyPoll` keeps the loop polling for a moment after each request. A client that sends one request
after the other sends the next one within microseconds; on a virtual machine above all, sleeping and
waking up in between costs more than the whole response.

`DeferredFree` frees large memory in slices. Freeing a gigabyte takes a tenth of a second and more:
a reset, or a deleted topic, hands its memory over, and the loop serves clients between the slices.
A slice is short by our own measure; glibc may still take some 20 ms in one of them to return a
large heap to the system.

`collect_young_garbage` lets the garbage collector look at few objects at a time: every `COLLECT_NS`
of work that takes several turns, and every `YOUNG_NS` while bytes come and go.
"""

import asyncio
import gc
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from fencepost.broker.core.scheduler import ManualClock, Scheduler
from fencepost.broker.server import logs


class SystemClock:
    """The machine's clocks: a monotonic one for timers, and the wall clock for timestamps.

    The wall clock may be set, by a person or after a virtual machine was suspended, while the
    monotonic one goes on as before. What both return is the same until then.
    """

    def __init__(
        self,
        wall_ns: Callable[[], int] = time.time_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        self._offset_ns = wall_ns() - monotonic_ns()

    def now_ms(self) -> int:
        """Milliseconds of the monotonic clock, which began at the wall clock's time."""
        return (self._monotonic_ns() + self._offset_ns) // 1_000_000

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC, as the wall clock is set now."""
        return self._wall_ns() // 1_000_000


_yield_processor: Final[Callable[[], None]] = getattr(os, "sched_yield", lambda: None)
"""Lets other threads have this processor that wait for it; Windows has no such call."""


TURN_NS: Final = 1_000_000
"""After how long, in nanoseconds, a turn begins no other callback, so that clients are served."""
COLLECT_NS: Final = 2_000_000
"""How often young garbage is collected during work that takes several turns."""


class LoopDriver:
    """Runs due callbacks at the end of each turn of the loop, and at their deadlines."""

    def __init__(self, scheduler: Scheduler, loop: asyncio.AbstractEventLoop) -> None:
        self._scheduler = scheduler
        self._loop = loop
        self._has_timer = not isinstance(scheduler.clock, ManualClock)
        self._turn_is_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._end_ns = 0
        """Of the turn, by the monotonic clock."""
        self._collect_ns = 0
        """When young garbage is collected next."""
        self._waiting: list[asyncio.Future[None]] = []
        """Of those that wait until nothing is due."""
        scheduler.wake = self._wake
        scheduler.give_way = _yield_processor
        self._wake()

    def stop(self) -> None:
        """Run nothing more."""
        self._scheduler.wake = self._scheduler.give_way = lambda: None
        if self._timer is not None:
            self._timer.cancel()

    def run_turn(self) -> bool:
        """Run one turn of what is due: see `Scheduler.run_turn`."""
        begin_ns = time.monotonic_ns()
        self._end_ns = begin_ns + TURN_NS
        goes_on = self._scheduler.run_turn(self._is_over)
        if goes_on and begin_ns >= self._collect_ns:  # much work, which makes many objects
            self._collect_ns = begin_ns + COLLECT_NS
            collect_young_garbage()
        return goes_on

    def _is_over(self) -> bool:
        return time.monotonic_ns() >= self._end_ns

    async def finish(self) -> None:
        """Run all that is due, in turns of the loop."""
        self._wake()
        finished = self._loop.create_future()
        self._waiting.append(finished)
        await finished

    def _wake(self) -> None:
        if not self._turn_is_due:
            self._turn_is_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        try:
            goes_on = self.run_turn()
        except Exception:  # noqa: BLE001  # a bug in one callback must not end the others
            logs.logger().exception("callback_failed")
            self._loop.call_soon(self._turn)
            return
        if goes_on:
            self._loop.call_soon(self._turn)
            return
        self._turn_is_due = False
        self._set_timer()
        while self._waiting:
            waiter = self._waiting.pop()
            if not waiter.done():  # its request may be gone
                waiter.set_result(None)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_ms = self._scheduler.next_deadline_ms() if self._has_timer else None
        if due_ms is not None:
            delay = max(due_ms - self._scheduler.now_ms(), 0) / 1000
            self._timer = self._loop.call_later(delay, self._wake)


POLL_NS: Final = 60_000
"""How long the loop polls after the last bytes, in nanoseconds."""
YOUNG_NS: Final = 5_000_000
"""How often young garbage is collected while it polls."""


class BusyPoll:
    """Keeps a loop from waiting for the network, by scheduling a callback for the next turn.

    :param on_idle: Short work for the idle turns. It is called from the second turn on: a loop may
        write its output at the end of the first one.
    """

    __slots__ = ("_collect_ns", "_is_first_turn", "_is_polling", "_loop", "_until_ns", "on_idle")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_idle: Callable[[], None] = lambda: None
    ) -> None:
        self._loop = loop
        self.on_idle = on_idle
        self._is_polling = False
        self._is_first_turn = False
        self._until_ns = 0
        self._collect_ns = 0
        """When young garbage is collected next."""

    def extend(self) -> None:
        """Poll on: bytes were received or sent, so more may arrive at once."""
        self._until_ns = time.monotonic_ns() + POLL_NS
        self._is_first_turn = True
        if not self._is_polling:
            self._is_polling = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        if self._is_first_turn:
            self._is_first_turn = False
        else:
            self.on_idle()
        now_ns = time.monotonic_ns()
        if now_ns >= self._collect_ns:
            self._collect_ns = now_ns + YOUNG_NS
            collect_young_garbage()
        if now_ns < self._until_ns:
            self._loop.call_soon(self._turn)
        else:
            self._is_polling = False


SLICE_S: Final = 0.0005
PAUSE_S: Final = 0.001
"""Between two slices, in which the loop serves its clients."""


class DeferredFree:
    """Runs the steps of its iterators, a slice of time in every few turns of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._works: deque[Iterator[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, work: Iterator[None]) -> None:
        """Run the steps of an iterator later; each of them frees a little memory and is short."""
        self._works.append(work)
        if self._timer is None:
            self._timer = self._loop.call_later(PAUSE_S, self._slice)

    def run_until(self, is_enough: Callable[[], bool]) -> None:
        """Run steps at once until there is enough memory, or nothing is left to free."""
        while self._works and not is_enough():
            self._step()

    def stop(self) -> None:
        """Free nothing more: the process ends."""
        if self._timer is not None:
            self._timer.cancel()
        self._works.clear()

    @property
    def is_idle(self) -> bool:
        """Whether everything is freed."""
        return not self._works

    def _step(self) -> None:
        try:
            next(self._works[0])
        except StopIteration:
            self._works.popleft()

    def _slice(self) -> None:
        end = time.monotonic() + SLICE_S
        works = self._works
        while works and time.monotonic() < end:
            self._step()
        self._timer = self._loop.call_later(PAUSE_S, self._slice) if works else None


def collect_young_garbage() -> None:
    """Collect what was made since this was done last, which takes the less the less that is.

    The interpreter does so when 2,000 more objects were made than freed. A server that has been in
    use for a while frees as many as it makes: what it keeps of a request takes the place of what it
    kept of an earlier one. So there may be hundreds of thousands when it looks, for tens of
    milliseconds.
    """
    if gc.isenabled():
        gc.collect(1)


def collect_garbage() -> Iterator[None]:
    """Work for `DeferredFree`: one step that collects what is in cycles, wherever it is."""
    gc.collect()
    yield
