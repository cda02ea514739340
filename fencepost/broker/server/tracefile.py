"""``serve --trace DIR``: every request with its answer, and every event, as lines in files.

A thread of its own describes and writes them, so that the loop only hands them over. It may fall
behind for a while; then the loop waits for it, because nothing is to be lost. Lines are in the file
as soon as there is nothing more to write, and all of them when the process has ended in order.
"""

import os
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, BinaryIO, Final, Self, TypeAlias

from fencepost.broker.events import Event
from fencepost.broker.server import logs
from fencepost.broker.server.journal import AnyExchange

if TYPE_CHECKING:
    from fencepost.broker.server.server import Server

MAX_FILE_BYTES: Final = 64 << 20
"""A file ends with the line that takes it there."""
MAX_BEHIND: Final = 4096
"""Lines that the thread may be behind."""
_LOOK_EVERY_S: Final = 0.05
_SWITCH_INTERVAL_S: Final = 0.0005
"""While the thread describes something, the loop would wait for Python's 5 ms to serve a client."""

Item: TypeAlias = AnyExchange | Event
Describe: TypeAlias = Callable[[Item], bytes]
"""Makes a line of what happened, without its end."""
MakeDescribe: TypeAlias = Callable[[], Describe]
"""Called in the thread when there is something to describe."""


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
        self._keep = keep
        self._paths: list[Path] = []
        self._written = 0
        """Bytes in the present file."""
        start = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        self._name = str(directory / f"trace-{start}-{os.getpid()}")
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file = self._next_file()
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
        self._thread = threading.Thread(target=self._run, name="trace", daemon=True)

    def follow(self, server: "Server") -> None:
        """Write down what happens from now on."""
        server.journal.listeners.append(self.add)
        server.cluster.events.listeners.append(self.add)

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

    def __exit__(self, *_: object) -> None:
        """Write all that is left."""
        self._items.put(None)
        self._thread.join()
        self._file.close()

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
            logs.logger(part="trace").exception("line_failed")
            return
        try:
            self._file.write(line + b"\n")
            self._written += len(line) + 1
            if self._written >= MAX_FILE_BYTES:
                self._file.close()
                self._file = self._next_file()
            elif self._items.empty():
                self._file.flush()
        except OSError as error:
            self._has_failed = True
            logs.logger(part="trace").error("trace_ended", detail=str(error))

    def _next_file(self) -> BinaryIO:
        path = Path(f"{self._name}-{len(self._paths) + 1:04}.jsonl")
        file = path.open("xb")
        self._paths.append(path)
        self._written = 0
        if self._keep is not None and len(self._paths) > self._keep:
            self._paths[-self._keep - 1].unlink(missing_ok=True)
        return file
