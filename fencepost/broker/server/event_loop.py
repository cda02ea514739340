"""Drives the core's scheduler by an event loop: one loop timer, for the earliest deadline.

With a manual clock there is no timer: no time passes until somebody advances the clock, and whoever
does runs what is due on the way.

Staying awake for a moment after a request.

A client that asks one thing after the other has its next request here within microseconds. To fall
asleep meanwhile and be woken costs more than the whole answer, on a virtual machine above all.
So the loop keeps polling for as long as a round trip takes before it waits for the network.

Memory that nobody needs any more, freed while nobody waits.

Freeing a gigabyte takes a tenth of a second and more. A reset, or a topic that is deleted, hands
over what it leaves behind, and it is freed in slices between which the loop serves its clients. A
slice is short by our own count; glibc may still take some 20 ms in one of them to give a large heap
back to the system.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from fencepost.broker.core.scheduler import ManualClock, Scheduler
from fencepost.broker.server import logs


class SystemClock:
    """Wall-clock time that never goes back: set once, then moved by the monotonic clock."""

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.monotonic_ns()

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        return (time.monotonic_ns() + self._offset_ns) // 1_000_000


class LoopDriver:
    """Runs what is due at the end of each turn of the loop, and at its time."""

    def __init__(self, scheduler: Scheduler, loop: asyncio.AbstractEventLoop) -> None:
        self._scheduler = scheduler
        self._loop = loop
        self._has_timer = not isinstance(scheduler.clock, ManualClock)
        self._turn_is_due = False
        self._timer: asyncio.TimerHandle | None = None
        scheduler.wake = self._wake
        self._wake()

    def stop(self) -> None:
        """Run nothing more."""
        self._scheduler.wake = lambda: None
        if self._timer is not None:
            self._timer.cancel()

    def _wake(self) -> None:
        if not self._turn_is_due:
            self._turn_is_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        try:
            self._scheduler.run_due()
        except Exception:  # noqa: BLE001  # a bug in one callback must not end the others
            logs.logger().exception("callback_failed")
            self._loop.call_soon(self._turn)
            return
        self._turn_is_due = False
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_ms = self._scheduler.next_deadline_ms() if self._has_timer else None
        if due_ms is not None:
            delay = max(due_ms - self._scheduler.now_ms(), 0) / 1000
            self._timer = self._loop.call_later(delay, self._wake)


POLL_NS: Final = 60_000
"""How long after the last bytes that came; nanoseconds."""


class BusyPoll:
    """Keeps a loop from waiting, by always having a callback in it for the next turn.

    :param meanwhile: What may as well be done then; it is quick. It waits for the second turn: a
        loop may write what it was given at the end of the first.
    """

    __slots__ = ("_is_first_turn", "_is_polling", "_loop", "_on_idle", "_until_ns")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        self._loop = loop
        self._on_idle = meanwhile
        self._is_polling = False
        self._is_first_turn = False
        self._until_ns = 0

    def extend(self) -> None:
        """Bytes came, or went: more may be close behind."""
        self._until_ns = time.monotonic_ns() + POLL_NS
        self._is_first_turn = True
        if not self._is_polling:
            self._is_polling = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        if self._is_first_turn:
            self._is_first_turn = False
        else:
            self._on_idle()
        if time.monotonic_ns() < self._until_ns:
            self._loop.call_soon(self._turn)
        else:
            self._is_polling = False


SLICE_S: Final = 0.0005
PAUSE_S: Final = 0.001
"""Between two slices the loop serves what has come meanwhile."""


class DeferredFree:
    """Takes the steps of what is handed to it, a slice of time in every few turns of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._works: deque[Iterator[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, work: Iterator[None]) -> None:
        """Take its steps later; each of them frees a little and is quick."""
        self._works.append(work)
        if self._timer is None:
            self._timer = self._loop.call_later(PAUSE_S, self._slice)

    def stop(self) -> None:
        """Free nothing more: the process ends."""
        if self._timer is not None:
            self._timer.cancel()
        self._works.clear()

    @property
    def is_idle(self) -> bool:
        """Whether everything is freed."""
        return not self._works

    def _slice(self) -> None:
        end = time.monotonic() + SLICE_S
        works = self._works
        while works and time.monotonic() < end:
            try:
                next(works[0])
            except StopIteration:
                works.popleft()
        self._timer = self._loop.call_later(PAUSE_S, self._slice) if works else None
