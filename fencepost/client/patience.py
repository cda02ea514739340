"""How long to go on: a deadline, the time of one attempt, pauses that grow."""

import asyncio
from typing import Final

_FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 0.5


class Patience:
    """What is left of the time for something. It runs from when it is made.

    :param deadline_s: For all of it.
    :param attempt_s: For one request, at most.
    """

    def __init__(self, deadline_s: float, attempt_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + deadline_s
        self._attempt_s = attempt_s
        self._next_pause_s = _FIRST_PAUSE_S

    @property
    def left_s(self) -> float:
        """Seconds until the deadline, 0 behind it."""
        return max(self._end - self._loop.time(), 0)

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return self.left_s == 0

    @property
    def attempt_s(self) -> float:
        """Seconds that a request may take now."""
        return min(self._attempt_s, self.left_s)

    async def pause(self) -> None:
        """Wait before the next attempt, each time for longer."""
        await asyncio.sleep(min(self._next_pause_s, self.left_s))
        self._next_pause_s = min(2 * self._next_pause_s, _LONGEST_PAUSE_S)
