"""Logs: structured, to stderr, pretty on a terminal and JSON elsewhere; they block nothing.

structlog is imported on first use, after the listeners accept: start-up time counts. Events are
snake_case nouns with key-values; every line of a connection names it and its client id. Single
requests are logged at debug level only. The core logs nothing: its storage failures are events.

A pipe that is not read holds 64 KiB, and a terminal may be stopped: a write would block the event
loop with all brokers and the handlers of signals. `protect_stderr` and `protect_stdout` put a
`NonBlockingStream` in the place of the stream, so that the warnings of libraries and tracebacks do
not block either.
"""

import atexit
import json
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cache
from io import TextIOBase
from stat import S_ISREG
from typing import TYPE_CHECKING, Final, TextIO, cast

from fencepost.broker.core.log_levels import SERVER, Level, LogLevels
from fencepost.optional_packages import as_if_missing

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor
    from structlog.typing import FilteringBoundLogger as Logger


LEVELS: Final[Mapping[str, Level]] = {
    "debug": Level.DEBUG,
    "info": Level.INFO,
    "warning": Level.WARN,
    "error": Level.ERROR,
}
"""The levels of an option and of structlog's methods, by name."""
_METHODS: Final = {**LEVELS, "exception": Level.ERROR, "critical": Level.FATAL}
_NAME: Final = "_logger"
levels: Final = LogLevels()
"""Of this process's loggers: one process, one log."""


def set_level(level: str) -> None:
    """Begin with this level, one of ``LEVELS``."""
    levels.start(LEVELS[level])


def logger(name: str = SERVER, **bound: object) -> "Logger":
    """A logger bound to key-values, such as a connection and its client.

    :param name: One of `LOGGERS`, which has the level.
    """
    return _configured().bind(**{_NAME: name}, **bound)


class _Stderr(TextIOBase):
    """Standard error at the time a line is written."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def _drop_below_level(_logger: object, method: str, event: "EventDict") -> "EventDict":
    """Drop the lines that the level of their logger leaves out, as it is now."""
    if _METHODS[method] < levels.level(event.pop(_NAME)):
        from structlog import DropEvent

        raise DropEvent
    return event


def _escape_values(_logger: object, _method: str, event: "EventDict") -> "EventDict":
    """Let no name that a client has chosen act on the terminal. JSON escapes by itself."""
    from fencepost.protocol.shown_text import escaped

    for name, value in event.items():
        if isinstance(value, str):
            event[name] = escaped(value)
    return event


@cache
def _configured() -> "Logger":
    is_terminal = sys.stderr.isatty()
    # structlog imports rich where there is one, for tracebacks on a terminal alone. It takes longer
    # to import than structlog itself, and five times its memory.
    with nullcontext() if is_terminal else as_if_missing("rich"):
        import structlog

    processors: list[Processor] = [
        _drop_below_level,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if is_terminal:
        processors.append(_escape_values)
        processors.append(structlog.dev.ConsoleRenderer())
    else:
        processors += [
            # Without local variables: a request frame may have a megabyte.
            structlog.processors.ExceptionRenderer(
                structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
            ),
            structlog.processors.JSONRenderer(),
        ]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _Stderr())),
        cache_logger_on_first_use=True,
    )
    made: Logger = structlog.get_logger()
    return made


# -- streams that do not block -----------------------------------------------------------------

MAX_WAITING: Final = 1 << 20
"""How many bytes wait for the reader of a stream; lines beyond are dropped."""
DRAIN_S: Final = 1.0
"""How long the end of the process waits for a reader that reads nothing."""
_WRITE: Final = 4096
"""How many bytes are written at a time, so that the end of the process sees a slow reader read."""


class NonBlockingStream(TextIOBase):
    """A text stream over a descriptor whose ``write`` and ``flush`` never wait for a reader.

    A regular file is written at once, as by any other stream. All else is written by a daemon
    thread; the text that waits for it is bounded by ``MAX_WAITING``. Once a line is dropped, all
    are dropped until the reader has read what was waiting, so that the lines before and after the
    gap are each complete and in their order. What cannot be written is dropped as well.

    :param notice: Called on the writing thread with the number of dropped lines, once the stream
        can be written again. It returns the text that stands in their place.
    """

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, descriptor: int, notice: Callable[[int], str]) -> None:
        self._descriptor = descriptor
        self._notice = notice
        self._is_direct = S_ISREG(os.fstat(descriptor).st_mode)
        self._partial_line = ""
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        """With those that the thread is writing."""
        self._untold = 0
        """How many dropped lines no notice has told."""
        self._has_failed = False
        """Whether the last write failed, so that a notice has to wait for the next line."""
        self._is_torn = False
        """Whether a line was written in part before a write failed."""
        self._written = 0
        self._thread: threading.Thread | None = None
        # Reentrant: a signal's handler or a finalizer may write as well.
        self._changed = threading.Condition(threading.RLock())
        self.dropped = 0
        """How many lines were dropped so far."""

    def writable(self) -> bool:
        """Always."""
        return True

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return os.isatty(self._descriptor)

    def write(self, text: str) -> int:
        """Write the lines that are complete; the rest waits for its end, or for ``flush``."""
        with self._changed:
            lines, end, partial_line = text.rpartition("\n")
            if end:
                self._put(self._partial_line + lines + end)
                self._partial_line = partial_line
            else:
                self._partial_line += text
        return len(text)

    def flush(self) -> None:
        """Hand over a line that is not complete. It does not wait until it is written."""
        with self._changed:
            text, self._partial_line = self._partial_line, ""
            if text:
                self._put(text)

    def drain(self, patience_s: float = DRAIN_S) -> None:
        """Wait until all is written, or until for ``patience_s`` seconds nothing was read.

        Then what comes is written in place, or dropped when the reader had stopped: at the end of
        the process its threads are gone.
        """
        self.flush()
        with self._changed:
            while self._is_pending() and self._wait_for_progress(patience_s):
                pass
            self._is_direct = not self._is_pending()

    def _wait_for_progress(self, patience_s: float) -> bool:
        before = self._written
        return self._changed.wait_for(
            lambda: self._written > before or not self._is_pending(), patience_s
        )

    def _is_pending(self) -> bool:
        return self._waiting_bytes > 0 or (self._untold > 0 and not self._has_failed)

    def _put(self, text: str) -> None:
        data = text.encode(self.encoding, self.errors)
        if self._is_direct:
            self._write(data)
        elif self._is_full(data):
            self._drop(data)
        else:
            self._waiting.append(data)
            self._waiting_bytes += len(data)
            self._changed.notify_all()
            self._start_thread()

    def _is_full(self, data: bytes) -> bool:
        if self._untold and not self._has_failed:  # the notice comes first
            return True
        if not self._waiting_bytes:
            return False
        return self._untold > 0 or self._waiting_bytes + len(data) > MAX_WAITING

    def _drop(self, data: bytes) -> None:
        lines = data.count(b"\n")
        self._untold += lines
        self.dropped += lines

    def _start_thread(self) -> None:
        if self._thread is not None:
            return
        self._thread = threading.Thread(target=self._write_waiting, name="stream", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the machine has no thread for it now; the next line tries again
            self._thread = None

    def _write_waiting(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(self._is_pending)
                data = self._waiting.popleft() if self._waiting else b""
            self._write(data)
            with self._changed:
                self._waiting_bytes -= len(data)
                self._changed.notify_all()

    def _write(self, data: bytes) -> None:
        """Write lines; before them the notice about those dropped, unless older ones wait."""
        with self._changed:
            untold = self._untold if self._has_failed or not data else 0
            self._untold -= untold
        notice = self._notice(untold).encode(self.encoding, self.errors) if untold else b""
        if self._is_torn:
            notice = b"\n" + notice
        self._has_failed = not self._write_bytes(notice + data)
        if self._has_failed:
            with self._changed:
                self._untold += untold
                self._drop(data)

    def _write_bytes(self, data: bytes) -> bool:
        """Whether all of it was written."""
        left = memoryview(data)
        while left:
            try:
                count = os.write(self._descriptor, left[:_WRITE])
            except BlockingIOError:  # who shares the descriptor made it non-blocking
                self._wait_until_writable()
                continue
            except OSError:
                self._is_torn |= len(left) < len(data)
                return False
            self._is_torn = False
            left = left[count:]
            with self._changed:
                self._written += count
                self._changed.notify_all()
        return True

    def _wait_until_writable(self) -> None:
        import select

        select.select((), (self._descriptor,), ())


def protect_stderr() -> None:
    """Never wait for the reader of standard error from now on; its lines may be dropped."""
    if sys.stderr is sys.__stderr__ and sys.stderr is not None:
        sys.stderr = _protect(sys.stderr, _notice)


def protect_stdout() -> None:
    """The same for standard output; dropped lines are told on standard error."""
    if sys.stdout is sys.__stdout__ and sys.stdout is not None:
        sys.stdout = _protect(sys.stdout, _notice_on_stderr)


def dropped_lines() -> int:
    """How many lines of standard error this process has dropped."""
    return sys.stderr.dropped if isinstance(sys.stderr, NonBlockingStream) else 0


def _protect(stream: TextIO, notice: Callable[[int], str]) -> TextIO:
    stream.flush()
    protected = NonBlockingStream(stream.fileno(), notice)
    atexit.register(protected.drain)
    return cast(TextIO, protected)


def _notice(lines: int) -> str:
    # Not by structlog, whose lock is held where a line is written in place.
    return _notice_line("log_lines_dropped", f"{lines} log lines dropped", lines)


def _notice_on_stderr(lines: int) -> str:
    detail = f"{lines} lines of standard output dropped"
    sys.stderr.write(_notice_line("output_lines_dropped", detail, lines))
    return ""


def _notice_line(event: str, detail: str, lines: int) -> str:
    from datetime import UTC, datetime

    if sys.stderr.isatty():
        return f"{detail}\n"
    time = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    notice = {"detail": detail, "lines": lines, "event": event, "level": "error", "timestamp": time}
    return json.dumps(notice) + "\n"
