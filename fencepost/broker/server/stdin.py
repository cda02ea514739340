"""Standard input as a lifeline: it ends with whoever holds its other end, however that one ends.

A line ``reset`` on it is a reset, answered on standard output. Whoever starts a cluster for
tests has both ends at hand, and need not wait until the control API is imported.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Final

from fencepost.broker.refusals import ControllerError
from fencepost.broker.server import logs

RESET: Final = b"reset"
_STDIN: Final = 0
_CHUNK: Final = 65536


def follow_stdin(
    reset: Callable[[], Coroutine[None, None, None]], stop: Callable[[], None]
) -> None:
    """Do in the running loop what standard input says; other lines than those above are dropped.

    A thread waits for it, because a loop can wait for pipes only, and not for files or
    ``/dev/null``. It is a daemon: nobody waits for it in turn.

    :param reset: Carries out a reset and answers it. When it is refused, the server stops: nobody
        would know what state it is in.
    :param stop: Called when standard input ends.
    """
    loop = asyncio.get_running_loop()

    def follow() -> None:
        try:
            for line in _lines():
                if line == RESET:
                    asyncio.run_coroutine_threadsafe(reset(), loop).result()
        except ControllerError as error:
            logs.logger().error("reset_refused", detail=str(error))
        with suppress(RuntimeError):  # the loop has ended before
            loop.call_soon_threadsafe(stop)

    threading.Thread(target=follow, name="stdin", daemon=True).start()


def _lines() -> Iterator[bytes]:
    """The lines of standard input, whole ones, as they come."""
    if sys.stdin is None:  # it was closed, and its number may be another file's now
        return
    rest = b""
    with suppress(OSError):
        while chunk := os.read(_STDIN, _CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines
