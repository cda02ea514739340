"""``serve --trace DIR``: every request with its answer, and every event, as lines in files.

A thread of its own describes and writes them, so that the loop only hands them over. It may fall
behind for a while; then the loop waits for it, because nothing is to be lost. Lines are in the file
as soon as there is nothing more to write, and all of them when the process has ended in order.
"""

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from fencepost.broker.events import Event, Kind
from fencepost.broker.server import logs
from fencepost.broker.server.journal import AnyExchange
from fencepost.broker.server.parts import Parts

if TYPE_CHECKING:
    from fencepost.broker.cluster import Cluster
    from fencepost.broker.server.journal import Journal
    from fencepost.broker.server.server import Server

MAX_BEHIND: Final = 4096
"""Lines that the thread may be behind."""
_LOOK_EVERY_S: Final = 0.05
_SWITCH_INTERVAL_S: Final = 0.0005
"""While the thread describes something, the loop would wait for Python's 5 ms to serve a client."""


@dataclass(frozen=True, slots=True)
class Happened:
    """An event among the requests."""

    event: Event
    newest: int
    """Number of the last request that was taken up before."""


Item: TypeAlias = AnyExchange | Happened
Describe: TypeAlias = Callable[[Item], bytes]
"""Makes a line of what happened, without its end."""
MakeDescribe: TypeAlias = Callable[[], Describe]
"""Called in the thread when there is something to describe."""


def follow(cluster: "Cluster", journal: "Journal", add: Callable[[Item], None]) -> None:
    """Hand over what there is, and what happens from now on."""
    from fencepost.broker.server.beginning import found, in_full  # few write a trace

    def happened(event: Event) -> None:
        add(Happened(in_full(cluster, event), journal.newest))

    for event in found(cluster):
        happened(event)
    journal.listeners.append(add)
    cluster.events.listeners.append(happened)


class TraceUnavailable(OSError):
    """A directory that can't be written to; the message is one readable line."""


class TraceFile:
    """The files of one run.

    :param make_describe: Gives what makes lines.
    :param keep: How many of them are kept, the newest; None: all.
    :raises TraceUnavailable: When the first can't be made.
    """

    def __init__(
        self, directory: Path, make_describe: MakeDescribe, *, keep: int | None = None
    ) -> None:
        self._make_describe = make_describe
        self._describe: Describe | None = None
        start = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        try:
            self._parts = Parts(directory, f"trace-{start}-{os.getpid()}", keep=keep)
        except OSError as error:
            is_file = isinstance(error, FileExistsError)
            reason = "not a directory" if is_file else (error.strerror or str(error)).lower()
            raise TraceUnavailable(f"can't write to {directory}: {reason}") from error
        self._items: SimpleQueue[Item | None] = SimpleQueue()
        # Each is changed by one thread alone.
        self._taken = 0
        self._done = 0
        self._room = threading.Event()
        self._has_failed = False
        self._lacks_lines = False
        self._server: Server | None = None
        self._thread = threading.Thread(target=self._run, name="trace", daemon=True)

    def follow(self, server: "Server") -> None:
        """Write down what there is, and what happens from now on."""
        self._server = server
        follow(server.cluster, server.journal, self.add)

    def add(self, item: Item) -> None:
        """Hand something over; it waits while the thread is too far behind."""
        self._taken += 1
        self._items.put(item)
        if self._taken - self._done > MAX_BEHIND:
            self._wait_for_room()

    def __enter__(self) -> Self:
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_INTERVAL_S))
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Write all that is left, and that there is no more, unless something is missing."""
        self._items.put(None)
        self._thread.join()
        server = self._server
        if server is not None and kind is None and not (self._has_failed or self._lacks_lines):
            ended = Event(kind=Kind.TRACE_ENDED, time_ms=server.clock.now_ms())
            self._write(Happened(ended, server.journal.newest))
        try:
            self._parts.close()
        except OSError as error:  # also of a disk that failed before: it has a few bytes left
            self._fail(error)

    def _wait_for_room(self) -> None:
        while self._taken - self._done > MAX_BEHIND // 2:
            self._room.clear()
            self._room.wait(_LOOK_EVERY_S)

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        while (item := self._items.get()) is not None:
            if not self._has_failed:
                self._write(item)
            self._done += 1
            if self._taken - self._done <= MAX_BEHIND // 2:
                self._room.set()

    def _write(self, item: Item) -> None:
        try:
            if self._describe is None:
                self._describe = self._make_describe()
            line = self._describe(item)
        except Exception:  # noqa: BLE001  # a bug costs one line, never those behind it
            self._lacks_lines = True
            logs.logger(part="trace").exception("line_failed")
            return
        try:
            self._parts.write(line)
            if self._items.empty():
                self._parts.flush()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        if not self._has_failed:
            self._has_failed = True
            logs.logger(part="trace").error("trace_ended", detail=str(error))
