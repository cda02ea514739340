"""``python -m bench.watched FILE serve ...`` is ``fencepost serve ...`` with a pulse on its loop.

The pulse is a timer of :data:`PERIOD_S`. How much later than that it comes is for how long the loop
did something else: a pause, as a client meets it. The processor time of the loop's thread between
two pulses is how much of that the loop caused itself, however many other processes run; at most a
period of it may be of ordinary work. Once a second a line of JSON goes to the file, which has as
well how much of the process's memory the C library keeps free: between blocks that are in use, so
that it can't be given back, a third of a heap and another share in each moment.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from fencepost.broker.server.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PERIOD_S: Final = 0.002
LINE_S: Final = 1.0
_MIB_BYTES: Final = 1 << 20


class _MallInfo(ctypes.Structure):
    """``struct mallinfo2`` of glibc 2.33 and later, bytes; see mallinfo(3)."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


def heap_reader() -> Callable[[], float]:
    """Tells how many MiB the C library keeps free; 0 where it does not say."""
    try:
        mallinfo = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):  # another C library than glibc
        return lambda: 0.0
    mallinfo.restype = _MallInfo
    return lambda: float(mallinfo().fordblks) / _MIB_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulses:
    """What was seen since the line before.

    :param at_s: Of the monotonic clock.
    :param pause_ms: The longest lateness of a pulse.
    :param busy_ms: The most processor time between two pulses.
    :param tasks: Of asyncio, at this moment.
    :param free: MiB that the C library keeps free, at this moment.
    """

    at_s: float
    pause_ms: float
    busy_ms: float
    tasks: int
    free: float


class Pulse:
    """Beats for as long as the loop runs, and writes a line once a second."""

    def __init__(self, loop: asyncio.AbstractEventLoop, out: TextIO) -> None:
        self._loop, self._out = loop, out
        self._free = heap_reader()
        self._pause_s = self._busy_s = 0.0
        self._before_s, self._spent_s = time.monotonic(), time.thread_time()
        self._line_s = self._before_s + LINE_S
        loop.call_later(PERIOD_S, self._beat)

    def _beat(self) -> None:
        now_s, spent_s = time.monotonic(), time.thread_time()
        self._pause_s = max(self._pause_s, now_s - self._before_s - PERIOD_S)
        self._busy_s = max(self._busy_s, spent_s - self._spent_s)
        if now_s >= self._line_s:
            self._write(now_s)
            now_s, spent_s = time.monotonic(), time.thread_time()
        self._before_s, self._spent_s = now_s, spent_s
        self._loop.call_later(PERIOD_S, self._beat)

    def _write(self, now_s: float) -> None:
        pulses = Pulses(
            at_s=now_s,
            pause_ms=self._pause_s * 1e3,
            busy_ms=self._busy_s * 1e3,
            tasks=len(asyncio.all_tasks(self._loop)),
            free=self._free(),
        )
        self._out.write(json.dumps(asdict(pulses)) + "\n")
        self._pause_s = self._busy_s = 0.0
        self._line_s = now_s + LINE_S


def read(path: Path) -> Iterator[Pulses]:
    """All complete lines so far."""
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            yield Pulses(**json.loads(line))


def main() -> int:
    start = Server.start

    async def watched_start(self: Server) -> None:
        await start(self)
        Pulse(asyncio.get_running_loop(), out)

    Server.start = watched_start  # type: ignore[method-assign]  # the only way in from outside
    from fencepost.cli import main as serve

    with Path(sys.argv[1]).open("w", buffering=1) as out:
        return serve(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
