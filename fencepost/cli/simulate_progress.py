"""How far a simulation is, on standard error: the output has results alone.

On a terminal it is one line that is written over; elsewhere it is a line now and then, so that a
log shows that the run goes on.
"""

import sys
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Final

from fencepost.cli.output import interrupt_deferred

if TYPE_CHECKING:
    from fencepost.simulation.report import RunTotals

TERMINAL_S: Final = 0.2
"""Between two changes of the line on a terminal."""
LOG_S: Final = 30.0
"""Between two lines elsewhere."""
_CLEAR_LINE: Final = "\r\x1b[K"


class Progress:
    """Shows how many seeds were run.

    :param seeds: How many there are.
    :param clock: In seconds.
    """

    def __init__(self, seeds: int, clock: Callable[[], float] = perf_counter) -> None:
        self._seeds = seeds
        self._clock = clock
        self._started = self._shown = clock()
        self._is_terminal = sys.stderr.isatty()
        self._interval = TERMINAL_S if self._is_terminal else LOG_S
        self._is_drawn = False

    def show(self, total: "RunTotals") -> None:
        """Show the totals so far, unless they were shown a moment ago."""
        now = self._clock()
        if now - self._shown < self._interval:
            return
        self._shown = now
        speed = total.steps / max(now - self._started, 1e-9)
        left = (self._seeds - total.seeds) * (now - self._started) / max(total.seeds, 1)
        text = (
            f"{total.seeds:,} of {self._seeds:,} seeds, {speed:,.0f} steps a second,"
            f" {left:,.0f} s left"
        )
        self._write(f"{_CLEAR_LINE}{text}" if self._is_terminal else f"{text}\n")
        self._is_drawn = self._is_terminal

    def end(self) -> None:
        """Clear the line."""
        if self._is_drawn:
            self._write(_CLEAR_LINE)
            self._is_drawn = False

    def _write(self, text: str) -> None:
        with interrupt_deferred():
            sys.stderr.write(text)
            sys.stderr.flush()
