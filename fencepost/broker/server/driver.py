"""Drives the core's scheduler by an event loop: one loop timer, for the earliest deadline.

With a manual clock there is no timer: no time passes until somebody advances the clock, and whoever
does runs what is due on the way.
"""

import asyncio
import time

from fencepost.broker.scheduler import ManualClock, Scheduler
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
