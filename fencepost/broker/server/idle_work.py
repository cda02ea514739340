"""Work for the time in which the event loop has next to nothing else to do.

`Quiet` tells whether it has: by the processor time of its thread, whatever that was spent on.
`IdleWork` runs the steps of an iterator in such time. A client that comes in the middle of it
waits for one step at most.

`prepare_apis` is such work: the first request of each API imports what handles it, for a
millisecond or two in which all other clients wait.
"""

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from fencepost.broker import handlers
from fencepost.protocol import codec
from fencepost.protocol.apis import APIS

MAX_SHARE: Final = 0.05
"""Of a processor, which a loop that is quiet uses at most."""
QUIET_S: Final = 0.1
"""How long a loop is left alone that was not quiet."""
STEP_S: Final = 0.01
"""Between two steps of work."""
PREPARE_AFTER_S: Final = 0.7
"""When APIs are prepared at the earliest: the imports of the control API come before."""


class Quiet:
    """Whether the thread that it is made on has used little of a processor.

    :param now_s: The clock.
    :param used_s: The processor time of the thread.
    """

    def __init__(
        self,
        now_s: Callable[[], float] = time.monotonic,
        used_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self._clock = now_s
        self._usage = used_s
        self.begin()

    def begin(self) -> None:
        """Forget what was used until now."""
        self._now_s, self._used_s = self._clock(), self._usage()

    def look(self) -> bool:
        """Whether it used less than `MAX_SHARE` since the last look."""
        now_s, used_s = self._now_s, self._used_s
        self.begin()
        return self._used_s - used_s < MAX_SHARE * (self._now_s - now_s)


class IdleWork:
    """Runs the steps of an iterator, one at a time, while the loop is quiet.

    :param work: Each step is short.
    :param after_s: When the first one comes at the earliest, in seconds.
    :param quiet: Tells when a step may run; None for the thread of the loop, this one.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Iterator[None],
        after_s: float,
        quiet: Quiet | None = None,
    ) -> None:
        self._loop = loop
        self._work = work
        self._quiet = quiet or Quiet()
        self._timer = loop.call_later(after_s, self._turn)

    def stop(self) -> None:
        """Run no further step."""
        self._timer.cancel()

    def _turn(self) -> None:
        pause_s = QUIET_S
        if self._quiet.look():
            pause_s = STEP_S
            try:
                next(self._work)
            except StopIteration:
                return
            self._quiet.begin()  # a step is no work of others
        self._timer = self._loop.call_later(pause_s, self._turn)


def prepare_apis() -> Iterator[None]:
    """Import the messages of every API, and what handles it, in a step each.

    A module that can't be read, as the process has no descriptor left, is the first request's.
    """
    for api in APIS:
        for prepare in (codec.prepare, handlers.handler_of):
            with suppress(OSError, ImportError):
                prepare(api)
            yield
    gc.freeze()  # they live as long as the process
