"""Callbacks and timers: what is due now, and what is due at which time.

The core never waits. It schedules a callback for this turn (``soon``) or for a time (``at``), and
its driver runs what is due: the server with one timer of its event loop, a test by moving the
clock, the simulation in the order of its seed.
"""

import heapq
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Final, Protocol

MOST_CANCELLED: Final = 128
"""Cancelled timers that may stay queued, or half of all where that is more. Each keeps what its
callback refers to: the memory of very many, freed at once, would hold a request up."""


class Clock(Protocol):
    """All that the core knows of time.

    Two times, because a machine's clock may be set: what waits is counted by ``now_ms``, which
    never goes back and never jumps; what is compared with times of others (a producer's timestamps,
    or those that an earlier process wrote) is stamped and checked by ``wall_ms``.
    """

    def now_ms(self) -> int:
        """Milliseconds of a monotonic clock, for timers. They begin near those since 1970."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC, for timestamps. They jump when the clock is set."""
        ...


class ManualClock:
    """A clock that only moves when told. It has one time for timers and timestamps."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        return self._now_ms

    def wall_ms(self) -> int:
        """The same."""
        return self._now_ms

    def move_to(self, now_ms: int) -> None:
        """Set the time.

        :raises ValueError: When it would go back.
        """
        if now_ms < self._now_ms:
            raise ValueError(f"time goes on: it is {self._now_ms}, not to be set to {now_ms}")
        self._now_ms = now_ms


class Timer:
    """A callback at a time. It can be moved or cancelled until it has run."""

    __slots__ = ("_scheduler", "callback", "deadline_ms", "queued_ms")

    def __init__(
        self, scheduler: "Scheduler", deadline_ms: int, callback: Callable[[], None]
    ) -> None:
        self._scheduler = scheduler
        self.queued_ms = deadline_ms
        self.deadline_ms: int | None = deadline_ms
        self.callback = callback

    def move_to(self, deadline_ms: int) -> None:
        """Run at another time instead; a timer that was cancelled or has run is set again."""
        unqueued = self.deadline_ms is None or deadline_ms < self.queued_ms
        self.deadline_ms = deadline_ms
        if unqueued:
            self.queued_ms = deadline_ms
            self._scheduler.enqueue(self)

    def cancel(self) -> None:
        """Do not run; harmless afterwards."""
        if self.deadline_ms is not None:
            self.deadline_ms = None
            self._scheduler.count_cancelled()

    def end(self) -> None:
        """Cancel it for good, and let go of the callback: the scheduler keeps it until its time."""
        self.cancel()
        self.callback = _do_nothing


class Scheduler:
    """Callbacks of this turn and of later times, for a whole cluster."""

    def __init__(self, clock: Clock) -> None:
        self.clock: Final = clock
        self.now_ms: Final = clock.now_ms
        """Gives milliseconds for timers: they never go back."""
        self.wall_ms: Final = clock.wall_ms
        """Gives milliseconds since 1970-01-01 UTC, for timestamps: they jump when the clock is set.
        """
        self.wake: Callable[[], None] = _do_nothing
        """Called when something is due that was not before; the edge sets it."""
        self.give_way: Callable[[], None] = _do_nothing
        """Called before work that comes after an answer: the edge lets the client, which may wait
        for the same processor, take the answer first."""
        self._soon: deque[Callable[[], None]] = deque()
        self._later: deque[Callable[[], None]] = deque()
        self._heap: list[tuple[int, int, Timer]] = []
        self._order = count()
        self._cancelled = 0

    def soon(self, callback: Callable[[], None]) -> None:
        """Run at the end of this turn, or of a next one where this one is over before."""
        self._soon.append(callback)
        if len(self._soon) == 1:
            self.wake()

    def in_later_turn(self, callback: Callable[[], None]) -> None:
        """Run in a turn of its own, so that others are served before it."""
        self._later.append(callback)
        if len(self._later) == 1:
            self.wake()

    def at(self, deadline_ms: int, callback: Callable[[], None]) -> Timer:
        """Run when the clock has reached ``deadline_ms``."""
        timer = Timer(self, deadline_ms, callback)
        self.enqueue(timer)
        return timer

    def enqueue(self, timer: Timer) -> None:
        """For ``Timer`` alone: (re-)enter the heap at the timer's deadline."""
        if timer.deadline_ms is None:
            return
        earliest = not self._heap or timer.deadline_ms < self._heap[0][0]
        heapq.heappush(self._heap, (timer.deadline_ms, next(self._order), timer))
        if earliest:
            self.wake()

    def count_cancelled(self) -> None:
        """For ``Timer`` alone: most are cancelled long before they are due, and pile up."""
        self._cancelled += 1
        if self._cancelled > MOST_CANCELLED and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].deadline_ms is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def next_deadline_ms(self) -> int | None:
        """When something is due next: now, a time, or never (None)."""
        if self._soon or self._later:
            return self.now_ms()
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def run_due(self) -> None:
        """Run all that is due by now, in order, and what becomes due meanwhile."""
        if not self._soon and not self._later and self._heap:
            deadline_ms, _, timer = self._heap[0]
            if timer.deadline_ms == deadline_ms > self.now_ms():  # as after most messages
                return
        self._run_timers()
        while self._later:
            self._later.popleft()()
            self._run_timers()

    def run_turn(self, is_over: Callable[[], bool] | None = None) -> bool:
        """Run what is due, and one callback that asked for a turn of its own.

        :param is_over: Asked after each callback; from True on, all others wait for the next turn.
        :returns: Whether something may be left for the next turn.
        """
        has_run_all = self._run_timers(is_over)
        if has_run_all and self._later:
            self._later.popleft()()
            has_run_all = self._run_timers(is_over)
        return not has_run_all or bool(self._later)

    def _run_timers(self, is_over: Callable[[], bool] | None = None) -> bool:
        """Run what is due until ``is_over``; whether it was all."""
        while True:
            if self._soon:
                self._soon.popleft()()
            else:
                self._drop_stale()
                if not self._heap or self._heap[0][0] > self.now_ms():
                    return True
                timer = heapq.heappop(self._heap)[2]
                timer.deadline_ms = None
                timer.callback()
            if is_over is not None and is_over():
                return False

    def clear(self) -> None:
        """Forget everything that was to happen."""
        self._soon.clear()
        self._later.clear()
        self._heap.clear()

    def _drop_stale(self) -> None:
        """Remove cancelled timers from the front, and put back those that were moved later."""
        while self._heap:
            queued_ms, _, timer = self._heap[0]
            if timer.deadline_ms == queued_ms:
                return
            heapq.heappop(self._heap)
            if timer.deadline_ms is not None and timer.deadline_ms > queued_ms:
                timer.queued_ms = timer.deadline_ms
                heapq.heappush(self._heap, (timer.deadline_ms, next(self._order), timer))


def _do_nothing() -> None:
    """Do nothing: a driver without an edge uses ``next_deadline_ms``."""


def advance(scheduler: Scheduler, clock: ManualClock, by_ms: int) -> None:
    """Move a manual clock, stopping at each deadline on the way so that all happens in order."""
    end = clock.now_ms() + by_ms
    scheduler.run_due()
    while (due := scheduler.next_deadline_ms()) is not None and due <= end:
        clock.move_to(max(due, clock.now_ms()))
        scheduler.run_due()
    clock.move_to(end)
