"""Memory that nobody needs any more, freed while nobody waits.

Freeing a gigabyte takes a tenth of a second and more. A reset, or a topic that is deleted, hands
over what it leaves behind, and it is freed in slices between which the loop serves its clients. A
slice is short by our own count; glibc may still take some 20 ms in one of them to give a large heap
back to the system.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from typing import Final

SLICE_S: Final = 0.0005
PAUSE_S: Final = 0.001
"""Between two slices the loop serves what has come meanwhile."""


class Reclaimer:
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
