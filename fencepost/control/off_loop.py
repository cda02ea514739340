"""Imports on a thread, while the event loop goes on.

The loop and the thread take turns at the interpreter, so an import costs the loop twice: it waits
for its turn for Python's 5 ms whenever it has something to do, and the collector of garbage, which
an import calls often, stops it for as long as it takes to look at all that has been imported. Both
are changed while at least one import is on its way. Afterwards the collector leaves alone what
there is: it lives as long as the process, and to look at all of it once would stop the loop again.
"""

import asyncio
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_SWITCH_INTERVAL_S: Final = 0.0005


async def off_loop(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a function that imports modules, called on a thread."""
    with _importing.hold():
        return await asyncio.to_thread(function, *args, **kwargs)


class _Importing:
    """How many imports are on their way; the event loop alone asks."""

    def __init__(self) -> None:
        self._count = 0
        self._interval = sys.getswitchinterval()
        self._collects = True

    @contextmanager
    def hold(self) -> Iterator[None]:
        """One more import until the end of the context."""
        if self._count == 0:
            self._interval, self._collects = sys.getswitchinterval(), gc.isenabled()
            sys.setswitchinterval(min(self._interval, _SWITCH_INTERVAL_S))
            gc.disable()
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
            if self._count == 0:
                sys.setswitchinterval(self._interval)
                if self._collects:
                    gc.freeze()
                    gc.enable()


_importing: Final = _Importing()
